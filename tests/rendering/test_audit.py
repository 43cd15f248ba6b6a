"""The judge of spans finds what is wrong; so does the witness of differences."""

import msgspec
import pytest

from turnmill.rendering.audit import faults_of
from turnmill.rendering.samples import conversation
from turnmill.rendering.witness import Witness

ROW = conversation((("user", "Questionone"), ("answer", "Answerone"), ("user", "Questiontwo"), ("answer", "Answertwo")))
TEXT = "<u>Questionone</s><a>Answerone</s>\n<u>Questiontwo</s><a>Answertwo</s>\n"
RIGHT = ["Answerone</s>", "Answertwo</s>"]
STOPS = ("</s>",)
CONTROL = ("</s>", "<u>", "<a>")


def ranges(*pieces):
    found = [TEXT.index(piece) for piece in pieces]
    return [(start, start + len(piece)) for start, piece in zip(found, pieces, strict=True)]


def test_the_right_characters_have_no_fault():
    assert faults_of(ROW, TEXT, ranges(*RIGHT), STOPS, CONTROL) == []


@pytest.mark.parametrize(
    ("pieces", "fault"),
    [
        (["Answerone</s>"], "does not train 'Answertwo'"),
        (["nswerone</s>", "Answertwo</s>"], "does not train 'Answerone'"),
        (["Answerone", "Answertwo</s>"], "not to the stop"),
        (["Answerone</s>\n", "Answertwo</s>"], "not to the stop"),
        (["Questionone</s><a>Answerone</s>", "Answertwo</s>"], "trains 'Questionone', which no turn says"),
        (["<u>Qu", *RIGHT], "trains 'Questionone', which no turn says"),
        (["<u>", *RIGHT], "trains '<u>', which no turn says"),
    ],
)
def test_wrong_characters_are_found(pieces, fault):
    assert fault in "; ".join(faults_of(ROW, TEXT, ranges(*pieces), STOPS, CONTROL))


def test_a_turn_without_a_stop_is_a_fault_but_for_an_open_last_one():
    text, row = "Questionone Answerone", msgspec.structs.replace(ROW, messages=ROW.messages[:2])
    trained = [(12, 21)]
    assert faults_of(row, text, trained, STOPS, CONTROL) == ["trains no stop, behind 'Answerone'"]
    assert faults_of(row, text, trained, STOPS, CONTROL, is_open=True) == []


def test_words_that_several_messages_say_are_counted():
    same = conversation((("user", "Samewords"), ("answer", "Samewords")))
    text = "Samewords Samewords</s>"
    assert faults_of(same, text, [(10, 23)], STOPS, CONTROL) == []
    assert faults_of(same, text, [(0, 9)], STOPS, CONTROL)


def said_by_differences(renderer, moved):
    """What the witness says of a render's spans, its stops moved by so many characters at their ends."""
    probe, kwargs = renderer.probe, renderer.kwargs_of(ROW)
    dialog = renderer.template.tracked(ROW, probe.form, kwargs)
    parts = []
    for span in renderer.render(ROW).spans:
        if span.message >= 0:
            low, high = moved if span.kind == "stop" else (0, 0)
            parts.append((span.start + low, span.end + high, span.message, span.kind))
    witness = Witness(renderer.template, probe.form, probe.markers)
    return witness.testimony(ROW, kwargs, dialog.text, parts, dialog.written.entries)


def test_differences_confirm_where_turns_begin_and_end(chatml):
    found = said_by_differences(chatml, (0, 0))
    assert (found.seen, found.faults) == (4, [])


@pytest.mark.parametrize("moved", [(-3, -3), (2, 2)])
def test_differences_contradict_a_turn_that_ends_elsewhere(chatml, moved):
    assert said_by_differences(chatml, moved).faults
