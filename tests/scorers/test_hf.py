"""The scorer `hf` against the plain forward of small random models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tiny_models import save_tiny_model
from turnmill.errors import UsageError
from turnmill.options import Score
from turnmill.scorers import ToScore, Unscored
from turnmill.scorers.hf import open_hf
from turnmill.token_costs import batches_of, rows_of

MODELS = ["llama", "qwen3", "qwen3_moe", "gemma2", "cohere", "granite", "gpt_neox"]
"""Among them such as cap or scale their logits, and one of experts."""


@pytest.fixture(scope="module", params=MODELS)
def directory(request, tmp_path_factory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp(request.param), request.param)


def sequences(count: int, longest: int = 60) -> list[ToScore]:
    random = np.random.default_rng(5)
    found = []
    for _ in range(count):
        length = int(random.integers(2, longest))
        wanted = random.random(length) < 0.5
        wanted[0], wanted[-1] = False, True
        found.append(ToScore(random.integers(0, 96, length).astype(np.int32), wanted))
    return found


def plain(directory: Path, one: ToScore) -> np.ndarray:
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor(one.input_ids[None].astype(np.int64))).logits[0]
    nll = -torch.log_softmax(logits.float(), -1).numpy()
    places = np.flatnonzero(one.wanted)
    return nll[places - 1, one.input_ids[places]]


def test_each_token_costs_what_the_plain_forward_says(directory):
    scorer = open_hf(Score(max_batch_tokens=200, threads=1), directory, 96)
    asked = sequences(12)
    found = dict(scorer.nll(asked))
    assert sorted(found) == list(range(12))
    for number, one in enumerate(asked):
        assert found[number] == pytest.approx(plain(directory, one), abs=1e-4)


def test_the_head_runs_apart_from_the_decoder(directory):
    assert not open_hf(Score(threads=1), directory, 96).costs.runs_whole


def test_a_model_that_cannot_be_cut_runs_whole(directory, monkeypatch):
    scorer = open_hf(Score(threads=1), directory, 96)
    monkeypatch.setitem(scorer.costs.__dict__, "runs_whole", True)
    one = sequences(1)[0]
    ((_, found),) = scorer.nll([one])
    assert found == pytest.approx(plain(directory, one), abs=1e-4)


def test_what_the_model_cannot_read_says_why(directory):
    long = ToScore(np.zeros(65, np.int32), np.array([False] + [True] * 64))
    unknown = ToScore(np.array([1, 500], np.int32), np.array([False, True]))
    found = dict(open_hf(Score(threads=1), directory, 96).nll([long, unknown, *sequences(1)]))
    assert found[0] == Unscored("65 tokens; the model sees 64")
    assert found[1] == Unscored("token 500 is not among the model's 96")
    assert len(found[2])


def test_packed_rows_cost_what_the_plain_forward_says(directory):
    scorer = open_hf(Score(max_batch_tokens=120, threads=1, packing="on"), directory, 96)
    asked = sequences(12)
    found = dict(scorer.nll(asked))
    assert scorer.layout == "flat"
    for number, one in enumerate(asked):
        assert found[number] == pytest.approx(plain(directory, one), abs=1e-4)


def test_a_model_that_lets_examples_leak_is_never_packed(tmp_path):
    leaking = save_tiny_model(tmp_path, "gpt_oss")
    with pytest.raises(UsageError, match=r"gpt_oss .* does not keep packed examples apart") as refused:
        list(open_hf(Score(threads=1, packing="on"), leaking, 96).nll(sequences(3)))
    assert refused.value.next_step == "--score.packing off"
    one = sequences(1)[0]
    ((_, found),) = open_hf(Score(threads=1), leaking, 96).nll([one])
    assert found == pytest.approx(plain(leaking, one), abs=1e-4)


def test_rows_are_filled_up_to_their_tokens():
    rows = list(rows_of([50, 3, 7, 4, 6], 10))
    assert sorted(map(sorted, rows)) == [[0], [1, 2], [3, 4]]


def test_nothing_wanted_is_nothing_found(directory):
    none = ToScore(np.array([1, 2, 3], np.int32), np.zeros(3, bool))
    found = dict(open_hf(Score(threads=1), directory, 96).nll([none, *sequences(1)]))
    assert (len(found[0]), len(found[1]) > 0) == (0, True)


def test_the_identity_follows_the_weights(directory, tmp_path):
    first = open_hf(Score(), directory, 96).identity
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in directory.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    assert open_hf(Score(), copy, 96).identity == first
    content = bytearray((copy / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (copy / "model.safetensors").write_bytes(content)
    assert open_hf(Score(), copy, 96).identity != first


def test_a_directory_without_weights_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="holds no weights"):
        open_hf(Score(), tmp_path, 96)


def test_weights_that_are_none_are_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    scorer = open_hf(Score(), tmp_path, 96)
    with pytest.raises(UsageError, match="cannot load the model"):
        list(scorer.nll(sequences(1)))


@pytest.mark.parametrize(
    ("lengths", "most", "expected"),
    [
        ([3, 9, 5, 1], 10, [[1], [2, 0], [3]]),
        ([4, 4, 4], 12, [[0, 1, 2]]),
        ([4, 4, 4], 11, [[0, 1], [2]]),
        ([50, 2], 10, [[0], [1]]),
        ([], 10, []),
    ],
)
def test_batches_stay_within_their_tokens_the_longest_first(lengths, most, expected):
    assert list(batches_of(lengths, most)) == expected
