from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmill.errors import UsageError
from turnmill.shelf.inside import directory_inside, opened_inside

SECRET = b"secret"
LINKS = ("data", "../outside", "/etc", "data/rows", "..", ".", "../folder/data", "nowhere", "loop", "../shadow")


def read(root: Path, relative: str) -> bytes:
    with opened_inside(root, relative) as file:
        return file.read()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "folder"
    (place / "data").mkdir(parents=True)
    (place / "data" / "rows").write_bytes(b"rows")
    (tmp_path / "outside").write_bytes(SECRET)
    return place


def test_a_file_and_links_to_it_are_read(folder):
    (folder / "here").symlink_to("data/rows")
    (folder / "there").symlink_to(folder / "data")
    assert [read(folder, name) for name in ("data/rows", "here", "there/rows")] == [b"rows"] * 3


@pytest.mark.parametrize("target", ["../outside", "data/../../outside"])
def test_a_link_that_leads_out_is_refused(folder, target):
    (folder / "link").symlink_to(target)
    with pytest.raises(UsageError, match="leads out"):
        read(folder, "link")


def test_a_linked_part_that_leads_out_is_refused(folder):
    (folder / "up").symlink_to("..")
    with pytest.raises(UsageError, match="leads out"):
        read(folder, "up/outside")


def test_links_that_lead_nowhere_are_not_there(folder):
    (folder / "dangling").symlink_to("nothing")
    with pytest.raises(FileNotFoundError):
        read(folder, "dangling")


@pytest.mark.parametrize(("make", "kind"), [(os.mkfifo, "a pipe"), (os.mkdir, "a directory")])
def test_what_is_no_file_is_refused_at_once(folder, make, kind):
    make(folder / "odd")
    with pytest.raises(UsageError, match=kind):
        read(folder, "odd")


def test_a_linked_directory_is_one_of_the_same_shelf(folder):
    (folder / "same").symlink_to("data")
    (folder / "out").symlink_to("..")
    assert directory_inside(folder, "same") == (folder / "data").resolve()
    with pytest.raises(UsageError, match="leads out of the shelf"):
        directory_inside(folder, "out")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["a", "b", "c", "loop"]), st.sampled_from(LINKS), max_size=4),
    st.lists(st.sampled_from(["a", "b", "c", "loop", "data", "rows", "outside", "passwd"]), min_size=1, max_size=4),
)
def test_no_mesh_of_links_escapes(links, parts):
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "folder")
        (root / "data").mkdir(parents=True)
        (root / "data" / "rows").write_bytes(b"rows")
        Path(place, "outside").write_bytes(SECRET)
        Path(place, "shadow").symlink_to(place)
        for name, target in links.items():
            (root / name).symlink_to(target)
        try:
            content = read(root, "/".join(parts))
        except (OSError, UsageError):
            return
        assert content == b"rows"
