from __future__ import annotations

from pathlib import Path

from turnmill.codes import CODES


def test_the_summary_says_what_each_code_means_and_what_to_do(turnmill, prepared: Path) -> None:
    answer = turnmill("quarantine", "show", prepared)
    assert answer.code == 0
    line = next(line for line in answer.out.splitlines() if "blank-text" in line)
    assert line.split()[:4] == ["1", "rejected", "blank-text", "faulty"]
    assert CODES["blank-text"].means in line
    assert CODES["blank-text"].remedy in line


def test_rows_are_chosen_by_code_source_and_stage(turnmill, prepared: Path) -> None:
    def codes(*flags: str) -> set[str]:
        return {row["code"] for row in turnmill("quarantine", "show", prepared, *flags, "--json").rows}

    assert len(codes()) == 15
    assert codes("--code", "blank-text") == {"blank-text"}
    assert codes("--stage", "check") < codes("--source", "faulty")
    assert len(turnmill("quarantine", "show", prepared, "--limit", "2", "--json").rows) == 2


def test_a_row_is_shown_with_its_place_and_its_record(turnmill, prepared: Path, examples: Path) -> None:
    (row,) = turnmill("quarantine", "show", prepared, "--code", "blank-text", "--json").rows
    assert (row["source_file"], row["source_line"], row["stage"]) == ("faulty.jsonl", 9, "check")
    assert row["record"].encode() == (examples / "faulty.jsonl").read_bytes().splitlines()[8]


def test_duplicates_lie_apart(turnmill, prepared: Path) -> None:
    (row,) = turnmill("quarantine", "show", prepared, "--duplicates", "--json").rows
    assert (row["class"], row["code"], row["row"]) == ("duplicate", "duplicate", 4)


def test_a_name_nobody_left_with_is_an_error_that_suggests_one(turnmill, prepared: Path) -> None:
    answer = turnmill("quarantine", "show", prepared, "--code", "blank-texts")
    assert answer.code == 2
    assert "Did you mean 'blank-text'?" in answer.err


def test_an_export_holds_the_exact_bytes(turnmill, prepared: Path, examples: Path, tmp_path: Path) -> None:
    target = tmp_path / "mend.jsonl"
    answer = turnmill("quarantine", "export", prepared, "--to", target, "--json")
    assert answer.json == {"rows": 15, "to": str(target)}
    faulty = (examples / "faulty.jsonl").read_bytes().splitlines()[1:]
    assert sorted(target.read_bytes().splitlines()) == sorted(faulty)
    assert answer.next_step == f"turnmill check {target}"


def test_an_export_overwrites_nothing(turnmill, prepared: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.jsonl"
    target.write_text("mine")
    answer = turnmill("quarantine", "export", prepared, "--to", target)
    assert (answer.code, target.read_text()) == (2, "mine")
    assert answer.next_step.endswith(f"--to {target.with_name('mine-2.jsonl')}")


def test_a_record_of_several_lines_is_exported_on_one(turnmill, write, tmp_path: Path) -> None:
    good = '{"messages":\n [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}'
    data = write("pretty.json", good + '\n{\n"messages":\n[]\n}\n')
    turnmill("prepare", data, "--model", "smollm2", "--output", tmp_path / "out", "--workers", "1")
    turnmill("quarantine", "export", tmp_path / "out", "--to", tmp_path / "mend.jsonl")
    assert (tmp_path / "mend.jsonl").read_text() == '{ "messages": [] }\n'


def test_other_folders_are_refused(turnmill, tmp_path: Path) -> None:
    answer = turnmill("quarantine", "show", tmp_path)
    assert answer.code == 2
    assert "no prepared folder" in answer.err
