"""Which turns stand right in a final render, and the fewest renders in which all of them do."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmill.rendering.history import BOTH, CALLED, PLAIN, REASONED, History, turns_of
from turnmill.rendering.samples import conversation

RIGHT = [  # template, row, per turn: (as inference would prompt it, with its reasoning)
    ("qwen2_5", PLAIN, "++ ++ ++"),
    ("qwen2_5", CALLED, "++ ++ ++ ++ ++ ++"),
    ("qwen3", PLAIN, "++ ++ ++"),
    ("qwen3", REASONED, "+- ++ ++"),
    ("qwen3", BOTH, "+- -- +- -+ ++"),
    ("qwen3_8", REASONED, "++ ++ ++"),
    ("gptoss", PLAIN, "++ ++ ++"),
    ("gptoss", REASONED, "+- ++ ++"),
    ("deepseekv3", PLAIN, "-+ -+ -+"),  # its prompt opens a think block that answers do not have
]


@pytest.fixture(scope="session")
def history_of(renderer_of):
    return lambda name: History(renderer_of(name))


def contexts(renderer, row, turns=None):
    kwargs = renderer.kwargs_of(row)
    wanted = range(len(turns_of(row))) if turns is None else turns
    return History(renderer).contexts(row, renderer.render(row), kwargs, wanted)


@pytest.mark.parametrize(("name", "lines", "want"), RIGHT)
def test_each_turn_is_compared_with_its_prompt(renderer_of, name, lines, want):
    found = contexts(renderer_of(name), conversation(lines))
    signs = [f"{'-+'[one.is_prompted]}{'-+'[one.is_reasoned]}" for one in found.values()]
    assert " ".join(signs) == want


@pytest.mark.parametrize(
    ("name", "lines", "want"),
    [
        ("qwen2_5", CALLED, True), ("qwen3", PLAIN, True), ("qwen3", CALLED, True), ("qwen3", REASONED, False),
        ("qwen3", BOTH, False), ("gptoss", REASONED, False), ("qwen3_8", REASONED, True),
    ],
)  # fmt: skip
def test_the_probe_tells_stable_kinds_of_rows(history_of, renderer_of, name, lines, want):
    row = conversation(lines)
    assert history_of(name).is_stable(row, renderer_of(name).kwargs_of(row)) is want


def test_a_quoted_think_tag_is_never_taken_for_stable(history_of, renderer_of):
    row = conversation((("user", "q"), ("answer", "the tag </think> ends it"), ("user", "r"), ("answer", "b")))
    assert not history_of("qwen3").is_stable(row, renderer_of("qwen3").kwargs_of(row))


def views(renderer, row, mode, turns=None):
    wanted = set(range(len(turns_of(row)))) if turns is None else turns
    return History(renderer).views(row, renderer.render(row), renderer.kwargs_of(row), wanted, mode)


def test_a_view_has_the_prompt_of_each_turn_that_trains_in_it(renderer_of):
    found, standing = views(renderer_of("qwen3"), conversation(BOTH), "auto")
    assert [sorted(view.turns) for view in found] == [[0, 1], [2, 3], [4]]
    assert all(context.is_right for context in standing.values())


def test_per_turn_is_a_view_a_turn(renderer_of):
    found, _ = views(renderer_of("qwen2_5"), conversation(CALLED), "per-turn", {1, 3, 5})
    assert [sorted(view.turns) for view in found] == [[1], [3], [5]]
    assert found[0].rendered.text.rstrip().endswith("Answerone<|im_end|>")


def test_turns_that_do_not_train_ask_for_no_view(renderer_of):
    found, _ = views(renderer_of("qwen3"), conversation(REASONED), "auto", {1, 2})
    assert len(found) == 1


def test_a_turn_that_no_render_mends_costs_no_example(renderer_of):
    found, standing = views(renderer_of("deepseekv3"), conversation(PLAIN), "auto")
    assert [sorted(view.turns) for view in found] == [[0, 1, 2]]
    assert not any(context.is_right for context in standing.values())


EXCHANGES = st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=3)


def lines_of(exchanges):
    """A user, calls that may be reasoned, and an answer, so many times."""
    lines = []
    for number, (reasons, calls) in enumerate(exchanges):
        lines.append(("user", f"Question{number}"))
        for call in range(calls):
            lines += [("reasoning", f"Plan{number}{call}")] * reasons
            lines += [("call", f"City{number}{call}"), ("result", f"Result{number}{call}")]
        lines += [("reasoning", f"Reason{number}")] * reasons
        lines.append(("answer", f"Answer{number}"))
    return tuple(lines)


@pytest.mark.parametrize("name", ["qwen3", "glm4moe", "qwen3_5_think"])
@settings(max_examples=15)
@given(exchanges=EXCHANGES)
def test_auto_takes_as_few_views_as_any_choice_could(renderer_of, name, exchanges):
    renderer, row = renderer_of(name), conversation(lines_of(exchanges))
    turns = set(range(len(turns_of(row))))
    covers = []
    for view in views(renderer, row, "per-turn")[0]:
        held = [turn for turn in turns if turn < len(turns_of(view.conversation))]
        kwargs = renderer.kwargs_of(row)
        stands = History(renderer).contexts(view.conversation, view.rendered, kwargs, held)
        covers.append({turn for turn, context in stands.items() if context.is_right})
    fewest = next(
        size
        for size in range(1, len(turns) + 1)
        if any(set().union(*chosen) == turns for chosen in itertools.combinations(covers, size))
    )
    found, _ = views(renderer, row, "auto")
    assert len(found) == fewest
    assert sorted(turn for view in found for turn in view.turns) == sorted(turns)
