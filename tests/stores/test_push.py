"""`turnmill push` and `turnmill pull` against the stand-in of the dataset hub."""

from __future__ import annotations

import json
import shutil

import pytest
from huggingface_hub import constants

from chats import chat, numbered
from hub_stand_in import REPOSITORY, TOKEN
from published import hashes
from stores_of_tests import NOBODY
from turnmill.cli.app import run

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content:DeprecationWarning")  # huggingface_hub about httpx

REPO = "me/rows"
LICENCE = ("--license", "cc-by-4.0")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A prepared folder; read only."""
    folder = tmp_path_factory.mktemp("push")
    lines = [json.dumps(chat(*texts)) + "\n" for texts in numbered(30)]
    (folder / "rows.jsonl").write_text("".join(lines))
    words = ["prepare", str(folder / "rows.jsonl"), "--model", "smollm2", "--workers", "1", "--split.rows", "4"]
    assert run([*words, "--output", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture
def hub(hub, monkeypatch):
    """The hub, asked by one who may write."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield hub
    hub.made.clear()
    hub.objects.clear()
    hub.uploads.clear()
    hub.takes = None


def content(folder) -> dict[str, str]:
    """Hashes of all but what says when and where."""
    return {name: digest for name, digest in hashes(folder).items() if name not in ("run.json", "hub.json")}


def test_what_is_pushed_is_pulled_byte_for_byte(turnmill, hub, out, tmp_path):
    pushed = turnmill("push", out, REPO, *LICENCE)
    assert pushed.code == 0, pushed.err
    commit = hub.made[REPO].branches["main"]
    assert pushed.next_step == f"turnmill pull {REPO}@{commit} --output rows"
    pulled = turnmill("pull", f"{REPO}@{commit}", "--output", tmp_path / "got")
    assert pulled.code == 0, pulled.err
    assert content(tmp_path / "got") == content(out)
    assert json.loads((tmp_path / "got" / "hub.json").read_text()) == {"repository": REPO, "commit": commit}
    assert turnmill("census", tmp_path / "got").code == 0
    assert sorted(path.name for path in tmp_path.iterdir() if "lock" not in path.name) == ["got"]


def test_a_new_repository_is_private_unless_told(turnmill, hub, out):
    assert turnmill("push", out, REPO, *LICENCE).code == 0
    assert turnmill("push", out, "me/open", *LICENCE, "--public").code == 0
    assert (hub.made[REPO].private, hub.made["me/open"].private) == (True, False)
    refused = turnmill("push", out, "me/open", *LICENCE)
    assert (refused.code, "is public" in refused.err) == (2, True)
    assert refused.next_step.endswith("--public")


def test_the_run_is_not_pushed_and_the_card_is(turnmill, hub, out):
    turnmill("push", out, REPO, *LICENCE)
    files = hub.made[REPO].files
    assert "run.json" not in files
    card = files["README.md"].decode()
    assert card.startswith("---\nlicense: cc-by-4.0\n")
    for said in ("path: train/packed/*.parquet", "split: validation", "| rows | 30 | 26 | 4 | 0 |", "rows.jsonl"):
        assert said in card
    assert "of them trained" not in card
    assert "tokens: " in card


def test_rows_that_left_stay_here_where_it_is_asked(turnmill, hub, out, tmp_path, write):
    rows = [
        *(json.dumps(chat(*texts)) for texts in numbered(9)),
        json.dumps(chat("SECRET one", "x")),
        '{"SECRET": two}',
    ]
    data = write("rows.jsonl", "\n".join([*rows, rows[-2]]))
    words = ("--model", "smollm2", "--workers", "1", "--health.max_rejected", "1", "--output", tmp_path / "out")
    assert turnmill("prepare", data, *words).code == 0
    told = turnmill("push", tmp_path / "out", "me/all", *LICENCE)
    assert "2 rows that were left out are among them" in told.err
    assert turnmill("push", tmp_path / "out", REPO, *LICENCE, "--no-quarantine").code == 0
    sent = hub.made[REPO].files
    assert not any(name.startswith(("quarantine", "duplicates")) for name in sent)
    assert not any(b'SECRET": two' in content for content in sent.values())
    assert turnmill("pull", REPO, "--output", tmp_path / "got").code == 0
    assert turnmill("census", tmp_path / "got").code == turnmill("diff", tmp_path / "out", tmp_path / "got").code == 0


def test_a_dry_run_shows_the_card_and_asks_nobody(turnmill, hub, out):
    before = len(hub.asked)
    shown = turnmill("push", out, REPO, *LICENCE, "--dry-run")
    assert (shown.code, shown.out.startswith("---\nlicense: cc-by-4.0")) == (0, True)
    assert (len(hub.asked), hub.made) == (before, {})


