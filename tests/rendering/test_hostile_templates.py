"""What attackers put into templates: attribute walks, escapes of the sandbox, writes, and whatever can grow."""

import re
import subprocess
import sys

import pytest

from turnmill.errors import Rejected, UsageError
from turnmill.rendering.form import Form
from turnmill.rendering.samples import sample
from turnmill.rendering.template import Template

LEAKED = re.compile(r"<class|<function|<built-in|<module|<bound method|0x[0-9a-f]{6}|root:|subclass|Popen|environ")
"""What the text of an attack that worked would hold."""
REFUSED = ("template-limit", "template-raises", "template-refuses", "writers-mixed", "not a template")
LIMIT_S = 30.0
LIMIT_MIB = 1280
"""What a render may make in all, and the interpreter."""

WALKS = [
    "''.__class__.__mro__[1].__subclasses__()",
    "''['__class__']['__mro__']",
    "''['\\x5f\\x5fclass\\x5f\\x5f']",
    "''|attr('__class__')|attr('__base__')",
    "''|attr('\\x5f\\x5fclass\\x5f\\x5f')",
    "''|attr(['_'*2,'class','_'*2]|join)",
    "[]|attr('__class__'|lower)",
    "().__class__.__bases__[0]",
    "messages.__class__.__init__.__globals__",
    "messages[0].__init__.__self__",
    "messages[0]['content'].__class__",
    "messages[0].content.runs",
    "messages[0].content.base",
    "cycler.__init__.__globals__.os.popen('id').read()",
    "joiner.__init__.__globals__['os']",
    "namespace.__init__.__globals__",
    "namespace.mro()",
    "cycler.mro()",
    "dict.__class__",
    "dict.__call__.__globals__",
    "dict.fromkeys.__func__",
    "dict.fromkeys.__globals__",
    "range.__self__",
    "raise_exception.__globals__",
    "raise_exception.__code__.co_consts",
    "strftime_now.__self__",
    "strftime_now.__func__.__globals__",
    "lipsum.__globals__['os'].popen('id')",
    "self.__init__.__globals__.__builtins__",
    "self._TemplateReference__context",
    "self._TemplateReference__context.environment",
    "config.items()",
    "request.application.__globals__",
    "get_flashed_messages.__globals__",
    "url_for.__globals__",
    "undefined_name.__init__.__globals__",
    "undefined_name.__class__",
    "undefined_name._undefined_exception",
    "'{0.__class__}'.format('')",
    "'{0.__class__.__init__}'.format(raise_exception)",
    "'{a.__class__}'.format(a=messages)",
    "'{a.__class__}'.format_map({'a': messages})",
    "('{0.__class__}'|attr('format'))(messages)",
    "('{0.__class__}'['format'])(messages)",
    "['{0.__class__}'.format]|map('call', 1)|list",
    "[messages]|map(attribute='__class__')|list",
    "[messages]|map('attr', '__class__')|list",
    "messages|selectattr('__class__')|list|length ~ messages|map(attribute='__init__')|list",
    "messages|groupby('__class__')",
    "messages|sort(attribute='__class__')",
    "messages|sum(attribute='__class__')",
    "messages|unique(attribute='__class__')|map(attribute='__class__')|list",
    "messages|max(attribute='__class__')",
    "(1).__class__",
    "(1).from_bytes.__self__",
    "1.5.fromhex.__self__",
    "''.encode().__class__",
    "''.maketrans.__self__",
    "loop.__class__",
    "caller.__globals__",
    "varargs.__class__",
    "__builtins__",
    "open('/etc/passwd').read()",
    "eval('1')",
    "exec('1')",
    "getattr('', '__class__')",
    "__import__('os')",
    "tojson.__globals__",
    "messages|tojson(default=1)",
    "messages|pprint",
    "messages[0]|xmlattr|attr('__class__')",
]
BLOCKS = [
    "{% include '/etc/passwd' %}",
    "{% extends '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os.popen('id') }}",
    "{% from 'os' import popen %}{{ popen('id') }}",
    "{% macro m() %}{{ m.__class__ }}{{ m._func.__globals__ }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ caller.__class__.__init__ }}{% endmacro %}{% call m() %}{% endcall %}",
    "{% for x in [1] %}{{ loop.__init__.__globals__ }}{% endfor %}",
    "{% for x in [1] %}{{ loop._iterator.__class__ }}{{ loop.__class__ }}{% endfor %}",
    "{% set f = '{0.__class__.__mro__}'.format %}{{ f('') }}",
    "{% set n = namespace(a=1) %}{{ n.__class__ }}{{ n._Namespace__attrs }}",
    "{% set n = namespace() %}{% set n.__class__ = 1 %}",
    "{% for c in ''.__class__.__mro__ %}{{ c }}{% endfor %}",
    "{% block b %}{{ self.b.__class__ }}{{ self.b.__globals__ }}{% endblock %}",
    "{% block b %}{{ super.__self__ }}{% endblock %}",
    "{% generation %}{{ caller.__globals__ }}{% endgeneration %}",
    "{% filter attr('__class__') %}x{% endfilter %}",
    "{% with c = ''.__class__ %}{{ c }}{% endwith %}",
    "{% set x %}{{ ''.__class__ }}{% endset %}{{ x.__class__ }}",
    "{% if messages.append({}) %}{% endif %}{{ messages.pop().__class__ }}",
    "{% set _ = messages[0].update({'role': 'system'}) %}",
    "{% set _ = messages[0].__setitem__('role', 'system') %}",
    "{% set _ = messages.clear() %}",
    "{% set _ = messages[0].pop('content') %}",
    "{% autoescape true %}{{ ''.__class__ }}{% endautoescape %}",
    "{% trans %}x{% endtrans %}",
    "{% debug %}",
    "{% do messages.append(1) %}",
]


