from __future__ import annotations

import importlib

import pytest

from turnmill.errors import UnknownName, UsageError
from turnmill.registry import Registry, families, family_registry

PLUGIN = 'def shout(text):\n    """Says it louder."""\n    return text.upper()\n\nlimit = 3\n'


@pytest.fixture
def registry() -> Registry:
    registry = Registry("filters")
    registry.register("quiet")(str.lower)
    return registry


def test_a_registered_name_is_found(registry) -> None:
    assert registry.get("quiet") is str.lower


def test_an_unknown_name_suggests_the_nearest(registry) -> None:
    with pytest.raises(UnknownName, match=r"unknown filter 'quite'\. Did you mean 'quiet'\?") as caught:
        registry.get("quite")
    assert caught.value.next_step == "turnmill list filters"


def test_a_dropped_in_file_is_a_plugin(registry, write) -> None:
    name = f"{write('mine.py', PLUGIN)}:shout"
    assert registry.get(name)("a") == "A"
    assert registry.summary(name) == "Says it louder."
    assert name not in registry.names()


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("{path}:shuot", UnknownName, r"unknown name in .*mine\.py 'shuot'\. Did you mean 'shout'\?"),
        ("{path}:limit", UnknownName, r"unknown name in .*mine\.py 'limit'"),
        ("{path}x/no.py:shout", UsageError, r"no such plug-in file"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(registry, write, name, error, message) -> None:
    path = write("mine.py", PLUGIN)
    with pytest.raises(error, match=message):
        registry.get(name.format(path=path))


def test_entry_points_are_plugins(write, monkeypatch, tmp_path) -> None:
    write("installed_plugin.py", PLUGIN)
    write("plugin-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    write("plugin-1.0.dist-info/entry_points.txt", "[turnmill.filters]\nloud = installed_plugin:shout\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    registry = Registry("filters")
    assert "loud" in registry.names()
    assert registry.get("loud")("a") == "A"


def test_families_hold_a_registry_of_their_name() -> None:
    assert {"dialects", "filters"} <= set(families())
    assert all(family_registry(family).family == family for family in families())


def test_an_unknown_family_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'dialects'"):
        family_registry("dialect")


def test_the_identity_of_a_plugin_of_a_file_is_its_name_and_bytes(registry, write) -> None:
    one, moved, other = (
        f"{write(*file)}:shout" for file in (("a.py", PLUGIN), ("b.py", PLUGIN), ("c.py", PLUGIN + "\n"))
    )
    assert registry.identity(one) == registry.identity(moved) != registry.identity(other)
    assert registry.identity(one).startswith("shout@")


def test_the_identity_of_a_built_in_is_its_name_and_version() -> None:
    assert family_registry("filters").identity("stalled-tool-call") == "stalled-tool-call@1"
