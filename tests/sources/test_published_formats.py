"""Each source, over rows as its dataset publishes them: what is said stays, what leaves is named."""

from __future__ import annotations

import json

import pytest

from pinned_sources import BuiltSource, fixture_rows, over, said
from turnmill.sources import sources

LEFT = {
    "apigen-mt": [("rejected", "tool-undefined")],
    "coderforge": [("duplicate", "duplicate"), ("filtered", "source-filtered")],
    "llamafactory-parts": [("filtered", "source-filtered")],
    "nemotron-chat": [("filtered", "source-filtered"), *[("rejected", "prompt-withheld")] * 2],
    "nemotron-instruction-following": [("rejected", "train-turns-invalid")],
    "nemotron-terminal": [("filtered", "source-filtered")],
    "open-swe-traces": [("rejected", "tool-reply-unmatched")],
    "opencode-instruct": [("rejected", "blank-text")],
    "openthoughts4-code": [],
    "swe-rebench-openhands": [("filtered", "source-filtered")],
}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory):
    """Builds a source over its fixture, once a session."""
    made: dict[str, BuiltSource] = {}

    def call(name: str) -> BuiltSource:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            made[name] = BuiltSource(over(name, fixture_rows(name), folder), folder / "cache")
        return made[name]

    return call


@pytest.mark.parametrize("name", sources.names())
def test_every_record_stays_or_leaves_with_its_code(built, name: str) -> None:
    source = built(name)
    assert sorted((class_, code) for class_, code, _ in source.left) == LEFT[name]
    kept, read = len(source.table("conversations")), len(fixture_rows(name))
    assert kept == read - len(LEFT[name])
    assert source.artifact("conversations").result.rows == kept


@pytest.mark.parametrize("name", sources.names())
def test_drops_are_counted_by_what_they_are(built, name: str) -> None:
    counters = built(name).counters("check")
    classes = [class_ for class_, _ in LEFT[name]]
    assert counters.get("filters/source-filtered", 0) == counters.get("rows/filtered", 0) == classes.count("filtered")
    assert counters.get("rows/rejected", 0) == classes.count("rejected")


def test_prompts_and_answers_stay_byte_for_byte(built) -> None:
    chats = built("opencode-instruct").chats
    for row in fixture_rows("opencode-instruct")[:2]:
        assert said(chats[row["id"]]) == [("user", row["input"]), ("final", row["output"])]
    assert chats["a2"]["average_test_score"] == '"0.5"'


def test_messages_and_tools_as_json_text_are_read_and_results_join_their_calls(built) -> None:
    solved = built("coderforge").chats["t1"]
    assert said(solved)[3:7] == [
        ("call functions.execute_bash", '{"command": "ls  -la"}'),
        ("call functions.execute_bash", '{"command": "cat ring.py"}'),
        ("from functions.execute_bash", "ring.py"),
        ("from functions.execute_bash", "def ring(n):\n\treturn n\n"),
    ]
    assert said(solved)[-1][0] == "call functions.str_replace_editor"
    assert json.loads(solved["chat_template_kwargs"])["tools"] == json.loads(fixture_rows("coderforge")[0]["tools"])
    assert (solved["reward"], built("coderforge").chats["t2"]["reward"]) == ("1.0", "0.0")


def test_what_stands_before_a_lone_closing_tag_is_reasoning(built) -> None:
    first, plain, quoting = built("openthoughts4-code").table("conversations")
    assert said(first)[1:] == [("analysis", "Plan it.\n\nThen write."), ("final", "```python\nprint(1)\n```")]
    assert said(plain)[1:] == [("final", "```python\nprint(1)\n```")]
    assert said(quoting)[1][1] == "It is asked what closes.</think>A block ends with `</think>`."
    assert [first["repairs"], plain["repairs"], quoting["repairs"]] == [["reopen-think"], [], []]
    assert (first["response_index"], plain["response_index"]) == ("0", "1")


def test_the_json_object_of_a_terminal_agent_is_its_reply(built) -> None:
    first = built("nemotron-terminal").chats["t1"]
    recorded = fixture_rows("nemotron-terminal")[0]["conversations"]
    assert [speaker for speaker, _ in said(first)] == ["user", "analysis", "final", "user", "final"]
    assert said(first)[0][1] == recorded[0]["content"]
    assert said(first)[2][1] in recorded[1]["content"]
    assert json.loads(said(first)[4][1])["task_complete"] is True
    assert built("nemotron-terminal").counters("check")["read/terminus-prose-dropped"] == 1


