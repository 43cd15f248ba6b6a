"""A render put together of passages is the template's own, for conversations that no recording has seen, or is none."""

import pytest

from tests_support import TRANSFORMERS_TOKENS, stops_of_template
from turnmill.rendered import Rendered
from turnmill.rendering.blocks import Attributed
from turnmill.rendering.form import Form
from turnmill.rendering.passages import FREE_RECORDINGS, MAX_REFUSALS, Passages, is_same
from turnmill.rendering.renderer import Renderer
from turnmill.rendering.samples import conversation
from turnmill.rendering.template import Template

CHAT = """
{%- BEFORE %}{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}BODY{{ '<|im_end|>\\n' }}
{%- endfor %}AFTER
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

SHORT = (("user", "q"), ("answer", "a"))
LONG = (("system", "s"), *SHORT, ("user", "r"), ("answer", "b"), ("user", "x"), ("answer", "c"), *SHORT)
CALLED = (("user", "q"), ("call", "Cityone"), ("result", "b"), ("answer", "a"))


FORM = Form()


class Teller:
    """The passages of one template, each use of which is compared with its own render."""

    def __init__(self, body="{{ message.content }}", before="if true %}{% endif", after="", source=None, form=FORM):
        source = source or CHAT.replace("BODY", body).replace("BEFORE", before).replace("AFTER", after)
        self.template, self.form = Template(source, TRANSFORMERS_TOKENS), form
        self.passages = Passages(self.template, form)

    def learn(self, *shapes):
        for shape in shapes:
            row = conversation(shape)
            found = self.template.tracked(row, self.form, {})
            self.passages.learn(row, {}, finished, (found, bare(found)))
        return self

    def tell(self, *lines):
        """The text; None where a passage is not known."""
        row = conversation(lines)
        found, told = self.template.tracked(row, self.form, {}), self.passages.render(row, {}, finished)
        assert told is None or is_same((found, bare(found)), told[:2])
        return None if told is None else told.dialog.text


def bare(dialog):
    return Rendered(dialog.text, (), ())


def finished(dialog):
    return Attributed(bare(dialog), [], {})


TOLD = (
    "{{ message.content }}",
    "{{ message.content | trim }}",
    "{% if loop.first %}^{% endif %}{{ message.content }}{% if loop.last %}${% endif %}",
    "{{ message.content }}{% if messages[loop.index0 - 1].role == 'user' %}!{% endif %}",
    "{{ message.content }}{% if loop.index0 % 2 == 1 %}!{% endif %}",
    "{{ message.content }}{% if loop.index > messages | length - 2 %}!{% endif %}",
    "{{ message.content }}{% if 3 - loop.index > 0 %}!{% endif %}",
    "{{ message.content }}{% if messages[-1].role == 'assistant' %}!{% endif %}",
    "{{ message.content }}{% set ns.seen = ns.seen + 1 %}{% if ns.seen > 2 %}!{% endif %}",
    "{{ message.content }}{% if ns.last == message.content %}!{% endif %}{% set ns.last = message.content %}",
    "{{ message.content }}{% if loop.revindex0 == 0 %}!{% endif %}",
    "{{ message.content }}{% if loop.previtem is defined %}!{% endif %}",
    "{% if not loop.first and loop.previtem.role == 'assistant' %}^{% endif %}{{ message.content }}",
    "{{ message.content }}{% if loop.nextitem is defined and loop.nextitem.role == 'user' %}!{% endif %}",
    "{{ message.content }}{% if loop.last or loop.nextitem.content == 'x' %}!{% endif %}",
)
BEFORE = "set ns = namespace(seen=0, last='', it=none)"


@pytest.mark.parametrize("body", TOLD)
def test_long_conversations_are_told_from_short_ones(body):
    teller = Teller(body, BEFORE).learn(LONG[:3], LONG[:5], LONG, SHORT, LONG[1:5], LONG[1:7])
    assert teller.tell(*LONG, ("user", "more"), ("answer", "and more"))


REFUSED = (
    ("{{ message.content }}{{ loop.cycle('a', 'b') }}", BEFORE),
    ("{{ message.content }}{{ held | join }}", "set held = ['x', 'y'] | map('upper')"),
    ("{{ message.content }}{{ turn.next() }}", "set turn = cycler('a', 'b')"),
    ("{{ message.content }}{{ loop.index }}", BEFORE),
    ("{{ message.content }}{{ messages | length }}", BEFORE),
    ("{% if loop.last %}{{ messages[-2].role }}{{ messages[-2].content }}{% endif %}", BEFORE),
    ("{{ message.content }}{% for other in messages %}{% if other.role == 'user' %}.{% endif %}{% endfor %}", BEFORE),
    ("{{ message.content }}{{ messages | map(attribute='role') | join }}", BEFORE),
    ("{{ message.content }}{% if first == message.content %}!{% endif %}", "set first = messages[0].content"),
    ("{{ ns.last }}{{ message.content }}{% set ns.last = 'x' %}", BEFORE),
    ("{{ message.content }}{{ 'ab'[loop.index0 % 2] }}", BEFORE),
    ("{{ message.content }}{% set ns.it = [1] %}", BEFORE),
    ("{{ message.content }}{% if 1.5 < loop.index %}!{% endif %}", BEFORE),
    ("{{ message.content }}{% if half < loop.index %}!{% endif %}", "set half = 3 / 2"),
    ("{{ message.content }}{% if loop.index * 2 > 3 %}!{% endif %}", BEFORE),
    ("{{ message.content }}{% if '1.5' | float < loop.index %}!{% endif %}", BEFORE),
    ("{{ message.content }}{% set ns.it = ns %}", BEFORE),
    ("{{ message.content }}{{ dots() }}", "macro dots() %}{% for one in messages %}.{% endfor %}{% endmacro"),
    ("{{ message.content }}", "macro dots() %}{% for one in messages %}.{% endfor %}{% endmacro %}{{ dots() }}{% if 0"),
    ("{{ message.content }}", "set dots %}{% for one in messages %}.{% endfor %}{% endset %}{{ dots }}{% if 0"),
)
"""Body of the loop, and what stands before it."""


@pytest.mark.parametrize(("body", "before"), REFUSED)
def test_what_cannot_be_handed_from_passage_to_passage_is_not_told(body, before):
    before = f"{before} %}}{{% endif" if before.endswith("{% if 0") else before
    shape = (("user", "q"), ("user", "r"), ("user", "s"))
    assert Teller(body, before).learn(shape).tell(*shape) is None


WAYS = (
    ("set is_short = messages | length < 4", "{% if is_short %}short{% endif %}", "short"),
    ("set has_system = messages[0].role == 'system'", "{% if has_system %}S{% endif %}", ""),
    ("set messages = messages[1:] if messages[0].role == 'system' else messages", "", ""),
)


@pytest.mark.parametrize(("before", "after", "shown"), WAYS)
def test_the_way_taken_outside_of_loops_is_told_apart(before, after, shown):
    teller = Teller(before=before, after=after).learn(SHORT, LONG, LONG[:3], LONG[1:5])
    assert teller.tell(("user", "other"), ("answer", "text")).endswith(f"text<|im_end|>\n{shown}")
    assert teller.tell(("system", "other"), *SHORT, *SHORT)


def test_a_loop_that_is_left_early_is_left_early_again():
    teller = Teller("{{ message.content }}{% if message.content == 'END' %}{% break %}{% endif %}")
    teller.learn(SHORT, (("user", "q"), ("answer", "END"), ("user", "r"), ("answer", "b")))
    assert teller.tell(("user", "q"), ("answer", "END"), *SHORT).count("<|im_start|>") == 2
    assert teller.tell(*SHORT, *SHORT, *SHORT).count("<|im_start|>") == 6


def test_the_first_message_is_not_taken_for_the_one_at_hand():
    teller = Teller("{% if loop.last and message.role == 'user' %}{{ messages[0].content }}{% endif %}")
    teller.learn((("user", "q"),), (("user", "q"), ("user", "r")))
    assert teller.tell(("user", "1"), ("user", "2"), ("user", "3")).count("1") == 1
    assert teller.tell(("user", "1")).count("1") == 1


def test_calls_are_told_with_the_tools_of_the_row(trl_templates):
    teller = Teller(source=(trl_templates / "qwen3.jinja").read_text())
    teller.learn((*CALLED, *CALLED), (*SHORT, *CALLED, *SHORT))
    assert teller.tell(*CALLED, *SHORT, *CALLED, *CALLED)


def test_a_template_that_refuses_is_asked_a_few_times_alone():
    teller = Teller("{{ message.content }}{{ loop.index }}").learn(*[SHORT] * 10)
    assert teller.passages.is_off
    assert teller.passages._recordings == MAX_REFUSALS


def rounds(length):
    return conversation(SHORT * length)


def rendering():
    source = CHAT.replace("BODY", "{{ message.content }}").replace("{%- BEFORE %}", "").replace("AFTER", "")
    return Renderer(source, TRANSFORMERS_TOKENS, stops_of_template(source))


def test_rare_shapes_are_told_and_proven_once():
    renderer, plain = rendering(), rendering()
    plain.fills = None
    for length in range(1, 40):
        assert renderer.render(rounds(length)) == plain.render(rounds(length))
    assert renderer.fills.served > 40 - FREE_RECORDINGS
    assert renderer.fills.passages.served >= renderer.fills.served
    assert renderer.counts == plain.counts


def test_one_wrong_passage_ends_all():
    renderer = rendering()
    for length in range(1, 12):
        renderer.render(rounds(length))
    ((first,),) = renderer.fills.passages._first.values()
    next(iter(first.own.values()))[0]._texts[0] = "wrong"
    first.uses = 0
    assert renderer.render(rounds(20)).text.startswith("<|im_start|>user")
    assert renderer.fills.distrusted
    assert renderer.counts["render/replay-distrusted"] == 1


SYSTEM_FIRST = """
{%- if messages[0].role == 'system' %}{% set rest = messages[1:] %}{% set said = messages[0].content %}
{%- else %}{% set rest = messages %}{% set said = '' %}{% endif %}{{ '<s>' + said.strip() + '</s>' }}
{%- for message in rest %}{{ '<|im_start|>' + message.role + '\\n' + message.content.strip() + '<|im_end|>\\n' }}
{%- endfor %}"""


def test_a_field_of_several_messages_is_left_to_the_template():
    """Whose each part is depends on which are empty: an empty first text would make all of it the second's."""
    joined = (("system", ""), ("system", "s"), *SHORT)
    teller = Teller(source=SYSTEM_FIRST, form=Form(several_systems=False)).learn(joined, joined, SHORT)
    assert teller.tell(("system", "one"), ("system", "two"), *SHORT) is None
    assert teller.tell(*SHORT) is not None
