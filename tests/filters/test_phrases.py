from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import turnmill
from turnmill.files.phrases import phrases_of, shipped_languages
from turnmill.filters.phrases import LEAD_IN, WHOLE_LINE, at_sentence, at_start, pattern, plain
from turnmill.options import PHRASE_LANGUAGES

LISTS = Path(turnmill.__file__).parent / "data" / "phrases"
NAMES = {"name": ("ChatGPT",), "ambiguous": ("Claude",), "maker": ("OpenAI",)}
KINDS = ["refusals", "boilerplate", "product-names"]


def said(phrase: str, draw: random.Random) -> str:
    """The phrase with one of each alternatives."""
    for name, (chosen,) in NAMES.items():
        phrase = phrase.replace(f"{{{name}}}", chosen)
    while "{" in phrase:
        phrase = re.sub(r"\{([^{}]*)\}", lambda found: draw.choice(found[1].split("|")), phrase, count=1)
    return phrase


@pytest.mark.parametrize("kind", KINDS)
def test_lists_are_shipped_for_every_language(kind):
    assert tuple(sorted(path.stem for path in (LISTS / kind).glob("*.txt"))) == PHRASE_LANGUAGES
    assert all(len(shipped_languages(kind, (language,))) >= 3 for language in PHRASE_LANGUAGES)


@pytest.mark.parametrize("language", PHRASE_LANGUAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_shipped_phrase_can_be_said_and_is_found(kind, language):
    draw = random.Random(7)
    for line in shipped_languages(kind, (language,)):
        phrase = line.removeprefix(LEAD_IN).removeprefix(WHOLE_LINE)
        for _ in range(20):
            text = said(phrase, draw)
            assert "  " not in text, phrase
            assert text == text.strip(), phrase
            assert re.fullmatch(pattern(phrase, NAMES), plain(text)), phrase


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("it's {a|an} {big |}ant", "IT’S  an ant.", True),
        ("it's {a|an} {big |}ant", "it's a big antler", False),
        ("no {way|{not |}at all}", "no not at all!", True),
        ("Claude", "Claude's book", False),
        ("a|b", "a|b", True),
        ("我{不|没}能", "我没能来", True),
        ("1+1", "1+1 = 2", True),
    ],
)
def test_a_phrase_is_matched_plainly(phrase, text, found):
    assert bool(at_start((phrase,)).match(plain(text))) == found


@pytest.mark.parametrize("phrase", ["{a", "a}", "}{", "{a|{b}", "{word}"])
def test_a_phrase_with_odd_braces_is_refused(phrase):
    with pytest.raises(ValueError, match=r"braces|stands for nothing"):
        pattern(phrase)


def test_without_phrases_nothing_is_found():
    assert at_start(()).match("anything") is None
    assert at_sentence(()).search("anything") is None


def test_notes_and_empty_lines_are_no_phrases():
    assert phrases_of("# note\n\n one \n#\n#1 of all\n+ two\n") == ("one", "#1 of all", "+ two")
