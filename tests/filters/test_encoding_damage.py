from __future__ import annotations

import pytest

from turnmill.contract import check
from turnmill.conversation import Conversation, Message
from turnmill.filters import filters
from turnmill.options import Filter

WORDS = [
    "café",
    "naïve",
    "Größe",
    "señor",
    "don’t",
    "“quoted”",
    "a – b",
    "20 °C",
    "£5",
    "5 €",
    "smile 😀",
    "Привет",
    "你好",
]


def misread(text: str, encoding: str) -> str:
    """UTF-8 bytes read in another encoding; bytes that it has not as Latin-1 shows them."""
    raw = text.encode("utf-8")
    return "".join(bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in raw)


DAMAGED = ["lost \ufffd here", "a\x00b", "a\x1b[0mb", "x\x93quoted\x94", "a\uffffb"]
SOUND = [
    *WORDS, "SÃO PAULO, NÃO", "VOILÀ… CAFÉ»", "Spaß“ sagt er", "IRMû", "Â", "tab\tand\r\nlines\x0c",
    "naïveté â la carte", "Das heißt „Größe“ – 5 €", "Ñandú, Ðorđe", "zero\u200bwidth \ufeff", "math: ∑ ≤ ∞",
    "`Ã©` is é read as Latin-1",
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
@pytest.mark.parametrize("word", WORDS)
def test_text_that_was_misread_leaves(refused, word, encoding):
    assert refused("encoding-damage", f"so {misread(word, encoding)} it is").code == "encoding-damage"


@pytest.mark.parametrize("text", DAMAGED)
def test_lost_and_control_characters_leave(refused, text):
    assert refused("encoding-damage", text).at == 1
    assert refused("encoding-damage", "a", question=text).at == 0


@pytest.mark.parametrize("text", SOUND)
def test_sound_text_stays(refused, text):
    assert refused("encoding-damage", text) is None


def test_a_few_marks_can_be_borne(refused):
    assert refused("encoding-damage", "one \ufffd", min_marks=2) is None
    assert refused("encoding-damage", "one \ufffd, two \ufffd", min_marks=2) is not None


def test_results_of_tools_may_hold_anything():
    call = Message("assistant", '{"n": "\ufffd"}', "commentary", recipient="functions.f")
    result = Message("tool", "\x00\ufffd", "commentary", name="functions.f", recipient="assistant")
    said = (Message("user", "q"), call, result, Message("assistant", "a", "final"))
    row = check(Conversation(said, ({"name": "f", "parameters": {}},)))
    assert filters.get("encoding-damage")(row, Filter()) is None
