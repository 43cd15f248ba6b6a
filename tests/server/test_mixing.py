from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from turnmill.server.mixing import MixPlan

ROW = b'{"instruction": "a", "output": "b"}\n'


@pytest.fixture
def mix(client: TestClient, put):
    """Mixes datasets of 30 rows and of 10; gives the answer."""
    put("facts", ROW * 30)
    put("chats", ROW * 10)

    def call(weights: dict[str, float | None], **more: Any) -> Any:
        named = [{"name": name, "weight": weight} for name, weight in weights.items()]
        return client.post("/v1/training/mix", json={"datasets": named, **more})

    return call


@pytest.mark.parametrize(
    ("weights", "more", "drawn"),
    [
        ({"facts": None, "chats": None}, {}, [30, 10]),
        ({"facts": 1, "chats": 1}, {}, [20, 20]),
        ({"facts": 1, "chats": 1}, {"epoch": "first-exhausted"}, [10, 10]),
        ({"facts": 0, "chats": 1}, {"max_passes": 2}, [0, 20]),
    ],
)
def test_a_mix_says_what_each_dataset_gives(mix, weights, more, drawn) -> None:
    answer = mix(weights, **more)
    MixPlan.model_validate_json(answer.content)
    assert [share["drawn"] for share in answer.json()["sources"]] == drawn
    assert answer.json()["examples"] == sum(drawn)


def test_a_mix_says_what_the_command_line_says(mix, shelf, turnmill) -> None:
    found = mix({"facts": 1, "chats": 3}).json()
    files = [f"{name}={shelf / name}/{name}.jsonl" for name in ("facts", "chats")]
    flags = ["--sources.facts.weight", "1", "--sources.chats.weight", "3"]
    told = turnmill("mix", *files, *flags, "--json").json
    assert found["sources"] == [{key: share[key] for key in found["sources"][0]} for share in told["sources"]]


def test_a_mix_warns_of_what_gives_nothing(mix) -> None:
    (warning,) = mix({"facts": 1, "chats": 0}).json()["warnings"]
    assert "'chats' has 10 examples and gives none" in warning


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ([{"name": "none"}], 404, "dataset-unknown"),
        ([{"name": "facts"}] * 2, 400, "mix-not-valid"),
        ([{"name": "facts", "weight": 0}], 400, "mix-not-valid"),
        ([], 400, "request-not-valid"),
        ([{"name": "facts", "weight": -1}], 400, "request-not-valid"),
    ],
)
def test_mixes_that_are_refused(mix, client: TestClient, asked: list[Any], status: int, code: str) -> None:
    answer = client.post("/v1/training/mix", json={"datasets": asked})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
