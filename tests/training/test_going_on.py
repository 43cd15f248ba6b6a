"""Runs that were ended at an awkward moment, or that go back: nothing learned is lost, nothing is learned twice."""

from __future__ import annotations

import math
import resource
import shutil

import pytest
import transformers

from training_runs import FAST, interrupted_at, losses, train
from turnmill.config import load
from turnmill.errors import HealthError, Interrupted, UsageError
from turnmill.verbs import trained
from turnmill.verbs.train import Place, Telling, plan_of, run

OFTEN = {"save_every": 1, "keep_checkpoints": 9}


def killed_before_it_published(monkeypatch, *args, **options) -> None:
    """A run that was ended between its last checkpoint and its output."""

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trained, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            train(*args, **options)


ENDS = {
    "max_steps": {"max_steps": 3},
    "data": {"epochs": 1},
    "patience": {"epochs": 30, "eval_every": 1, "patience": 2, "learning_rate": 0.2},
}


@pytest.mark.parametrize("end", ENDS)
def test_a_run_that_only_had_to_be_published_learns_nothing_more(tiny, out, tmp_path, monkeypatch, end):
    options = ENDS[end]
    whole = train(out, tmp_path / "whole", tiny, **options)
    killed_before_it_published(monkeypatch, out, tmp_path / "model", tiny, **options)
    answer = train(out, tmp_path / "model", tiny, resume=True, **options)
    assert losses(tmp_path / "model") == losses(tmp_path / "whole")
    told = ("steps", "ended", "best", "epochs")
    assert [answer[name] for name in told] == [whole[name] for name in told]
    assert answer["ended"] == end


def test_a_run_that_goes_back_keeps_what_it_learns_from_there(tiny, out, tmp_path):
    with pytest.raises(Interrupted):
        train(out, tmp_path / "model", tiny, interrupted_at(5), epochs=3, save_every=1, keep_checkpoints=4)
    work = tmp_path / ".model.train"
    with pytest.raises(Interrupted, match="checkpoint-5"):
        train(
            out,
            tmp_path / "model",
            tiny,
            interrupted_at(4),
            epochs=3,
            save_every=9,
            keep_checkpoints=1,
            resume_from=work / "checkpoint-3",
        )
    assert [path.name for path in sorted(work.glob("checkpoint-*"))] == ["checkpoint-5"]


def test_a_checkpoint_whose_best_is_not_there_publishes_nothing(tiny, out, tmp_path):
    options = {"epochs": 3, "eval_every": 1, "learning_rate": 0.0, **OFTEN}
    with pytest.raises(Interrupted):
        train(out, tmp_path / "model", tiny, interrupted_at(3), **options)
    shutil.move(tmp_path / ".model.train" / "checkpoint-3", tmp_path / "checkpoint-3")
    shutil.rmtree(tmp_path / ".model.train")
    with pytest.raises(UsageError, match=r"are of step 1, and .*checkpoint-1 is not there"):
        train(out, tmp_path / "model", tiny, resume_from=tmp_path / "checkpoint-3", **options)
    assert not (tmp_path / "model").exists()


def test_an_output_that_appears_while_a_run_waits_is_not_replaced(tiny, out, tmp_path):
    config, origins = load(None, [(f"{name}", str(value)) for name, value in FAST.items()])
    late = plan_of(config, origins, Place(out, tmp_path / "model"), "turnmill prepare")
    train(out, tmp_path / "model", tiny, max_steps=1)
    with pytest.raises(UsageError, match="is there already"):
        run(late, Telling())


def test_ctrl_c_in_the_last_step_leaves_no_evaluation_out(tiny, out, tmp_path):
    answer = train(out, tmp_path / "model", tiny, interrupted_at(1), max_steps=2, eval_every=2)
    assert answer["best"]["step"] == 2


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_weights_that_a_last_step_broke_are_not_saved(tiny, broken):
    from turnmill.training.fed import require_numbers

    model = transformers.AutoModelForCausalLM.from_pretrained(tiny)
    require_numbers(model, 1)
    model.lm_head.weight.data[3, 2] = broken
    with pytest.raises(HealthError, match=r"lm_head\.weight holds no finite numbers behind step 1"):
        require_numbers(model, 1)


def test_a_full_disk_is_an_error_that_says_where(tiny, out, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(UsageError, match=r"cannot write a checkpoint into .*draft: .*File too large"):
            train(out, tmp_path / "model", tiny, max_steps=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert train(out, tmp_path / "model", tiny, max_steps=1)["steps"] == 1
