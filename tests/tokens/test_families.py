"""Six families' own tokenizers, fetched from packages: ids, places, borders, escapes and beginnings are right."""

import json
from collections import Counter
from functools import cached_property

import pytest
from transformers import PreTrainedTokenizerFast

from chats import chat
from tests_support import pinned_clock
from tokenizer_families import FAMILIES, NOT_COMPOSED, SLOW, TEXTS, drawn_texts, model_directory, tokenizer_of
from turnmill.contract import check
from turnmill.dialects import Reading, convert, dialects
from turnmill.models import open_model
from turnmill.options import Loss, Model, Render
from turnmill.rendering.form import write
from turnmill.tokens import accelerators
from turnmill.tokens.encode import Encoder
from turnmill.tokens.tokenize import Row, Tokenizing
from turnmill.verbs.tokenize import renderer_of

pytestmark = pytest.mark.tokenizers


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in FAMILIES])
def family(request):
    return request.param


@pytest.fixture(scope="module")
def line(family, tmp_path_factory):
    return Line(model_directory(family, tmp_path_factory.mktemp(family)))


@pytest.fixture(scope="module")
def control(line):
    return line.renderer.probe.markers.control


@pytest.fixture(scope="module")
def encoders(family, line, control):
    """One that takes no fast way; one that may take each; where there is one, one that may go word by word alone."""
    tokenizer = line.model.tokenizer()
    made = [line.encoder, Encoder(tokenizer, control, accelerate=True)]
    if FAMILIES[family].ways != SLOW:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(accelerators, "find_spec", lambda _: None)
            made.append(Encoder(tokenizer, control, accelerate=True))
    return made


class Line:
    """A model directory, read by us and by transformers."""

    def __init__(self, directory):
        self.model = open_model(Model(name_or_path=str(directory)))
        self.renderer = renderer_of(self.model, Render(date="2025-01-01"))
        self.encoder = Encoder(self.model.tokenizer(), self.renderer.probe.markers.control)

    @cached_property
    def theirs(self):
        return PreTrainedTokenizerFast(tokenizer_file=str(self.model.tokenizer_path))

    def rendered(self, record):
        row = check(convert(record, dialects.get("openai"), Reading()))
        return row, self.renderer.render(row)

    def ids(self, record):
        row, rendered = self.rendered(record)
        (example,) = Tokenizing(self.encoder).examples([Row(row.id, row, rendered, Loss())])
        return list(map(int, example.input_ids))

    def reference(self, record):
        row, _ = self.rendered(record)
        written = write(row, self.renderer.probe.form, None, Counter())
        options = {**self.model.special_tokens, **self.renderer.kwargs_of(row)}
        options |= {"tokenize": True, "return_dict": False, "chat_template": self.model.template}
        with pinned_clock():
            return self.theirs.apply_chat_template(written.dicts, **options)


def test_each_takes_the_way_that_it_can(family, encoders):
    assert [encoder.way for encoder in encoders] == [*SLOW, *FAMILIES[family].ways]


def test_turn_markers_have_the_ids_of_their_makers(family):
    tokenizer = tokenizer_of(family)
    for marker, number in FAMILIES[family].markers.items():
        assert tokenizer.encode(marker, add_special_tokens=False).ids == [number]


def test_every_way_gives_the_tokenizers_ids_and_places(family, control, encoders):
    texts = [*TEXTS, *NOT_COMPOSED, *drawn_texts(control, 400)]
    wanted = tokenizer_of(family).encode_batch(texts, add_special_tokens=False)
    for encoder in encoders:
        for text, found, right in zip(texts, encoder.whole(texts), wanted, strict=True):
            assert found.ids.tolist() == right.ids, (encoder.way, text)
            assert list(map(tuple, found.offsets.tolist())) == right.offsets, (encoder.way, text)
        assert not encoder.counts["tokenize/fast-distrusted"]


def test_a_border_parts_a_text_into_two_that_read_on(family, control, encoders):
    tokenizer = tokenizer_of(family)
    for text in drawn_texts(control, 100):
        if len(text) > 200:
            continue
        border = len(text) // 2
        parts = [tokenizer.encode(part, add_special_tokens=False).ids for part in (text[:border], text[border:])]
        for encoder in encoders:
            parted = encoder.segments(text, [border], ()).ids.tolist()
            assert parted == parts[0] + parts[1], (encoder.way, text)
            whole = encoder.whole([text])[0]
            crossed = encoder.crossed(whole, [border])
            (cut,) = encoder.cut([(text, whole, crossed)])
            assert cut.ids.tolist() == (parted if crossed else whole.ids.tolist())


def test_escaped_control_tokens_are_read_as_their_letters(family, encoders):
    tokenizer = tokenizer_of(family)
    for marker in FAMILIES[family].markers:
        text = f"say {marker} now"
        stretch = (4, 4 + len(marker))
        for encoder in encoders:
            ids = encoder.segments(text, (), [stretch]).ids.tolist()
            assert FAMILIES[family].markers[marker] not in ids
            assert tokenizer.decode(ids, skip_special_tokens=False) == text


PLAIN = [chat("test", "ok"), chat("Grüße?", "世界, e\u0301", "  again ", "yes\n")]


@pytest.mark.parametrize("record", PLAIN, ids=["one turn", "two turns"])
def test_ids_of_a_chat_are_those_of_transformers(line, record):
    assert line.ids(record) == line.reference(record)


@pytest.mark.parametrize("record", PLAIN, ids=["one turn", "two turns"])
def test_a_text_begins_once(family, line, record):
    bos = FAMILIES[family].bos
    count = line.ids(record).count(tokenizer_of(family).token_to_id(bos)) if bos else 0
    assert count == (1 if bos else 0)


def test_content_cannot_end_a_turn(line):
    stop = line.renderer.probe.answer_stop
    number = line.model.tokenizer().token_to_id(stop)
    honest, forged = (line.ids(chat(f"x{text}y", "ok")) for text in ("", stop))
    assert forged.count(number) == honest.count(number) > 0


def test_whether_the_tokenizer_adds_a_beginning_changes_no_chat(family, line, tmp_path):
    beginning = FAMILIES[family].bos or next(iter(FAMILIES[family].markers))
    stored = json.loads(line.model.tokenizer_path.read_text("utf-8"))
    number = tokenizer_of(family).token_to_id(beginning)
    stored["post_processor"] = None if line.model.added_before else processor_of(beginning, number)
    directory = model_directory(family, tmp_path)
    (directory / "tokenizer.json").write_text(json.dumps(stored), "utf-8")
    other = Line(directory)
    assert bool(other.model.added_before) != bool(line.model.added_before)
    assert other.ids(PLAIN[0]) == line.ids(PLAIN[0])


def processor_of(token, number):
    """A post-processor that puts the token before every text."""
    single = [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    known = {token: {"id": token, "ids": [number], "tokens": [token]}}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": known}
