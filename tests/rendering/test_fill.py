"""A replayed render is the template's own: text, spans, segments and counts, or there is none."""

import json
from collections import Counter

import msgspec
import pytest

from fuzz.replays import OPTIONS, ReplayFuzz, Replays
from hostile_content import Contents
from tests_support import TRANSFORMERS_TOKENS, stops_of_template
from turnmill.errors import Rejected, UsageError
from turnmill.rendering import fill, shapes
from turnmill.rendering.fill import BUILD_AT, BUILD_TOLD_AT, PROVEN_USES, build, inputs_of
from turnmill.rendering.passages import is_same
from turnmill.rendering.renderer import Renderer
from turnmill.rendering.samples import SAMPLES, conversation, sample
from turnmill.rendering.steps import Refused


def renderer(source, **options):
    return Renderer(source, TRANSFORMERS_TOKENS, stops_of_template(source), **options)


def replays_of(templates, rows, seed=0):
    """What became of so many hostile rows of every sample's shape, over all templates."""
    counts = Counter()
    for path in sorted(templates.glob("*.jinja")):
        try:
            rendering = renderer(path.read_text())
        except UsageError:
            continue
        for number, name in enumerate(SAMPLES):
            replays = Replays(rendering, Contents(seed + number))
            replays.run(sample(name), rows)
            assert replays.wrong == ""
            counts += replays.counts
    return counts


def test_replays_are_the_templates_own_renders_on_every_template(trl_templates):
    counts = replays_of(trl_templates, 4)
    assert counts["replayed"] > 700
    assert counts["built"] > 1000
    assert counts["told"] > 800


@pytest.mark.slow
def test_replays_are_the_templates_own_renders_on_many_rows(trl_templates):
    assert replays_of(trl_templates, 60, seed=1000)["replayed"] > 20_000


def test_the_fuzz_draws_every_option_and_finds_nothing(trl_templates):
    fuzz = ReplayFuzz(5, [trl_templates], rows=6)
    fuzz.paths = [path for path in fuzz.paths if path.stem in ("qwen3", "glm4moe", "gptoss")]
    for number in range(60):
        fuzz.case(number)
    assert len({options for _, options in fuzz._renderers}) == len(OPTIONS)
    assert fuzz.counts["replayed"] > 100
    assert fuzz.wrong == []


def outcome(rendering, row):
    try:
        return rendering.render(row)
    except Rejected as fault:
        return fault.code


@pytest.mark.parametrize("template", ["qwen3", "qwen2_5", "llama3_1", "gptoss", "glm4moe", "gemma3", "deepseekv3"])
def test_replays_change_no_render_no_rejection_and_no_count(trl_templates, template):
    source = (trl_templates / f"{template}.jinja").read_text()
    rendering, plain, contents = renderer(source), renderer(source, accelerate=False), Contents(7)
    for name in SAMPLES:
        for _ in range(10):
            row = contents.into(sample(name))
            assert outcome(rendering, row) == outcome(plain, row)
    assert rendering.counts == plain.counts
    assert rendering.fills.served > 20


