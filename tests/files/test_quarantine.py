import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmill.conversation import Conversation, Message
from turnmill.errors import Rejected
from turnmill.files.quarantine import from_conversation, from_record, from_table, iterate, schema, to_table
from turnmill.files.record import Record


def left(raw: bytes, message: str = "bad"):
    record = Record("mine", "a.jsonl", 3, 2, raw, fault=Rejected("invalid-json", message))
    return from_record(record, Rejected("invalid-json", message, at=1), stage="read", config="f" * 64)


@given(st.lists(st.binary(max_size=20)))
@settings(deadline=None)
def test_any_bytes_come_back_as_they_were(raws: list[bytes]) -> None:
    rows = [left(raw) for raw in raws]
    again = list(from_table(to_table(rows)))
    assert again == rows
    assert [row.raw for row in again] == raws


@pytest.mark.parametrize(("raw", "encoding"), [(b"{", "text"), ("é".encode(), "text"), (b"\xff", "base64")])
def test_only_what_is_not_utf8_is_base64(raw: bytes, encoding: str) -> None:
    assert left(raw).record_encoding == encoding


def test_a_message_with_half_a_surrogate_pair_can_be_stored() -> None:
    assert next(from_table(to_table([left(b"{", "key '\ud83d'")]))).message == r"key '\ud83d'"


def test_a_checked_row_leaves_as_its_canonical_json() -> None:
    row = Conversation(
        (Message("user", "hi", recorded=0),), source="mine", meta={"source_file": "a", "source_line": 1, "row": 0}
    )
    gone = from_conversation(row, Rejected("too-long", "x"), stage="fit", config="c", class_="filtered")
    assert (gone.class_, gone.row, gone.source_file) == ("filtered", 0, "a")
    assert '"text": "hi"' in gone.record


def test_a_folder_is_read_file_by_file(tmp_path) -> None:
    for number in (2, 0, 1):
        pq.write_table(to_table([left(b"%d" % number)]), tmp_path / f"part-{number}.parquet")
    assert [row.raw for row in iterate(sorted(tmp_path.rglob("*.parquet")))] == [b"0", b"1", b"2"]
    assert schema().names[:3] == ["class", "source", "source_file"]


def test_further_columns_are_passed_over() -> None:
    rows = [left(b"{"), left(b"[")]
    table = to_table(rows).append_column("winner_row", [[3, 4]])
    assert list(from_table(table)) == rows
    assert [row for batch in table.to_batches() for row in from_table(batch)] == rows
