from __future__ import annotations

from turnmill.evaluation.paired import compared
from turnmill.evaluation.results import Evaluation, ItemLoss, Loss, SetLoss
from turnmill.report.evaluation_page import evaluation_page

ONE = Loss(10, 20.0, 10.0, 20.0)


def summary(**more) -> dict:
    sets = {"<b>": SetLoss("<b>", 0.5, 1.5, 3, ONE, {"answer": ONE}, 1.25, {"65 tokens; the model sees 64": 2})}
    found = Evaluation(2.0, ONE, sets, {"answer": ONE}, 1.25, {"gone": "no rows"}, "padded")
    return {**found.as_json(), "alarms": ["<b>: its loss 2.0000 lies above its floor 1.5"], "baseline": None, **more}


def test_losses_alarms_and_what_is_missing_are_shown():
    shown = evaluation_page(summary(), {"model": {"name": "my & model"}})
    for text in ("Evaluation of my &amp; model", "2.0000", "7.3891", "gone is missing: no rows", "answer"):
        assert text in shown
    assert "2 x 65 tokens; the model sees 64" in shown
    assert "&lt;b&gt;: its loss" in shown
    assert "<b>" not in shown


def test_the_baseline_has_a_table():
    items = [ItemLoss("set", row, 0, ONE, 0.0, {}) for row in "ab"]
    beside = compared(items, items)
    shown = evaluation_page(summary(baseline=beside.as_json()), {"model": {"name": "m"}})
    assert "Against the baseline" in shown
    assert "standard error" in shown
