"""Random small chat templates, conversations of sentinel words, and what spans may say, judged by those words alone."""

from __future__ import annotations

import random
import re
from collections import defaultdict

from turnmill.conversation import Conversation
from turnmill.rendered import TRAINED_KINDS, Rendered
from turnmill.rendering.samples import conversation

STOP = "<|im_end|>"
WORD = re.compile(r"[UTMCRA]word\d+(?:x\d)?", re.IGNORECASE)
HEADER = re.compile("Huser|Hmodel|Hafter|im_start")
KINDS = {"T": "reasoning", "M": "answer", "A": "answer", "C": "call"}
"""First letter of a sentinel word → what it trains as; the words of others (U, R) do not train."""

LOOPS = {
    "plain": "{% for m in messages %}BODY{% endfor %}",
    "range": "{% for i in range(messages|length) %}{% set m = messages[i] %}BODY{% endfor %}",
    "copied": (
        "{% set ns = namespace(l=[]) %}{% for x in messages %}"
        "{% set ns.l = ns.l + [{'role': x.role, 'content': x.content}] %}{% endfor %}"
        "{% for m in ns.l %}BODY{% endfor %}"
    ),
    "sliced": "{% for m in messages[:1] %}BODY{% endfor %}{% for m in messages[1:] %}BODY{% endfor %}",
    "macro": "{% macro say(m) %}BODY{% endmacro %}{% for m in messages %}{{ say(m) }}{% endfor %}",
    "caller": (
        "{% macro wrap() %}{{ caller() }}{% endmacro %}{% for m in messages %}"
        "{% call wrap() %}BODY{% endcall %}{% endfor %}"
    ),
    "collected": (
        "{% set ns = namespace(t='') %}{% for m in messages %}{% set b %}BODY{% endset %}"
        "{% set ns.t = ns.t ~ b %}{% endfor %}{{ ns.t }}"
    ),
    "added": (
        "{% set ns = namespace(t='') %}{% for m in messages %}{% set b %}BODY{% endset %}"
        "{% set ns.t = ns.t + b %}{% endfor %}{{ ns.t }}"
    ),
    "listed": (
        "{% set ns = namespace(l=[]) %}{% for m in messages %}{% set b %}BODY{% endset %}"
        "{% set ns.l = ns.l + [b] %}{% endfor %}{{ ns.l | join('') }}"
    ),
    "filtered": "{% for m in messages %}{% filter trim %}BODY{% endfilter %}{{ '\n' }}{% endfor %}",
    "whole filter": "{% filter replace('Qqq', 'q') %}{% for m in messages %}BODY{% endfor %}{% endfilter %}",
    "paired": "{% for pair in messages | batch(2) %}{% for m in pair %}BODY{% endfor %}{% endfor %}",
    "unpacked": (
        "{% for u, a in messages | batch(2, {'role': 'none', 'content': ''}) %}"
        "{% set m = u %}BODY{% set m = a %}BODY{% endfor %}"
    ),
    "reversed": "{% for m in messages | reverse %}BODY{% endfor %}",
    "reversed twice": "{% for m in messages | reverse | list | reverse %}BODY{% endfor %}",
    "twice": "{% for m in messages %}BODY{% endfor %}{% for m in messages %}BODY{% endfor %}",
    "selected": (
        "{% for m in messages | selectattr('role', 'equalto', 'user') %}BODY{% endfor %}"
        "{% for m in messages | rejectattr('role', 'equalto', 'user') %}BODY{% endfor %}"
    ),
    "mapped": ("{% for m in messages %}{% for k, v in m.items() if k == 'role' %}BODY{% endfor %}{% endfor %}"),
    "dropping": "{% for m in messages[-2:] %}BODY{% endfor %}",
    "inner loop": "{% for m in messages %}{% for x in [1] %}BODY{% endfor %}{% endfor %}",
    "recursive": "{% for m in messages recursive %}BODY{% endfor %}",
    "grouped": ("{% for g in messages | groupby('role') %}{% for m in g.list %}BODY{% endfor %}{% endfor %}"),
    "while": (
        "{% set ns = namespace(i=0) %}{% for _ in messages %}{% set m = messages[ns.i] %}"
        "BODY{% set ns.i = ns.i + 1 %}{% endfor %}"
    ),
    "other first": "{% set last = messages | last %}{% for m in messages %}BODY{% endfor %}",
}
"""Ways to come from message to message; BODY is written for each `m`."""
CONTENTS = {
    "plain": "{{ m.content }}",
    "subscript": "{{ m['content'] }}",
    "trim": "{{ m.content | trim }}",
    "strip": "{{ m.content.strip() }}",
    "get": "{{ m.get('content') }}",
    "percent": "{{ '%s' % m.content }}",
    "format": "{{ '{}'.format(m.content) }}",
    "format filter": "{{ '%s' | format(m.content) }}",
    "concat": "{{ '' ~ m.content ~ '' }}",
    "sum": "{{ '' + m.content }}",
    "split": "{{ m.content.split('zz')[-1] }}",
    "chars": "{% for c in m.content %}{{ c }}{% endfor %}",
    "json": "{{ m.content | tojson }}",
    "whole json": "{{ m | tojson }}",
    "all json": "{{ messages | tojson }}",
    "message json": "{{ messages[loop.index0:] | tojson }}",
    "repr": "{{ m }}",
    "all repr": "{{ messages }}",
    "string": "{{ m | string }}",
    "indent": "{{ m.content | indent(2) }}",
    "title": "{{ m.content | title }}",
    "center": "{{ m.content | center(30) }}",
    "center method": "{{ m.content.center(30) }}",
    "escape": "{{ m.content | e }}",
    "list join": "{{ [m.content] | join(' ') }}",
    "map join": "{{ [m] | map(attribute='content') | join }}",
    "map upper": "{{ [m.content] | map('trim') | join }}",
    "replace": "{{ m.content | replace('zz', 'y') }}",
    "safe": "{{ m.content | safe }}",
    "default": "{{ m.content | default('none') }}",
    "set": "{% set c = m.content %}{{ c }}",
    "block": "{% set c %}{{ m.content }}{% endset %}{{ c }}",
    "with": "{% with c = m.content %}{{ c }}{% endwith %}",
    "twice": "{{ m.content }}{{ m.content }}",
    "wordwrap": "{{ m.content | wordwrap(60) }}",
    "truncate": "{{ m.content | truncate(200) }}",
    "encode": "{{ m.content.encode().decode() }}",
    "translate": "{{ m.content.translate({}) }}",
    "zfill": "{{ m.content.zfill(3) }}",
    "sorted": "{{ [m.content] | sort | first }}",
    "unique": "{{ [m.content] | unique | first }}",
    "values": "{{ (m.values() | list)[1] }}",
    "items": "{% for k, v in m.items() %}{% if k == 'content' %}{{ v }}{% endif %}{% endfor %}",
    "pprint": "{{ m.content | pprint }}",
    "urlize": "{{ m.content | urlize }}",
    "striptags": "{{ m.content | striptags }}",
    "join method": "{{ ''.join([m.content]) }}",
    "reverse": "{{ m.content | reverse | reverse }}",
    "slices": "{{ m.content[:3] }}{{ m.content[3:] }}",
    "xmlattr": "{{ {'a': m.content} | xmlattr }}",
    "dict": "{{ dict(a=m.content).a }}",
    "cond": "{{ m.content if m.content else 'none' }}",
    "or": "{{ m.content or '' }}",
    "list": "{{ m.content | list | join }}",
}
"""Ways to write a message's text."""
LEAKS = {
    "none": "",
    "previous": "{{ loop.previtem.content }}",
    "next": "{{ loop.nextitem.content }}",
    "first": "{{ messages[0].content }}",
    "last": "{{ messages[-1].content }}",
    "first percent": "{{ '%s' % messages[0].content }}",
    "first format": "{{ '{}'.format(messages[0].content) }}",
    "first repr": "{{ messages[0] }}",
    "first two json": "{{ messages[:2] | tojson }}",
    "rest json": "{{ messages[1:3] | tojson }}",
    "first title": "{{ messages[0].content | indent }}",
    "first center": "{{ messages[0].content.center(30) }}",
    "first escape": "{{ messages[0].content | e }}",
    "list": "{{ messages | map(attribute='content') | join(' ') }}",
    "list repr": "{{ messages | map(attribute='content') | list }}",
    "users": ("{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(' ') }}"),
    "encoded": "{{ messages[0].content.encode().decode() }}",
    "concat repr": "{{ 'x' ~ messages[:2] }}",
    "mod both": "{{ '%s %s' % (m.content, messages[0].content) }}",
    "pprint": "{{ messages[0].content | pprint }}",
    "wordwrap": "{{ messages[0].content | wordwrap }}",
    "kwargs": "{{ '{a}'.format(a=messages[0].content) }}",
    "lengths": " {{ messages | length }}",
    "dictsort": "{% for k, v in messages[0] | dictsort %}{{ v }}{% endfor %}",
    "string": "{{ messages[:1] | string }}",
    "sum": "{{ messages | map(attribute='content') | sum(start='') }}",
    "replace": "{{ 'XX' | replace('XX', messages[0].content) }}",
    "replace method": "{{ 'XX'.replace('XX', messages[0].content) }}",
    "replace in": "{{ m.content.replace(m.content, messages[0].content) }}",
    "join by": "{{ ['a', 'b'] | join(messages[0].content) }}",
    "ljust": "{{ messages[0].content.ljust(20) }}",
    "macro": "{% macro q(t) %}{{ t }}{% endmacro %}{{ q(messages[0].content) }}",
    "truncate": "{{ 'zzzzzzzzzzzzzzzzzz' | truncate(3, True, messages[0].content) }}",
    "default": "{{ nothing | default(messages[0].content) }}",
    "chars": "{% for c in messages[0].content %}{{ c }}{% endfor %}",
    "tuple": "{{ (messages[0].content, 1) }}",
    "cycle": "{{ cycler(messages[0].content).next() }}",
    "joiner": "{% set j = joiner(messages[0].content) %}{{ j() }}{{ j() }}",
    "namespace": "{{ namespace(a=messages[0].content) }}",
    "batch": "{{ messages[0].content | list | batch(2) | list }}",
    "case": "{{ messages[0].content.swapcase().swapcase() }}",
    "format map": "{{ '{a}'.format_map({'a': messages[0].content}) }}",
    "urlencode": "{{ messages[0].content | urlencode }}",
    "attr": "{{ (messages[0] | attr('content')) or '' }}",
}
"""Ways to write a message where it does not belong."""
HEADERS = [
    "<|im_start|>{{ m.role }}\n",
    "<|im_start|>{% if m.role == 'user' %}Huser{% else %}Hmodel{% endif %}\n",
    "{{ '<|im_start|>' + m.role + '\n' }}",
    "{{ '<|im_start|>%s\n' % m.role }}",
    "{{ '<|im_start|>{}\n'.format(m.role) }}",
    "<|im_start|>{{ m.role | upper }}\n",
]
"""What opens a message."""
STOPS = [
    "<|im_end|>\n",
    "{{ '<|im_end|>' }}",
    "{{ eos_token }}\n",
    "{% if not loop.last %}<|im_end|>{% endif %}",
    "<|im_end|>Hafter\n",
    " <|im_end|>\n",
    "{{ '<|im_end|>' ~ '\n' }}",
]
"""What closes a message."""
CALLS = {
    "none": "",
    "json": "{% for c in m.tool_calls %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}",
    "pieces": (
        "{% for c in m.tool_calls %}<tool_call>{'name': {{ c.function.name }}"
        ", 'arguments': {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}"
    ),
    "all": "<tool_call>{{ m.tool_calls | tojson }}</tool_call>",
    "sorted": "<tool_call>{{ m.tool_calls | tojson(indent=2, sort_keys=true) }}</tool_call>",
    "items": (
        "{% for c in m.tool_calls %}<f={{ c.function.name }}"
        ">{% for k, v in c.function.arguments.items() %}<p={{ k }}>{{ v }}</p>{% endfor %}"
        "</f>{% endfor %}"
    ),
    "percent": (
        "{% for c in m.tool_calls %}"
        "{{ '<call>%s(%s)</call>' % (c.function.name, c.function.arguments | tojson) }}"
        "{% endfor %}"
    ),
    "copied": (
        "{% set l = namespace(c=[]) %}{% for c in m.tool_calls %}"
        "{% set l.c = l.c + [{'name': c.function.name, 'parameters': c.function.arguments}] "
        "%}{% endfor %}{{ l.c | tojson }}"
    ),
    "block": (
        "{% set b %}{% for c in m.tool_calls %}{{ c.function.name }}"
        " {{ c.function.arguments | tojson }}{% endfor %}{% endset %}<call>{{ b | trim }}"
        "</call>"
    ),
    "range": (
        "{% for i in range(m.tool_calls | length) %}{% set c = m.tool_calls[i] %}"
        "<call>{{ c.function.name }} {{ c.function.arguments | tojson }}</call>{% endfor %}"
    ),
    "macro": (
        "{% macro one(c) %}<call>{{ c.function.name }} {{ c.function.arguments | tojson }}"
        "</call>{% endmacro %}{% for c in m.tool_calls %}{{ one(c) }}{% endfor %}"
    ),
    "message": "{{ m | tojson }}",
    "results too": "{{ messages[loop.index0:loop.index0 + 2] | tojson }}",
    "json string": (
        "{% for c in m.tool_calls %}<call>{{ c.function.name }}"
        " {{ c.function.arguments | tojson | tojson }}</call>{% endfor %}"
    ),
}
"""Ways to write a turn's calls."""
THINKS = [
    "",
    "<think>\n{{ m.reasoning_content }}\n</think>\n",
    (
        "{% if m.reasoning_content %}{{ '<think>' + m.reasoning_content + '</think>' }}"
        "{% else %}<think></think>{% endif %}"
    ),
    "<think>{{ m.thinking | trim }}</think>",
    "{{ '<think>%s</think>' % m.reasoning_content }}",
    "{% if loop.last %}<think>{{ m.reasoning_content }}</think>{% endif %}",
    ("{% set t = (m.reasoning_content or '') ~ '</think>' ~ m.content %}<think>{{ t.split('</think>')[0] }}</think>"),
]
"""Ways to write reasoning."""
RESULTS = [
    "{{ m.content }}",
    "<tool_response>{{ m.content }}</tool_response>",
    "{{ m.content | tojson }}",
    "{{ {'r': m.content} | tojson }}",
    "{{ m | tojson }}",
    "{{ loop.previtem.tool_calls[0].function.name }}: {{ m.content }}",
    "{{ '%s -> %s' % (m.name, m.content) }}",
    "{{ loop.previtem.content }}{{ m.content }}",
]
"""Ways to write a result."""
TEXTS = ["{{ m.content }}", "{{ m.content or '' }}", "{% if m.content %}{{ m.content | trim }}{% endif %}"]
TOOLS = ["", "{{ tools | tojson }}", "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}", "{{ tools }}"]
AGENT_LOOPS = [
    "plain",
    "plain",
    "range",
    "macro",
    "caller",
    "collected",
    "listed",
    "filtered",
    "inner loop",
    "while",
    "sliced",
]


