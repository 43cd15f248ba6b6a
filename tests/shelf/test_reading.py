from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnmill.errors import UsageError
from turnmill.shelf import reading
from turnmill.shelf.manifest import Manifest
from turnmill.shelf.reading import DataChanged, NoSuchRow, Place, opened

LINES = Manifest("facts", "rows.jsonl")
ARRAY = Manifest("facts", "rows.json", format="json", dialect="auto")
PARQUET = Manifest("facts", "rows.parquet", format="parquet", dialect="auto")
SESSION = [
    {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "hi"}},
    {
        "type": "assistant", "uuid": "2", "parentUuid": "1", "sessionId": "s",
        "message": {"role": "assistant", "id": "m", "content": [{"type": "text", "text": "yo"}]},
    },
]  # fmt: skip


def row(number: int) -> dict[str, str]:
    return {"instruction": f"question {number}", "output": "b"}


@pytest.fixture
def put(tmp_path: Path):
    """Writes ten rows as a manifest says; gives the directory."""

    def call(manifest: Manifest) -> Path:
        rows = [row(number) for number in range(1, 11)]
        path = tmp_path / manifest.file
        if manifest.format == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=4)
        elif manifest.format == "json":
            path.write_text(json.dumps(rows))
        else:
            path.write_text("".join(json.dumps(one) + "\n" for one in rows))
        return tmp_path

    return call


def questions(found: Any) -> list[str]:
    return [one.record.value["instruction"] for one in found]


@pytest.mark.parametrize("manifest", [LINES, ARRAY, PARQUET])
def test_reading_goes_on_at_every_place(put, manifest: Manifest) -> None:
    with opened(put(manifest), manifest) as data:
        whole = list(data.rows())
        assert questions(whole) == [f"question {number}" for number in range(1, 11)]
        for number, one in enumerate(whole):
            again = list(data.rows(one.place))
            assert questions(again) == questions(whole[number:])
            assert [each.record.source_line for each in again] == list(range(number + 1, 11))


@pytest.mark.parametrize("manifest", [LINES, ARRAY, PARQUET])
def test_behind_the_end_there_is_nothing(put, manifest: Manifest) -> None:
    with opened(put(manifest), manifest) as data:
        assert list(data.rows(Place(10**17, 10**9))) == []


@pytest.mark.parametrize("manifest", [LINES, ARRAY, PARQUET])
@pytest.mark.parametrize(("line", "beside"), [(1, (None, 2)), (4, (3, 5)), (5, (4, 6)), (10, (9, None))])
def test_a_row_knows_its_neighbours(put, manifest: Manifest, line: int, beside: tuple[int | None, int | None]) -> None:
    with opened(put(manifest), manifest) as data:
        found = data.at(line)
        assert found.record.value == row(line)
        assert (found.previous, found.next) == beside


@pytest.mark.parametrize("manifest", [LINES, ARRAY, PARQUET])
def test_no_row_stands_behind_the_last(put, manifest: Manifest) -> None:
    with opened(put(manifest), manifest) as data, pytest.raises(NoSuchRow, match="line 11"):
        data.at(11)


@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_blank_lines_are_no_neighbours(write, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", block)
    one = json.dumps(row(1)).encode()
    folder = write("rows.jsonl", b"\n \r\n" + one + b"\n\n\t\n" + one + b"\r\n\n" + one).parent
    with opened(folder, LINES) as data:
        found = {line: data.at(line) for line in (3, 6, 8)}
        assert {line: (one.previous, one.next) for line, one in found.items()} == {
            3: (None, 6), 6: (3, 8), 8: (6, None)
        }  # fmt: skip
        for blank in (1, 2, 4, 5, 7):
            with pytest.raises(NoSuchRow):
                data.at(blank)


def test_a_session_is_read_as_its_rows(write) -> None:
    manifest = Manifest("facts", "rows.jsonl", dialect="auto")
    folder = write("rows.jsonl", "".join(json.dumps(event) + "\n" for event in SESSION)).parent
    with opened(folder, manifest) as data:
        assert not data.has_lines
        (found,) = data.rows()
        assert data.dialect == "claude-code"
        assert data.check().outcome(found.record).checked
        assert data.at(found.record.source_line).record == found.record


def test_a_file_that_is_swapped_meanwhile_is_read_to_its_end(put) -> None:
    folder = put(LINES)
    with opened(folder, LINES) as data:
        rows = data.rows()
        next(rows)
        folder.joinpath("rows.jsonl").unlink()
        assert len(list(rows)) == 9


def test_a_parquet_that_is_written_to_meanwhile_is_refused(put) -> None:
    folder = put(PARQUET)
    swapped = (folder / "rows.parquet", b"PAR1")
    with pytest.raises(DataChanged, match=r"rows\.parquet"), opened(folder, PARQUET) as data:
        list(data.rows(Place(Path.write_bytes(*swapped) - 4)))


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "empty"), (b"\x1f\x8b\x08", "is compressed"), (b"\xff\xfe{", "UTF-16")]
)
def test_files_that_cannot_be_read_do_not_say_where_they_lie(write, content: bytes, said: str) -> None:
    folder = write("rows.jsonl", content).parent
    with pytest.raises(UsageError, match=said) as raised, opened(folder, LINES):
        pass
    assert "rows.jsonl" in raised.value.message
    assert "/proc" not in raised.value.message
