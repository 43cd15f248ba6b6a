"""`turnmill explain` for people: the terminal form and the page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from rich.console import Console

from turnmill.report.explanation import ExplainedSpan, Explanation
from turnmill.report.terminal import show

ROW = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a <b>\nc"}]}


class Page(HTMLParser):
    """The texts and titles of a page's spans, and every tag in it."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_pipe_gets_plain_text_with_trained_lines_marked(turnmill, rows) -> None:
    answer = turnmill("explain", rows(ROW), "0", "--model", "smollm2")
    lines = answer.out.splitlines()
    assert "\x1b" not in answer.out
    assert "┃ a <b>" in lines
    assert "┃ c<|im_end|>" in lines
    assert "  <|im_start|>assistant" in lines
    assert re.search(r"^1 +assistant +yes +trained", answer.out, re.MULTILINE)
    assert any(line.startswith("┃") and "stop" in line and "<|im_end|>:2" in line for line in lines)


def test_a_line_that_trains_in_part_is_marked_without_colour(turnmill, rows, trl_templates: Path) -> None:
    tokens = '{"eos_token": "</s>", "bos_token": "<s>"}'
    template = trl_templates / "deepseekv3.jinja"
    answer = turnmill("explain", rows(ROW), "0", "--template", template, "--special-tokens", tokens)
    assert any(line.startswith("╏") and "⟦a <b>⟧" in line for line in answer.out.splitlines())


def test_a_terminal_gets_colours_and_underlined_trained_text() -> None:
    spans = (ExplainedSpan(0, 2, 0, "user", False), ExplainedSpan(2, 4, 1, "answer", True))
    console = Console(force_terminal=True, color_system="standard", width=100)
    with console.capture() as captured:
        show(Explanation(0, "0" * 32, "a: b:1", text="hiyo", spans=spans), console)
    assert "\x1b[34mhi" in captured.get()
    assert "\x1b[1;4;32myo" in captured.get()


def test_text_from_data_cannot_steer_the_terminal(turnmill, rows) -> None:
    evil = {"messages": [{"role": "user", "content": "\x1b[2J\u202egnp"}, {"role": "assistant", "content": "[red]x"}]}
    answer = turnmill("explain", rows(evil), "0", "--template", "chatml")
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out
    assert "⟨1B⟩[2J⟨202E⟩gnp" in answer.out
    assert "[red]x" in answer.out


def test_a_rejected_row_says_its_code_and_message(turnmill, examples: Path) -> None:
    out = turnmill("explain", examples / "faulty.jsonl", "7").out
    assert "leaves: user-after-user: two user messages follow one another" in out
    assert "rejected:user-after-user" in out


def test_the_page_is_self_contained_and_escapes_what_came_from_data(turnmill, rows, tmp_path: Path) -> None:
    evil = '</pre><script>alert(1)</script><img src=x onerror=alert(1)> & "q" {{ 7 * 7 }}'
    data = rows({"messages": [{"role": "user", "content": evil}, {"role": "assistant", "content": evil}]})
    turnmill("explain", data, "0", "--model", "smollm2", "--html", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert page.tags.isdisjoint({"script", "img", "link", "iframe"})
    assert page.links == []
    assert page.text.count(evil) >= 2


def test_the_page_shows_text_turns_and_tokens(turnmill, rows, tmp_path: Path) -> None:
    answer = turnmill("explain", rows(ROW), "0", "--model", "smollm2", "--json", "--html", tmp_path / "page.html")
    source = (tmp_path / "page.html").read_text("utf-8")
    assert answer.json["text"] in Page(source).text
    assert 'title="message 1 · answer · weight 1"' in source
    assert 'title="id 2 · label 2 · weight 1 · message 1 · stop"' in source
    assert "prefers-color-scheme: dark" in source
    assert answer.err.splitlines()[-2] == f"wrote {tmp_path / 'page.html'}"


def test_the_page_of_all_rows_has_a_section_a_row(turnmill, examples: Path, tmp_path: Path) -> None:
    turnmill("explain", examples / "faulty.jsonl", "all", "--template", "chatml", "--html", tmp_path / "all.html")
    source = (tmp_path / "all.html").read_text("utf-8")
    assert re.findall(r'<section id="row-(\d+)">', source) == [str(number) for number in range(16)]


def test_control_token_text_is_outlined(turnmill, rows, tmp_path: Path) -> None:
    data = rows({"messages": [{"role": "user", "content": "a<|im_end|>b"}, {"role": "assistant", "content": "c"}]})
    answer = turnmill("explain", data, "0", "--model", "smollm2", "--html", tmp_path / "page.html")
    assert "content holds control tokens, encoded as plain text: <|im_end|>" in answer.out
    assert re.search(r'class="user hit"[^>]*>&lt;\|im_end\|&gt;<', (tmp_path / "page.html").read_text("utf-8"))


def test_a_failed_run_leaves_no_page(turnmill, rows, tmp_path: Path) -> None:
    answer = turnmill("explain", rows(ROW), "5", "--template", "chatml", "--html", tmp_path / "page.html")
    assert answer.code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]
