from __future__ import annotations

from turnmill.report.training_page import MOST_EVALUATIONS, training_page

SUMMARY = {
    "steps": 3, "best": {"step": 2, "loss": 1.25}, "evaluated": True, "method": "lora", "trainer": "trl",
    "ended": "data", "dtype": "float32", "device": "cpu", "ranks": 2,
    "packing": {"layout": "flat", "reason": "kept <apart>"},
    "data": {"folder": "out", "fingerprint": "f" * 64, "trained_tokens": 1234, "template": "its own"},
    "model": {"directory": "m", "parameters": 10_000, "trained_parameters": 500},
}  # fmt: skip
STEPS = [{"step": n, "loss": 3.0 / n, "learning_rate": 0.1, "grad_norm": 1.0} for n in (1, 2, 3)]


def evaluation(step: int, *sets: str, best: bool = False) -> dict:
    losses = {f"eval/{name}/loss": 1.0 + step for name in sets}
    return {
        "step": step,
        "eval/loss": 1.0 + step,
        "eval/ppl": 2.0,
        "eval/kind/answer/loss": 0.5,
        **losses,
        "best": best,
    }


def test_it_says_what_was_trained_on_what():
    page = training_page(SUMMARY, [*STEPS, {"step": 3, "epoch": 1, "micro_batches": 7}])
    for said in ("step 2, whose evaluation was the best (1.2500)", "500 of 10,000 train (lora)", "ffffffffffffffff",
                 "1,234", "kept &lt;apart&gt;", '<td class="number">7</td>'):  # fmt: skip
        assert said in page
    assert "Evaluation by set" not in page


def test_sets_and_kinds_have_lines_and_columns():
    page = training_page(SUMMARY, [*STEPS, evaluation(1, "code", "chat"), evaluation(2, "code", "chat", best=True)])
    assert all(f"</span>{name}" in page for name in ("all", "code", "chat", "answer"))
    assert "best so far" in page
    assert "</span>all" not in training_page(SUMMARY, [*STEPS, evaluation(1, "code")])


def test_of_many_evaluations_the_last_and_the_best_are_listed():
    many = [evaluation(step, "code", best=step == 3) for step in range(1, MOST_EVALUATIONS + 20)]
    page = training_page(SUMMARY, [*STEPS, *many])
    rows = page.partition("<h2>Evaluations</h2>")[2].partition("</table>")[0]
    assert rows.count("<tr>") == MOST_EVALUATIONS + 2
    assert '<td class="number">3</td>' in rows


def test_without_an_evaluation_it_says_so():
    page = training_page({**SUMMARY, "best": None, "evaluated": False}, STEPS)
    assert "nothing was evaluated" in page