def test_withheld_prompts_come_back_by_their_hash(built) -> None:
    source = built("nemotron-chat")
    assert said(source.chats["u1"])[0] == ("user", "Why does  useHistory fail?\n")
    assert [speaker for speaker, _ in said(source.chats["u2"])] == ["user", "final", "user", "analysis", "final"]
    assert {row["prompt"] for row in source.prompts} == {said(source.chats[key])[0][1] for key in ("u1", "u2")}
    assert source.counters("prompts") == {"prompts/found": 2, "prompts/withheld": 3}


@pytest.mark.parametrize(
    ("name", "key", "recorded", "weights"),
    [
        ("nemotron-instruction-following", "i1", [False, False, False, False, True], [None, None, 0, None, None, None]),
        ("nemotron-instruction-following", "i2", None, None),
        ("nemotron-chat", "u1", [False, True], None),
        ("nemotron-chat", "u2", [False, False, False, True], [None, 0, None, None, None]),
    ],
)
def test_train_turns_are_weights_and_stay_as_recorded(built, name, key, recorded, weights) -> None:
    chat = built(name).chats[key]
    assert json.loads(chat["source_train_turns"] or "null") == recorded
    assert chat["weights"] == weights


def test_sharegpt_calls_are_associated_and_system_and_tools_are_read(built) -> None:
    first, plain = built("apigen-mt").table("conversations")
    row = fixture_rows("apigen-mt")[0]
    assert said(first)[0] == ("system", row["system"])
    assert said(first)[3] == ("from functions.get_order", '{"status":  "pending"}')
    assert said(first)[6][0] == "call functions.cancel"
    assert said(plain)[0] == said(first)[0]
    assert json.loads(first["chat_template_kwargs"])["tools"] == json.loads(row["tools"])


def test_content_parts_are_joined_and_weights_kept(built) -> None:
    parts, weighted = built("llamafactory-parts").table("conversations")
    assert said(parts) == [("user", "Name a  planet, please."), ("final", "Mars.")]
    assert (parts["weights"], weighted["weights"]) == ([None, 1.0], [None, 0.0, None, 1.0])


def test_runs_keep_outcomes_and_tools_as_recorded(built) -> None:
    chats = built("swe-rebench-openhands").chats
    solved, failed = chats["chatcmpl-1"], chats["chatcmpl-3"]
    assert said(solved)[1] == ("user", "<issue>\n  It crashes.\n</issue>\n\nFollow the rules.")
    assert (solved["repairs"], solved["resolved"], failed["resolved"]) == (["merge-turns"], "1", "0")
    assert said(solved)[-1] == ("call functions.finish", '{"message": "Done."}')
    recorded = [row["tools"] for row in fixture_rows("swe-rebench-openhands")]
    assert json.loads(solved["chat_template_kwargs"])["tools"] == recorded[0]
    assert json.loads(failed["chat_template_kwargs"])["tools"] == recorded[2]


def test_results_without_ids_answer_their_calls_in_order(built) -> None:
    (chat,) = built("open-swe-traces").table("conversations")
    assert said(chat)[2:7] == [
        ("analysis", "Two at once."),
        ("call functions.execute_bash", '{"command": "go test"}'),
        ("call functions.execute_bash", '{"command": "git log"}'),
        ("from functions.execute_bash", "FAIL\n"),
        ("from functions.execute_bash", "abc first"),
    ]
    tools = [json.loads(tool) for tool in fixture_rows("open-swe-traces")[0]["tools"]]
    assert json.loads(chat["chat_template_kwargs"])["tools"] == tools


def test_the_demonstration_rows_that_are_pinned_are_read_as_they_were_published(llamafactory_data, tmp_path) -> None:
    """The published file itself, held against the hash that is pinned."""
    path = tmp_path / "real.py"
    path.write_text(
        "import dataclasses\nfrom turnmill.sources import sources\n\n\ndef real():\n"
        "    source = sources.get('llamafactory-parts')()\n"
        f"    return dataclasses.replace(source, pin=source.pin._replace(url={str(llamafactory_data)!r}))\n"
    )
    built = BuiltSource(f"{path}:real", tmp_path / "cache")
    counters = built.counters("check")
    assert (counters["rows/read"], counters["rows/filtered"], counters.get("rows/rejected", 0)) == (500, 50, 0)