def chat_template(rng: random.Random) -> str:
    """A template of users and answers; half of them write a message where it does not belong."""
    head, stop, leak = rng.choice(HEADERS), rng.choice(STOPS), LEAKS[_rarely(rng, LEAKS, "none", 0.5)]
    texts = [CONTENTS[_rarely(rng, CONTENTS, "plain", 0.4)] for _ in range(2)]
    said = "{% if m.role == 'user' %}" + texts[0] + "{% else %}" + texts[1] + "{% endif %}"
    of_user, of_model = ("{% if m.role " + who + " 'user' %}" + leak + "{% endif %}" for who in ("==", "!="))
    bodies = [
        of_model + head + said + stop,
        head + of_model + said + stop,
        head + of_user + said + stop,
        head + said + of_model + stop,
        head + said + stop + of_model,
    ]
    whole = LOOPS[rng.choice(list(LOOPS))].replace("BODY", rng.choice([*bodies, head + said + stop]))
    outside = leak.replace("m.content", "messages[1].content")
    return rng.choice([whole, whole, outside + whole, whole + outside]) + _prompt(head)


def agent_template(rng: random.Random) -> str:
    """A template of reasoning, calls and results."""
    head, stop, leak = rng.choice(HEADERS), rng.choice(STOPS), LEAKS[_rarely(rng, LEAKS, "none", 0.3)]
    call = "{% if m.tool_calls %}" + CALLS[rng.choice(list(CALLS))] + "{% endif %}"
    parts = [rng.choice(THINKS), rng.choice(TEXTS), call, leak]
    if rng.random() < 0.2:
        rng.shuffle(parts)
    turn = "{% if m.role == 'assistant' %}" + "".join(parts) + "{% elif m.role == 'tool' %}" + rng.choice(RESULTS)
    body = head + turn + "{% else %}{{ m.content }}{% endif %}" + stop
    return rng.choice(TOOLS) + LOOPS[rng.choice(AGENT_LOOPS)].replace("BODY", body) + _prompt(head)