def test_the_same_again_makes_no_commit(turnmill, hub, out):
    first = turnmill("push", out, REPO, *LICENCE)
    again = turnmill("push", out, REPO, *LICENCE)
    assert (again.code, again.out) == (0, first.out)
    assert len(hub.made[REPO].messages) == 2


def test_files_of_an_earlier_push_go_and_those_of_others_stay(turnmill, hub, out, tmp_path, chats):
    turnmill("push", out, REPO, *LICENCE)
    made = hub.made[REPO]
    made.commit({**made.files, "mine.txt": b"x"}, "main", "by hand")
    data = chats("rows.jsonl", *numbered(5))
    words = ("--model", "smollm2", "--workers", "1", "--pack.materialise", "false", "--output", tmp_path / "smaller")
    assert turnmill("prepare", data, *words).code == 0
    done = turnmill("push", tmp_path / "smaller", REPO, *LICENCE, "--json")
    assert done.code == 0, done.err
    assert done.json["deleted"] > 0
    assert "mine.txt" in made.files
    assert not any(name.startswith(("train/packed", "eval")) for name in made.files)


def test_a_card_that_somebody_edited_stays(turnmill, hub, out):
    turnmill("push", out, REPO, *LICENCE)
    made = hub.made[REPO]
    made.commit({**made.files, "README.md": made.files["README.md"] + b"My words.\n"}, "main", "by hand")
    again = turnmill("push", out, REPO, "--license", "mit")
    assert (again.code, "stays as it is" in again.err) == (0, True)
    assert made.files["README.md"].endswith(b"My words.\n")


def test_a_push_that_was_stopped_changes_nothing_and_goes_on(turnmill, hub, out):
    hub.takes = 2
    stopped = turnmill("push", out, REPO, *LICENCE)
    assert stopped.code == 2
    assert set(hub.made[REPO].files) == {".gitattributes"}
    hub.takes = None
    assert turnmill("push", out, REPO, *LICENCE).code == 0
    assert len(hub.uploads) == len(set(hub.uploads))


def test_a_branch_is_made_and_main_stays(turnmill, hub, out, tmp_path):
    turnmill("push", out, REPO, *LICENCE)
    main = hub.made[REPO].branches["main"]
    assert turnmill("push", out, f"{REPO}@next", "--license", "mit").code == 0
    assert hub.made[REPO].branches["main"] == main != hub.made[REPO].branches["next"]
    pulled = turnmill("pull", f"{REPO}@next", "--output", tmp_path / "got")
    assert f"to get the same again: {REPO}@{hub.made[REPO].branches['next']}" in pulled.err


def test_an_export_is_pushed_with_its_own_card(turnmill, hub, out, tmp_path):
    words = ("export", out, "--to", "messages", "--output", tmp_path / "exported")
    assert turnmill(*words).code == 0
    refused = turnmill("push", tmp_path / "exported", REPO, *LICENCE)
    assert (refused.code, "names licence None, not cc-by-4.0" in refused.err) == (2, True)
    assert turnmill(*words, "--license", "CC-BY-4.0").code == 0
    assert turnmill("push", tmp_path / "exported", REPO).code == 0
    assert turnmill("pull", REPO, "--output", tmp_path / "got").code == 0
    assert content(tmp_path / "got") == content(tmp_path / "exported")


