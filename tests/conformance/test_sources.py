"""What every source promises: bytes that cannot change, a weight, a licence, and a fixture of which a chat comes."""

from __future__ import annotations

import pytest

from pinned_sources import FIXTURES, BuiltSource, fixture_rows, over
from turnmill.sources import UNRECOVERABLE, all_sources, check_pin, sources


@pytest.mark.parametrize("name", sources.names())
def test_a_source_is_pinned_and_described(name: str) -> None:
    source = all_sources()[name]
    for pin in source.pins:
        check_pin(pin)
        assert "://" in pin.url
        assert pin.files
    assert source.tokens > 1_000
    assert source.licence
    assert sources.summary(name).endswith(".")
    assert name == name.lower().replace("_", "-")


@pytest.mark.parametrize("name", sources.names())
def test_a_chat_comes_of_its_fixture(name: str, tmp_path) -> None:
    built = BuiltSource(over(name, fixture_rows(name), tmp_path), tmp_path / "cache")
    assert built.artifact("conversations").result.rows >= 1
    assert built.artifact("rendered").result.rows >= 1
    assert built.artifact("normalized").result.rows >= 1


def test_every_fixture_is_of_a_source() -> None:
    names = {path.name.partition(".")[0] for path in FIXTURES.iterdir()}
    assert names == set(sources.names())


def test_a_dataset_that_is_no_source_says_why() -> None:
    assert len(UNRECOVERABLE) >= 4
    pinned = {pin.url for source in all_sources().values() for pin in source.pins}
    for dataset, why in UNRECOVERABLE.items():
        assert len(why) > 20
        assert not any(f"datasets/{dataset}@" in url for url in pinned)
