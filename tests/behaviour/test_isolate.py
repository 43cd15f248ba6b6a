"""`turnmill isolate`: which models may be fed packed rows."""

from __future__ import annotations

from tiny_models import save_tiny_model


def test_a_model_that_keeps_examples_apart_is_told_so(turnmill, tmp_path):
    done = turnmill("isolate", save_tiny_model(tmp_path, "llama"))
    assert done.code == 0
    assert "feed it: flat" in done.out
    assert "llama (sdpa, float32, cpu) keeps packed examples apart" in done.out


def test_a_model_that_does_not_ends_with_exit_3(turnmill, tmp_path):
    done = turnmill("isolate", save_tiny_model(tmp_path, "mamba2"))
    assert done.code == 3
    assert "feed it: padded" in done.out
    assert "float32, cpu) does not keep packed examples apart" in done.err
    assert f"turnmill prepare DATA --model {tmp_path} --pack.on false" in done.err


def test_the_attention_that_is_named_is_tried(turnmill, tmp_path):
    found = turnmill("isolate", save_tiny_model(tmp_path, "qwen3"), "--attention", "eager", "--json").json
    assert (found["attention"], found["isolates"], found["layout"]) == ("eager", True, "flat")
    assert [one["layout"] for one in found["layouts"]] == ["flat", "packed", "padded"]


def test_what_cannot_be_measured_is_null(turnmill, tmp_path):
    found = turnmill("isolate", save_tiny_model(tmp_path, "lfm2"), "--json").json
    flat = found["layouts"][0]
    assert (flat["leak"], flat["difference"]) == (None, None)
    assert flat["fault"].startswith("refused with")


def test_a_directory_without_a_model_is_refused(turnmill, tmp_path):
    refused = turnmill("isolate", tmp_path)
    assert refused.code == 2
    assert "holds no config.json" in refused.err
