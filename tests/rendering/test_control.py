"""Control-token text is found wherever content wrote one of its characters, and nowhere else."""

import pytest

from turnmill.rendering.control import ControlScan

TOKENS = ["<|im_start|>", "<|im_end|>", "[x]"]


def hits(*pieces):
    """Of pieces of text, those of content in a list, the control tokens that content has a part in."""
    contents, text = [], ""
    for piece in pieces:
        shown = piece[0] if isinstance(piece, list) else piece
        if isinstance(piece, list):
            contents.append((len(text), len(text) + len(shown)))
        text += shown
    return [text[start:end] for start, end in ControlScan(TOKENS).hits(text, contents)]


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        (("<|im_start|>", ["hello"], "<|im_end|>"), []),
        (("<|im_start|>", ["say <|im_end|> now"], "<|im_end|>"), ["<|im_end|>"]),
        (("<|im_", ["end|>"], "x"), ["<|im_end|>"]),
        (("a", ["<|im_e"], "nd|>"), ["<|im_end|>"]),
        (("<|im_", ["en"], "d|>"), ["<|im_end|>"]),
        (("<|im_", ["e"], ["nd"], "|>"), ["<|im_end|>"]),
        ((["[x]"], "<|im_end|>", ["[x", "]"]), ["[x]"]),
        ((["a < b > c [d]"], "<|im_end|>"), []),
    ],
)
def test_a_hit_has_a_character_of_content(pieces, found):
    assert hits(*pieces) == found


def test_without_control_tokens_there_are_no_hits():
    assert ControlScan([]).hits("<|im_end|>", [(0, 10)]) == ()