def _rarely(rng: random.Random, table: dict[str, str], usual: str, share: float) -> str:
    return rng.choice(list(table)) if rng.random() < share else usual


def _prompt(head: str) -> str:
    start = "<|im_start|>Hmodel\n" if "Hmodel" in head else head.replace("m.role", "'assistant'")
    return "{% if add_generation_prompt %}" + start + "{% endif %}"


def chat(rng: random.Random) -> Conversation:
    """One to three questions and answers."""
    turns = range(rng.randint(1, 3))
    return conversation(tuple(line for n in turns for line in (("user", f"Uword{n}"), ("answer", f"Aword{n}"))))


def agent_chat(rng: random.Random) -> Conversation:
    """A conversation of reasoning, calls and results; every text a word of its own."""
    lines: list[tuple[str, str]] = []
    for turn in range(rng.randint(1, 2)):
        lines.append(("user", f"Uword{turn}0"))
        for n in range(1, 1 + rng.randint(0, 2)):
            lines += [("reasoning", f"Tword{turn}{n}")] * (rng.random() < 0.3)
            lines += [("commentary", f"Mword{turn}{n}")] * (rng.random() < 0.3)
            calls = range(rng.randint(1, 2))
            lines += [("call", f"Cword{turn}{n}x{k}") for k in calls]
            lines += [("result", f"Rword{turn}{n}x{k}") for k in calls]
        lines += [("reasoning", f"Tword{turn}9")] * (rng.random() < 0.3) + [("answer", f"Aword{turn}9")]
    return conversation(tuple(lines))


def faults(rendered: Rendered, row: Conversation) -> list[str]:
    """What the spans say wrongly: each of the assistant's words trains once, as its own message and kind."""
    trained: dict[int, str] = defaultdict(str)
    got: list[tuple[str, int, str]] = []
    for span in rendered.spans:
        if span.kind in TRAINED_KINDS:
            piece = rendered.text[span.start : span.end]
            trained[span.message] += piece
            got += [(word.capitalize(), span.message, span.kind) for word in WORD.findall(piece)]
    words = [(WORD.findall(message.text)[0], message.recorded) for message in row.messages]
    want = [(word, recorded, KINDS[word[0]]) for word, recorded in words if word[0] in KINDS]
    found = [f"{one} trains" for one in got if one not in want or got.count(one) > 1]
    found += [f"{one} does not train" for one in want if one not in got and one[2] != "reasoning"]
    found += [
        f"{mine!r} is not ended by one stop" for mine in trained.values() if mine.find(STOP) != len(mine) - len(STOP)
    ]
    return found + [f"a header trains: {mine!r}" for mine in trained.values() if HEADER.search(mine)]