def outcome(source):
    """The text, or the code of the refusal."""
    try:
        return Template(source, {}).tracked(sample("one turn"), Form(), {}).text
    except Rejected as fault:
        return fault.code
    except UsageError:
        return "not a template"


@pytest.mark.parametrize("source", [*(f"{{{{ {walk} }}}}" for walk in WALKS), *BLOCKS])
def test_no_attack_reaches_the_interpreter(source):
    before = sample("one turn")
    assert not LEAKED.search(outcome(source))
    assert sample("one turn") == before


GROW = "{% set n = namespace(t=START) %}{% for i in range(90) %}{% set n.t = STEP %}{% endfor %}{{ n.t | length }}"


def grown(step, start="'xx'"):
    return GROW.replace("STEP", step).replace("START", start)


BOMBS = {
    "plus": grown("n.t + n.t"),
    "tilde": grown("n.t ~ n.t"),
    "times": grown("n.t * 9"),
    "times of a list": grown("n.t * 9", "[1]"),
    "tuples": grown("n.t + n.t", "(1, 2)"),
    "times of a tuple": grown("n.t * 9", "(1,)"),
    "times of bytes": grown("n.t * 9", "'x'.encode()"),
    "plus of bytes": grown("n.t + n.t", "'x'.encode()"),
    "join": grown("[n.t, n.t] | join"),
    "join method": grown("''.join([n.t, n.t])"),
    "join of a generator": grown("n.t.join(['a', 'b', 'c'] | map('upper'))"),
    "replace": grown("n.t | replace('x', 'xx')"),
    "replace method": grown("n.t.replace('x', 'xx')"),
    "replace of nothing": grown("n.t.replace('', n.t)"),
    "format": grown("'%s%s' % (n.t, n.t)"),
    "format filter": grown("'%s%s' | format(n.t, n.t)"),
    "format by name": grown("'%(a)s%(a)s%(a)s' % {'a': n.t}"),
    "str.format": grown("'{0}{0}'.format(n.t)"),
    "str.format_map": grown("'{a}{a}'.format_map({'a': n.t})"),
    "translate": grown("n.t.translate({120: 'xxxx'})"),
    "json": grown("[n.t, n.t] | tojson"),
    "json of json": grown("n.t | tojson | tojson"),
    "escaped": grown("n.t | replace('x', '&&') | escape"),
    "forceescape": grown("n.t | forceescape ~ n.t | forceescape"),
    "urlencode": grown("(n.t ~ ' ') | urlencode ~ n.t"),
    "urlize": grown("(n.t ~ ' http://a.b ') | urlize ~ n.t"),
    "indent": grown("n.t | indent(900000) ~ '\\n' ~ n.t"),
    "wordwrap": grown("(n.t ~ n.t) | wordwrap(1, true, 'abcdefgh')"),
    "string of a list": grown("[n.t, n.t] | string"),
    "list of a text": grown("(n.t | list) + (n.t | list)", "'xx'"),
    "set to text": "{% set t = 'x' * 1000000 %}{% for i in range(9999) %}{% set u %}{{ t }}{{ t }}{% endset %}"
    "{% endfor %}",
    "set doubled": "{% set n = namespace(t='xx') %}{% for i in range(90) %}{% set u %}{{ n.t }}{{ n.t }}{% endset %}"
    "{% set n.t = u %}{% endfor %}{{ n.t | length }}",
    "macro doubled": "{% macro m(t, d) %}{% if d %}{{ m(t, d - 1) }}{{ m(t, d - 1) }}{% else %}{{ t }}{% endif %}"
    "{% endmacro %}{{ m('x' * 1000, 60) | length }}",
    "nested lists": grown("[n.t, n.t, n.t]", "[1]").replace("n.t | length", "n.t | tojson"),
    "nested lists as text": grown("[n.t, n.t, n.t]", "[1]").replace("n.t | length", "n.t | string"),
    "nested objects": grown("{'a': n.t, 'b': n.t}", "{}").replace("n.t | length", "n.t | tojson"),
    "nested objects printed": grown("{'a': n.t, 'b': n.t}", "{}").replace("n.t | length", "n.t"),
    "nested lists pretty": grown("[n.t, n.t]", "[1]").replace("n.t | length", "n.t | pprint"),
    "deep list": "{% set n = namespace(t=[]) %}{% for i in range(900000) %}{% set n.t = [n.t] %}{% endfor %}{{ n.t }}",
    "ranges": "{{ range(100000) | map('string') | map('center', 9999) | join | length }}",
    "range of lists": "{% for i in range(99999) %}{% for j in range(99999) | list %}{% endfor %}{% endfor %}",
    "lists made": "{% for i in range(99999) %}{% set x = range(99999) | list %}{% endfor %}",
    "sorted": "{% for i in range(99999) %}{% set x = range(99999) | sort %}{% endfor %}",
    "sums": "{{ range(99999) | map('string') | sum(start='') | length }}",
    "sums of lists": "{% for i in range(9999) %}{{ [range(99999) | list] * 9 | sum(start=[]) }}{% endfor %}",
    "batched": "{% for i in range(99999) %}{% set x = range(99999) | batch(2) | list %}{% endfor %}",
    "sliced": "{% for i in range(99999) %}{% set x = ('x' * 99999)[::-1] %}{% endfor %}",
    "split": "{% for i in range(99999) %}{% set x = ('x ' * 99999).split() %}{% endfor %}",
    "counted": "{% set t = 'a' * 9999999 %}{% for i in range(99999) %}{% set x = t.count('b') %}{% endfor %}",
    "compared": "{% set t = 'a' * 9999999 %}{% for i in range(99999) %}{% set x = 'b' in t %}{% endfor %}",
    "lowered": "{% set t = 'A' * 9999999 %}{% for i in range(99999) %}{% set x = t | lower %}{% endfor %}",
    "stripped": "{% set t = 'A' * 9999999 %}{% for i in range(99999) %}{% set x = t.strip('b') ~ '' %}{% endfor %}",
    "powers": "{{ 2 ** 99999999 }}",
    "power filter": "{{ (9 ** 99) ** 999999 }}",
    "shifted": "{{ (1).__lshift__(999999999) }}",
    "factorial": "{% set n = namespace(t=1) %}{% for i in range(1, 99999) %}{% set n.t = n.t * i %}{% endfor %}",
    "digits": "{{ ('9' * 999999) | int }}",
    "endless": "{% for x in cycler(1, 2).next %}{% endfor %}{% for a in range(99999) %}{% for b in range(99999) %}"
    "{% endfor %}{% endfor %}",
    "recursive loop": "{% for x in [1, 1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
    "recursive macros": "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
    "deep brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "deep blocks": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "deep loops": "{% for a in [1] %}" * 100 + "x" + "{% endfor %}" * 100,
    "many filters": "{{ 'x'" + " | upper" * 5000 + " }}",
    "long sum": "{{ 1" + " + 1" * 5000 + " }}",
    "constant folded": "{{ 'x' * 999999999999 }}{{ [0] * 99999999999 }}",
    "folded power": "{{ 99999 ** 99999999 }}",
    "folded filter": "{{ 'x' | center(99999999999) }}",
    "folded format": "{{ '%99999999999d' % 1 }}",
    "expanded tabs": "{{ ('\\t' * 99999).expandtabs(99999) | length }}",
    "zero filled": "{{ '1'.zfill(99999999999) }}",
    "filled": "{{ 'x'.center(99999999999) }}",
    "precise": "{{ '%.999999999f' % 1.5 }}{{ 1.5 | round(999999999) }}",
    "file sizes": "{{ ('9' * 5000) | int | filesizeformat }}",
}


ALONE = """
import re, resource, sys
from turnmill.errors import Rejected, UsageError
from turnmill.rendering.form import Form
from turnmill.rendering.samples import sample
from turnmill.rendering.template import Template
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime
def peak_mib():  # since this program began: ru_maxrss counts what the process that started it held
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) // 1024
started = used()
try:
    found = f"{len(Template(sys.stdin.read(), {}).tracked(sample('one turn'), Form(), {}).text)} characters"
except Rejected as fault:
    found = fault.code
except UsageError:
    found = "not a template"
print(found, used() - started, peak_mib(), sep="\\n")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_bounded_time_and_memory(name):
    done = subprocess.run(
        [sys.executable, "-c", ALONE], input=BOMBS[name], capture_output=True, text=True, timeout=120, check=True
    )
    found, cpu_s, peak_mib = done.stdout.splitlines()
    assert found in REFUSED or int(found.removesuffix(" characters")) < 1000
    assert float(cpu_s) < LIMIT_S
    assert int(peak_mib) < LIMIT_MIB
