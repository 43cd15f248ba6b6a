"""Foreign templates may neither loop for ever, nor eat the memory, nor read the machine."""

import pytest

from turnmill.errors import Rejected, UsageError
from turnmill.rendering.form import Form
from turnmill.rendering.samples import sample
from turnmill.rendering.template import Template

DOUBLED = "{% set n = namespace(t='xx') %}{% for i in range(60) %}{% set n.t = GROWN %}{% endfor %}"
BOMBS = {
    "endless nested loops": "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "recursive macro": "{% macro m(n) %}{{ m(n + 1) }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
    "repeated text": "{{ 'x' * 1000000000 }}",
    "repeated list": "{{ ([0] * 1000000000) | length }}",
    "text doubled in a loop": DOUBLED.replace("GROWN", "n.t ~ n.t"),
    "list doubled in a loop": DOUBLED.replace("GROWN", "n.t + n.t").replace("'xx'", "[0]"),
    "text doubled by plus": DOUBLED.replace("GROWN", "n.t + n.t"),
    "growing replace": "{% set t = 'a' * 100000 %}{{ t.replace('a', t) }}",
    "growing replace filter": "{% set t = 'a' * 100000 %}{{ t | replace('a', t) }}",
    "growing join": "{% set t = 'a' * 100000 %}{{ t.join(range(99999) | list) }}",
    "growing join filter": "{% set t = 'a' * 100000 %}{{ range(99999) | join(t) }}",
    "padded format": "{{ '%999999999d' % 1 }}",
    "padded format of an argument": "{{ '%*d' % (999999999, 1) }}",
    "padded str.format": "{{ '{:>999999999}'.format('x') }}",
    "padded format filter": "{{ '%999999999d' | format(1) }}",
    "padding method": "{{ 'x'.ljust(999999999) }}",
    "padding filter": "{{ 'x' | center(999999999) }}",
    "indenting filter": "{{ 'x\ny' | indent(999999999) }}",
    "batches": "{{ [0] | batch(999999999, 1) | list }}",
    "slices": "{{ [0] | slice(999999999) | list }}",
    "great power": "{{ 9 ** 999999 }}",
    "powers of powers": "{% set n = namespace(t=9) %}{% for i in range(40) %}{% set n.t = n.t * n.t %}{% endfor %}",
    "indented json": "{{ {'a': 1} | tojson(indent=999999999) }}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(name):
    template = Template(BOMBS[name], {})
    with pytest.raises(Rejected) as refused:
        template.tracked(sample("one turn"), Form(), {})
    assert refused.value.code in ("template-limit", "template-raises")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ namespace(_x=1) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages[0].__class__ }}{{ 1 / 0 }}",
    ],
)
def test_the_sandbox_holds(source):
    with pytest.raises(Rejected):
        Template(source, {}).tracked(sample("one turn"), Form(), {})


@pytest.mark.parametrize("source", ["{{ lipsum() }}", "{{ [1, 2] | random }}", "{% for %}", "{{ x | from_json }}"])
def test_what_draws_randomness_or_is_no_template_is_refused(source):
    with pytest.raises((UsageError, Rejected)):
        Template(source, {}).tracked(sample("one turn"), Form(), {})


def test_a_long_conversation_is_within_the_limits(chatml):
    lines = (("user", "Question"), ("answer", "Answer")) * 2000
    from turnmill.rendering.samples import conversation

    assert len(chatml.render(conversation(lines)).prompt_ends) == 2000
