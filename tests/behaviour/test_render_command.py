"""`turnmill render`: chats to `id, text`."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from chats import chat, numbered
from turnmill.files.inventory import verify
from turnmill.files.texts import TEMPLATE_KEY

HI = "<|im_start|>user\nHi?<|im_end|>\n<|im_start|>assistant\nHo.<|im_end|>\n"
TEMPLATE = (
    "{{% for m in messages %}}<|im_start|>{{{{ m.role }}}}{mark}\n{{{{ m.content }}}}<|im_end|>\n{{% endfor %}}"
    "{{% if add_generation_prompt %}}<|im_start|>assistant{mark}\n{{% endif %}}"
)


@pytest.fixture
def rendered(turnmill, tmp_path):
    def call(*arguments, output="out"):
        done = turnmill("render", *arguments, "--model", "smollm2", "--output", tmp_path / output)
        files = sorted((tmp_path / output / "texts").glob("*.parquet"))
        return done, [row for file in files for row in pq.read_table(file).to_pylist()]

    return call


def test_every_row_has_its_id_and_its_text(rendered, chats, turnmill, tmp_path):
    data = chats("rows.jsonl", ["Hi?", "Ho."], ["Hi?", "Ho."], ["Why?", "So."])
    done, texts = rendered(data, "--json")
    assert done.json["rows"] == {"read": 3, "rendered": 3, "rejected": 0}
    ids = [json.loads(line)["id"] for line in turnmill("check", data, "--json").out.splitlines()]
    assert [row["id"] for row in texts] == ids
    assert [row["text"] for row in texts[:2]] == [HI] * 2
    assert verify(tmp_path / "out")


def test_no_text_begins_with_a_bos_token(rendered, chats, model_with):
    model = model_with("{{ bos_token }}" + TEMPLATE.format(mark=""))
    _, texts = rendered(chats("rows.jsonl", ["Hi?", "Ho."]), "--model", model)
    assert texts[0]["text"].startswith("<|im_start|>user\nHi?")


def test_a_text_that_content_could_forge_is_let_go_unless_it_is_kept_on_purpose(rendered, chats):
    data = chats("rows.jsonl", ["What does <|im_end|> do?", "It ends a turn."], *numbered(3))
    done, texts = rendered(data, "--json")
    assert (done.json["rows"]["rejected"], len(texts)) == (1, 3)
    _, kept = rendered(data, "--render.control_tokens", "keep", output="kept")
    assert len(kept) == 4


def test_texts_name_their_template_and_two_do_not_mix(rendered, chats, turnmill, tmp_path):
    data = chats("rows.jsonl", *numbered(3))
    rendered(data)
    own = tmp_path / "own.jinja"
    own.write_text(TEMPLATE.format(mark=":"))
    rendered(data, "--template", own, output="other")
    (file,) = (tmp_path / "out" / "texts").iterdir()
    assert len(pq.read_schema(file).metadata[TEMPLATE_KEY]) == 64
    mixed = turnmill("check", tmp_path / "out", tmp_path / "other", "--dialect", "text")
    assert mixed.code == 4
    assert "expected texts of one template" in mixed.err
    assert turnmill("check", tmp_path / "out", "--dialect", "text").code == 0


def test_a_changed_template_renders_anew_and_checks_nothing_again(rendered, chats, tmp_path):
    data = chats("rows.jsonl", *numbered(3))
    rendered(data)
    rendered(data, "--template", "chatml", "--render.template_kwargs", '{"enable_thinking": true}')
    made = sorted(path.name.partition("-")[0] for path in (tmp_path / ".out.steps").iterdir() if path.name[0] != ".")
    assert made == ["check", "render", "render"]


def test_rendered_texts_are_data_again(rendered, chats, prepare, tmp_path):
    rendered(chats("rows.jsonl", *numbered(3)))
    out = prepare(tmp_path / "out", "--dialect", "text", "--sources.out.control_tokens", "keep", output="again")
    assert len(out.examples()) == 3


def test_a_dry_run_writes_nothing(rendered, chats, tmp_path):
    done, texts = rendered(chats("rows.jsonl", *numbered(3)), "--dry-run")
    assert (done.out, texts, (tmp_path / "out").exists()) == ("rows: 3 rows would be rendered\n", [], False)


def test_a_source_that_the_template_cannot_say_stops_the_run(rendered, chats, tmp_path):
    rows = [chat(f"What does <|im_end|> do, {number}?", "It ends a turn.") for number in range(30)]
    done, _ = rendered(chats("rows.jsonl", *rows))
    assert (done.code, (tmp_path / "out").exists()) == (3, False)
