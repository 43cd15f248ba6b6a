import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenizers_of_tests import MARKERS, TAGS, byte_level, white_space_tokens, word_piece_like
from turnmill.tokens.encode import Encoder

CONTROL = [*MARKERS, *TAGS]
TEXT = st.text(alphabet="ab é\n<|im_end|>👩", max_size=20)


@pytest.fixture(scope="module")
def encoder(tokenizer):
    return Encoder(tokenizer, CONTROL)


@given(parts=st.lists(st.sampled_from([*CONTROL, "a b", " c", "\n", "é👩"]), max_size=6))
def test_without_borders_the_ids_are_those_of_the_whole_text(encoder, tokenizer, parts):
    text = "".join(parts)
    want = tokenizer.encode(text, add_special_tokens=False).ids
    assert encoder.whole([text])[0].ids.tolist() == want
    assert encoder.segments(text, (), ()).ids.tolist() == want


@given(before=TEXT, after=TEXT)
def test_a_border_encodes_both_sides_alone(encoder, tokenizer, before, after):
    got = encoder.segments(before + after, (len(before),), ())
    want = [tokenizer.encode(part, add_special_tokens=False).ids for part in (before, after)]
    assert got.ids.tolist() == want[0] + want[1]


@given(before=TEXT, token=st.sampled_from(CONTROL), after=TEXT)
def test_escaped_text_gives_no_control_token_and_loses_nothing(encoder, tokenizer, before, token, after):
    text = before + token + after
    got = encoder.segments(text, (), [(len(before), len(before) + len(token))])
    inside = [
        number
        for number, (start, end) in zip(got.ids.tolist(), got.offsets.tolist(), strict=True)
        if start < len(before) + len(token) and end > len(before)
    ]
    assert not {tokenizer.token_to_id(control) for control in CONTROL} & set(inside)
    assert tokenizer.decode(got.ids.tolist(), skip_special_tokens=False) == text


CUTTING = [Encoder(make(), CONTROL) for make in (byte_level, white_space_tokens)]


@pytest.mark.parametrize("encoder", CUTTING, ids=["byte level", "white space is added"])
@given(
    parts=st.lists(st.sampled_from([*CONTROL, "a b", " c", "\n", "\n\n", "é👩"]), min_size=1, max_size=6),
    data=st.data(),
)
def test_a_cut_is_the_segments_of_the_text(encoder, parts, data):
    text = "".join(parts)
    whole = encoder.whole([text])[0]
    tokens = [pair for pair in whole.offsets.tolist() if text[slice(*pair)] in CONTROL]
    free = [place for place in range(len(text) + 1) if not any(start < place < end for start, end in tokens)]
    borders = sorted(data.draw(st.lists(st.sampled_from(free), unique=True, max_size=4)))
    (cut,), want = encoder.cut([(text, whole, borders)]), encoder.segments(text, borders, ())
    assert (cut.ids.tolist(), cut.offsets.tolist()) == (want.ids.tolist(), want.offsets.tolist())


ACROSS = [("assistant\n\nHello", 10, True), ("assistant\nHello", 10, False), ("a<|im_end|>\n\n\nb", 5, False)]


@pytest.mark.parametrize(("text", "border", "crossed"), ACROSS)
def test_an_added_token_lies_across_a_border_unless_it_is_a_control_token(text, border, crossed):
    encoder = CUTTING[1]
    assert encoder.crossed(encoder.whole([text])[0], [border]) == ([border] if crossed else [])


def test_offsets_are_those_of_the_text(encoder):
    got = encoder.segments("ab<|im_end|>cd", (1,), [(2, 12)])
    assert got.offsets[:2].tolist() == [[0, 1], [1, 2]]
    assert got.offsets[-1].tolist()[1] == 14


def test_every_byte_of_a_character_has_the_character_as_its_place(encoder):
    got = encoder.whole(["🦜"])[0]
    assert len(got.ids) > 1
    assert {tuple(pair) for pair in got.offsets.tolist()} == {(0, 1)}


@pytest.mark.parametrize(("scheme", "adds"), [("always", True), ("first", False), ("never", False)])
def test_a_prefix_space_is_known(scheme, adds):
    assert Encoder(word_piece_like(scheme), ["<s>", "</s>"]).adds_prefix == adds


def test_an_encoder_is_accelerated_and_slowed_down_again(tokenizer):
    encoder = Encoder(tokenizer, CONTROL)
    ways = [encoder.way]
    for is_on in (True, True, False, True):
        encoder.accelerate(is_on=is_on)
        ways.append(encoder.way)
    assert [ways[0], ways[3]] == ["tokenizers"] * 2
    assert ways[1] == ways[2] == ways[4]
    assert encoder.whole(["a b"])[0].ids.tolist() == tokenizer.encode("a b", add_special_tokens=False).ids