CHAT = """
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}BODY{{ '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


def body(text):
    return CHAT.replace("BODY", text)


def two(question, answer):
    return conversation((("user", question), ("answer", answer)))


def program_of(source, row):
    rendering = renderer(source)
    form, kwargs = rendering.probe.form, rendering.kwargs_of(row)
    return build(rendering.template.recorded(row, form, kwargs), *rendering._rendered(row, kwargs))


@pytest.mark.parametrize(
    ("text", "first", "other", "is_replayed"),
    [
        ("{{ message.content }}", ("q", "a"), ("much longer", "é\n"), True),
        ("{{ message.content | trim }}", ("q", "a"), (" q ", "\na\n"), True),
        ("{{ message.content }}{% if message.content == 'a' %}!{% endif %}", ("q", "a"), ("q", "b"), False),
        ("{{ message.content }}{% if 'x' in message.content %}!{% endif %}", ("q", "ax"), ("q", "xb"), True),
        ("{{ message.content }}{% if 'x' in message.content %}!{% endif %}", ("q", "ax"), ("q", "b"), False),
        ("{{ message.content }}{% if message.content in ['a', 'b'] %}!{% endif %}", ("q", "a"), ("q", "b"), True),
        ("{{ message.content }}{% if message.content not in 'abc' %}!{% endif %}", ("q", "a"), ("q", "z"), False),
        (
            "{{ message.content }}{% if message.content | length > 3 %}!{% endif %}",
            ("q", "long"),
            ("r", "longer"),
            True,
        ),
        ("{{ message.content }}{% if message.content | length > 3 %}!{% endif %}", ("q", "long"), ("q", "a"), False),
        ("{{ message.content.split('|')[-1] }}", ("q", "a"), ("q|r", "b|c|d"), True),
        ("{% for part in message.content.split('|') %}{{ part }}{% endfor %}", ("q", "a|b"), ("r", "c|d"), True),
        ("{% for part in message.content.split('|') %}{{ part }}{% endfor %}", ("q", "a|b"), ("r", "c"), False),
        ("{{ message.content }}{% if message.content.startswith('a') %}!{% endif %}", ("q", "a"), ("q", "b"), False),
        ("{{ message.content[1:] if message.content[0] == 'a' else message.content }}", ("q", "ab"), ("q", "ac"), True),
        ("{{ message.content or 'nothing' }}", ("q", "a"), ("q", ""), False),
        (
            "{% set ns = namespace(text='') %}{% set ns.text = message.content %}{{ ns.text }}",
            ("q", "a"),
            ("r", "b"),
            True,
        ),
        ("{{ ['<', message.content, '>'] | join }}", ("q", "a"), ("r", "b"), True),
        ("{{ message.content | replace('a', 'b') }}", ("q", "xay"), ("r", "aa"), True),
    ],
)
def test_a_guard_holds_or_there_is_no_replay(text, first, other, is_replayed):
    row = two(*other)
    rendering = renderer(body(text))
    found = program_of(body(text), two(*first)).fill(inputs_of(row, rendering.probe.form))
    assert (found is not None) == is_replayed
    if found is not None:
        assert is_same(found, rendering._rendered(row, rendering.kwargs_of(row)))


@pytest.mark.parametrize(
    "text",
    [
        "{{ message.content | indent }}",
        "{{ message.content }}{% set n = message.content | int %}{% if n > 3 %}!{% endif %}",
        "{{ message.content }}{% set n = message.content.find('a') %}",
        "{{ message.content }}{% for letter in message.content %}{% endfor %}",
        "{{ message.content }}{% set found = {'a': 1}[message.content] %}",
        "{{ message.content }}{% set half = message.content | length // 2 %}",
        "{{ message.content }}{{ 'abcdef'[:message.content | length] }}",
        "{{ message.content }}{% set all = [message.content, 'b'] | sort %}",
        "{{ message.content }}{% if message.content < 'm' %}!{% endif %}",
        "{{ '%s' | format(message.content) }}",
        "{{ ('\\n' ~ message.content) | trim }}",
        "{{ message.content | replace('q', 'x' * 1000) }}",
        "{{ message.content }}{% if 'a' in message.content in 'ab' %}!{% endif %}",
    ],
)
def test_what_cannot_be_recorded_is_refused(text):
    with pytest.raises(Refused):
        program_of(body(text), two("q", "a"))


def test_an_object_that_the_template_prints_is_refused():
    source = body("{{ message.content }}{% for call in message.tool_calls %}{{ call.function.arguments }}{% endfor %}")
    row = sample("tool call")
    with pytest.raises(Refused):
        renderer(source).template.recorded(row, renderer(source).probe.form, {})


def test_a_program_is_built_at_the_third_sight_and_proven_on_its_first_uses(monkeypatch):
    monkeypatch.setattr(fill, "PROVE_EVERY", 1 << 64)
    rendering, plain = (
        renderer(body("{{ message.content }}")),
        renderer(body("{{ message.content }}"), accelerate=False),
    )
    rows = [two(f"question {n}", f"answer {n}") for n in range(20)]
    assert [rendering.render(row) for row in rows] == [plain.render(row) for row in rows]
    assert rendering.fills.served == len(rows) - BUILD_AT - PROVEN_USES
    assert rendering.counts == plain.counts


def test_another_way_through_the_template_is_another_program():
    rendering = renderer(body("{{ message.content }}{% if 'x' in message.content %}!{% endif %}"))
    for n in range(20):
        rendering.render(two(f"q{n}", "x" if n % 2 else "y"))
    (shape,) = rendering.fills._shapes.tried.values()
    assert len(shape.programs) == 2


def test_a_shape_that_is_refused_is_not_tried_again():
    rendering = renderer(body("{{ message.content | indent }}"))
    for n in range(10):
        rendering.render(two(f"q{n}", "a"))
    (shape,) = rendering.fills._shapes.tried.values()
    assert (shape.is_refused, shape.sights, rendering.fills.served) == (True, 10, 0)


@pytest.mark.parametrize("spans_every", [1, 1 << 64])
def test_one_wrong_replay_ends_them_all(monkeypatch, spans_every):
    monkeypatch.setattr(fill, "PROVE_SPANS_EVERY", spans_every)
    monkeypatch.setattr(fill, "PROVE_EVERY", 1)
    rendering, plain = (
        renderer(body("{{ message.content }}")),
        renderer(body("{{ message.content }}"), accelerate=False),
    )
    for n in range(10):
        rendering.render(two(f"q{n}", "a"))
    (shape,) = rendering.fills._shapes.tried.values()
    shape.programs[0].outline.layout[0] = "<|im_start|>User\n"
    row = two("q", "a")
    assert rendering.render(row) == plain.render(row)
    assert rendering.fills.distrusted
    assert rendering.counts["render/replay-distrusted"] == 1
    assert rendering.render(row) == plain.render(row)


def of_turns(turns):
    return conversation((("user", "q"), ("answer", "a")) * turns)


def test_of_shapes_that_are_rare_nothing_is_kept():
    rendering = renderer(body("{{ message.content }}"))
    for turns in range(1, 30):
        rendering.render(of_turns(turns))
    assert not rendering.fills._shapes.tried


def test_sights_of_a_shape_are_forgotten_before_they_are_too_many(monkeypatch):
    monkeypatch.setattr(shapes, "MAX_SIGHTED", 2)
    rendering = renderer(body("{{ message.content }}"))
    for turns in (1, 2, 3) * 2 * BUILD_AT:
        rendering.render(of_turns(turns))
    assert not rendering.fills._shapes.tried
    assert len(rendering.fills._shapes._sights) == 2


def test_programs_are_forgotten_before_they_hold_too_much(monkeypatch):
    monkeypatch.setattr(shapes, "MAX_HELD", 150)
    rendering = renderer(body("{{ message.content }}"))
    for turns in range(1, 6):
        for _ in range(BUILD_TOLD_AT):
            rendering.render(of_turns(turns))
    kept = rendering.fills._shapes
    assert 0 < sum(shape.size for shape in kept.tried.values()) == kept.held <= 150
    assert len(kept.tried) < 5


def called(name, city):
    row = sample("tool call")
    messages = tuple(
        msgspec.structs.replace(message, recipient=f"functions.{name}", text=json.dumps({"city": city}))
        if message.is_call
        else msgspec.structs.replace(message, name=f"functions.{name}")
        if message.role == "tool"
        else message
        for message in row.messages
    )
    return msgspec.structs.replace(row, messages=messages)


@pytest.mark.parametrize(("template", "with_names"), [("qwen3", True), ("gptoss", False)])
def test_names_of_functions_are_part_of_the_shape_only_where_the_template_quotes_them(
    trl_templates, template, with_names
):
    source = (trl_templates / f"{template}.jinja").read_text()
    rendering, plain = renderer(source), renderer(source, accelerate=False)
    rows = [called(f"name{n % 2}", f"city {n}") for n in range(30)]
    assert [rendering.render(row) for row in rows] == [plain.render(row) for row in rows]
    assert rendering.fills._with_names == with_names
    assert rendering.fills.served > 10
    assert len(rendering.fills._shapes.tried) == (1 if with_names else 2)