REFUSED = [
    ([REPO], "no licence"),
    ([REPO, "--license", "Do what you like"], "no licence's identifier"),
    ([REPO, *LICENCE, "--no-license"], "exclude each other"),
    (["rows", *LICENCE], "names no repository"),
    ([REPOSITORY, *LICENCE, "--public"], "holds files that turnmill did not push"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_what_cannot_be_pushed_is_refused(turnmill, hub, out, words, said):
    hub.commit({"data/a.jsonl": b"{}", "README.md": b"x"})
    refused = turnmill("push", out, *words)
    assert (refused.code, said in refused.err, hub.made) == (2, True, {})


def test_no_licence_is_said_where_it_is_waived(turnmill, hub, out):
    assert turnmill("push", out, REPO, "--no-license").code == 0
    assert "Licence: not stated." in hub.made[REPO].files["README.md"].decode()


def test_a_changed_folder_is_not_pushed(turnmill, hub, out, tmp_path):
    shutil.copytree(out, tmp_path / "out")
    (tmp_path / "out" / "report.json").write_text("{}")
    assert turnmill("push", tmp_path / "out", REPO, *LICENCE).code == 4
    assert hub.made == {}


@pytest.mark.parametrize(("token", "next_step"), [("", "hf auth login"), ("hf_that-may-do-nothing", "hf auth whoami")])
def test_who_may_not_write_is_told_and_the_token_is_not_shown(turnmill, hub, out, monkeypatch, token, next_step):
    monkeypatch.setenv("HF_TOKEN", token)
    refused = turnmill("push", out, REPO, *LICENCE)
    assert (refused.code, refused.next_step) == (2, next_step)
    assert not token or token not in refused.out + refused.err


def test_somebody_elses_push_meanwhile_is_told(turnmill, hub, out, monkeypatch):
    turnmill("push", out, REPO, *LICENCE)
    made = hub.made[REPO]
    late = made.commit
    from huggingface_hub import HfApi

    create = HfApi.create_commit

    def overtaken(*arguments, **options):
        late({**made.files, "other.txt": b"x"}, "main", "meanwhile")
        return create(*arguments, **options)

    monkeypatch.setattr(HfApi, "create_commit", overtaken)
    refused = turnmill("push", out, REPO, "--license", "mit")
    assert (refused.code, "somebody else changed it meanwhile" in refused.err) == (2, True)
    assert made.messages[-1] == "meanwhile"


def test_a_hub_that_is_down_is_told(turnmill, hub, out, monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "ENDPOINT", NOBODY)
    for words in (("push", out, REPO, *LICENCE), ("pull", REPO, "--output", tmp_path / "got")):
        refused = turnmill(*words)
        assert (refused.code, f"cannot {words[0]}" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("repository", "said"),
    [
        ("me/none", "there is no such dataset"),
        (f"{REPO}@nowhere", "no such revision"),
        (REPOSITORY, "was not pushed by"),
    ],
)
def test_what_cannot_be_pulled_is_refused(turnmill, hub, out, tmp_path, repository, said):
    hub.commit({"data/a.jsonl": b"{}"})
    turnmill("push", out, REPO, *LICENCE)
    refused = turnmill("pull", repository, "--output", tmp_path / "got")
    assert (refused.code, said in refused.err, (tmp_path / "got").exists()) == (2, True, False)


def test_a_file_that_is_not_what_the_manifest_lists_is_refused(turnmill, hub, out, tmp_path):
    turnmill("push", out, REPO, *LICENCE)
    made = hub.made[REPO]
    made.commit({**made.files, "report.html": b"other"}, "main", "damage")
    refused = turnmill("pull", REPO, "--output", tmp_path / "got")
    assert (refused.code, "report.html (5 bytes" in refused.err, (tmp_path / "got").exists()) == (4, True, False)


@pytest.mark.parametrize("path", ["../escaped.txt", "/etc/passwd", "a/../../b", ".cache/x", ""])
def test_a_manifest_that_names_a_place_outside_is_refused(turnmill, hub, out, tmp_path, path):
    turnmill("push", out, REPO, *LICENCE)
    made = hub.made[REPO]
    manifest = json.loads(made.files["manifest.json"])
    manifest["files"].append({"path": path, "sha256": "0" * 64, "bytes": 1, "rows": None})
    made.commit({**made.files, "manifest.json": json.dumps(manifest).encode()}, "main", "damage")
    refused = turnmill("pull", REPO, "--output", tmp_path / "got")
    assert (refused.code, "lists a place outside" in refused.err, (tmp_path / "got").exists()) == (4, True, False)


def test_a_pull_that_was_stopped_goes_on_where_it_was(turnmill, hub, out, tmp_path):
    turnmill("push", out, REPO, *LICENCE)
    made = hub.made[REPO]
    whole = made.files
    made.commits[made.branches["main"]] = {name: data for name, data in whole.items() if "quarantine" not in name}
    stopped = turnmill("pull", REPO, "--output", tmp_path / "got")
    assert (stopped.code, (tmp_path / "got").exists()) == (2, False)
    made.commits[made.branches["main"]] = whole
    before = len(hub.ranges)
    assert turnmill("pull", REPO, "--output", tmp_path / "got").code == 0
    assert content(tmp_path / "got") == content(out)
    assert len(hub.ranges) - before < 2 * len(whole)


def test_a_pull_does_not_go_over_what_others_wrote(turnmill, hub, out, tmp_path):
    turnmill("push", out, REPO, *LICENCE)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    refused = turnmill("pull", REPO, "--output", tmp_path / "mine")
    assert (refused.code, (tmp_path / "mine" / "notes.txt").read_text()) == (2, "x")


def test_a_pull_replaces_an_earlier_output_whole(turnmill, hub, out, tmp_path):
    turnmill("push", out, REPO, *LICENCE)
    for _ in range(2):
        assert turnmill("pull", REPO, "--output", tmp_path / "got").code == 0
    assert content(tmp_path / "got") == content(out)
