from __future__ import annotations

import base64
import copy
import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from turnmill.sidecar.dataset import TrainingDataset

PAYLOAD = b'{"instruction": "a", "output": "b"}\n'
CONTENT = base64.b64encode(PAYLOAD).decode()


class Holder(BaseModel):
    dataset: TrainingDataset


@pytest.fixture
def dataset() -> TrainingDataset:
    return TrainingDataset(filename="facts.jsonl", content=CONTENT)


@pytest.mark.parametrize(
    "say",
    [
        repr,
        str,
        lambda one: one.model_dump_json(),
        lambda one: one.model_dump_json(round_trip=True),
        lambda one: str(one.model_dump()),
        lambda one: str(one.model_dump(include={"content"})),
        lambda one: str(one.model_dump(exclude={"filename"}, mode="json")),
        lambda one: Holder(dataset=one).model_dump_json(),
        lambda one: repr(Holder(dataset=one)),
        lambda one: json.dumps(dict(one), default=str),
        lambda one: pickle.dumps(one).decode("latin-1"),
        "{}".format,
    ],
)
def test_its_content_is_never_serialised(dataset, say) -> None:
    assert CONTENT[:8] not in say(dataset)


def test_its_payload_is_its_bytes(dataset) -> None:
    assert dataset.payload() == PAYLOAD
    assert copy.deepcopy(dataset).payload() == PAYLOAD


def test_what_is_pickled_has_no_content(dataset) -> None:
    back = pickle.loads(pickle.dumps(dataset))
    assert (back.filename, back.content) == ("facts.jsonl", None)


@pytest.mark.parametrize("content", [None, "", "no base64", "YWJ", "YW Jj", "YWJj\n", "Ω" * 4, "YQ==YQ=="])
def test_what_is_no_content_has_no_payload(content) -> None:
    with pytest.raises(ValueError, match=r"facts\.jsonl"):
        TrainingDataset(filename="facts.jsonl", content=content).payload()


def test_a_fault_does_not_quote_the_content() -> None:
    with pytest.raises(ValidationError) as caught:
        TrainingDataset(filename=7, content=[CONTENT])
    assert CONTENT not in str(caught.value)


def test_a_file_is_loaded_without_its_content_unless_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    path.write_bytes(PAYLOAD)
    told, whole = TrainingDataset.from_path(path), TrainingDataset.from_path(path, with_content=True)
    assert (told.filename, told.size_bytes, told.content) == ("facts.jsonl", len(PAYLOAD), None)
    assert whole.payload() == PAYLOAD
    assert told.modified_at.tzinfo is UTC
    assert told.modified_at == datetime.fromtimestamp(path.stat().st_mtime, UTC)


def test_times_are_in_utc() -> None:
    there = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert TrainingDataset(filename="a.jsonl", uploaded_at=there).uploaded_at.isoformat() == "2026-01-01T00:00:00+00:00"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValidationError):
        TrainingDataset(filename="a.jsonl", uploaded_at=datetime(2026, 1, 1))
