"""push: a published folder in a repository of a dataset hub, in one commit, with a card."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from turnmill.conversation import Json
from turnmill.errors import UsageError, shell_word
from turnmill.files.hub import DATASET, Hub, Repository, open_hub
from turnmill.files.inventory import MANIFEST, verify
from turnmill.report.card import Form, card, checked_licence, is_ours, licence_of
from turnmill.verbs.sent import Sent, whole, without_left

CARD = "README.md"
KEPT = (CARD, ".gitattributes")
"""Files that a hub makes by itself, or people write: they make no repository a foreign one."""
LOADING = """```sh
turnmill pull REPO@COMMIT --output OUT
```

gives this folder back, every file compared with its sha256. Packed rows alone:

```python
from datasets import load_dataset

data = load_dataset("REPO", "packed", split="train", revision="COMMIT")
```"""


class Licence(NamedTuple):
    """What was said of the licence."""

    identifier: str | None
    is_waived: bool = False
    """Whether the card may name none."""


class Pushed(NamedTuple):
    """What was done."""

    repository: str
    commit: str
    files: int
    bytes: int
    deleted: int
    """Files of an earlier push that are not of this one."""
    is_card_kept: bool
    """Whether the card there was edited by somebody, and stays."""
    is_private: bool
    left_rows: int
    """Rows that were left out of the training data and are there all the same, in quarantine and duplicates."""

    def as_json(self) -> dict[str, Json]:
        """The answer of `push --json`."""
        return self._asdict()


class _Ours(NamedTuple):
    """What is sent."""

    sent: Sent
    card: str
    message: str | None
    is_public: bool
    """Whether a new repository is."""


class _There(NamedTuple):
    """What the repository holds now; nothing where it is not there."""

    commit: str | None = None
    is_private: bool = True
    files: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    """Those that an earlier push listed in its manifest."""
    card: str | None = None


def push(
    folder: Path,
    to: Repository,
    licence: Licence,
    *,
    left: bool = True,
    public: bool = False,
    message: str | None = None,
) -> Pushed:
    """Make a branch of a repository hold a folder, in one commit: it is there whole, or as it was.

    Files of an earlier push that are not of this one are removed; others stay. A new repository is private.

    Args:
        folder: what `prepare` or `export` published.
        to: repository and branch.
        licence: of the data.
        left: send the rows that left, too.
        public: make a new repository public, and push to a public one.
        message: of the commit.

    Raises:
        UsageError: no token, no licence, a repository of something else, or the hub refuses; nothing was changed there.
        StaleError: the folder is not what its manifest lists.
    """
    sent, text = would_push(folder, to, licence, left=left)
    hub = open_hub(writes=True)
    with hub.errors(f"push to {to}"):
        there = _there(hub, to)
        _refuse_foreign(to, there)
        _refuse_public(to, there, public=public)
        return _commit(hub, _Ours(sent, text, message, public), to, there)


def card_of(folder: Path, manifest: dict[str, Any], to: Repository, licence: Licence) -> str:
    """The card: made for a prepared folder, that of the export for an exported one.

    Raises:
        UsageError: no licence was named and it was not waived, or it is no folder that is pushed.
    """
    identifier = None if licence.identifier is None else checked_licence(licence.identifier)
    if manifest.get("kind") == "exported":
        text = (folder / CARD).read_text("utf-8")
        named = licence_of(text)
        if identifier not in (None, named):
            what = f"the card of {folder} names licence {named}, not {identifier}: an export's card is written with it"
            raise UsageError(what, next_step=f"turnmill export OUT --to NAME --license {identifier} --output DIR")
        _require_licence(named, licence, f"turnmill export OUT --to NAME --license ID --output {shell_word(folder)}")
        return text
    if manifest.get("kind") != "prepared":
        what = f"{folder} is neither what `prepare` published nor what `export` did"
        raise UsageError(what, next_step=f"ls {shell_word(folder)}")
    _require_licence(identifier, licence, "--license cc-by-4.0")
    report = json.loads((folder / "report.json").read_bytes())
    return card(manifest, report, _form(manifest, to), identifier)


def _require_licence(named: str | None, licence: Licence, next_step: str) -> None:
    if named is None and not licence.is_waived:
        what = "no licence: who gets these rows must know what they may do with them (or --no-license: none is known)"
        raise UsageError(what, next_step=next_step)


def _form(manifest: dict[str, Any], to: Repository) -> Form:
    """A prepared folder as a hub shows it."""
    rows: dict[str, int] = {}
    for entry in manifest["files"]:
        place = entry["path"].rpartition("/")[0]
        if entry["rows"] is not None:
            rows[place or entry["path"]] = rows.get(place or entry["path"], 0) + entry["rows"]
    configs = []
    for name, inside in (("packed", "{}/packed"), ("conversations", "conversations/{}")):
        sides = {"train": "train", "validation": "eval"}
        held = {split: inside.format(side) for split, side in sides.items() if rows.get(inside.format(side))}
        if held:
            configs.append((name, {split: f"{place}/*.parquet" for split, place in held.items()}))
    return Form(to.name.partition("/")[2], rows, LOADING.replace("REPO", to.name), configs)


def _there(hub: Hub, to: Repository) -> _There:
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        info = hub.api.repo_info(to.name, repo_type=DATASET, revision=to.revision)
    except RevisionNotFoundError:
        info = hub.api.repo_info(to.name, repo_type=DATASET)
    except RepositoryNotFoundError:
        return _There()
    files = frozenset(hub.api.list_repo_files(to.name, repo_type=DATASET, revision=info.sha))
    found = {name: _read(hub, to, name, info.sha) for name in (MANIFEST, CARD) if name in files}
    listed = _listed(found.get(MANIFEST))
    return _There(info.sha, bool(info.private), files, listed, found.get(CARD))


def _read(hub: Hub, to: Repository, name: str, commit: str | None) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        path = hub.api.hf_hub_download(to.name, name, repo_type=DATASET, revision=commit, local_dir=scratch)
        return Path(path).read_text("utf-8", "replace")


def _listed(manifest: str | None) -> frozenset[str]:
    """The files of an earlier push; none where it is no manifest of ours."""
    try:
        read = json.loads(manifest or "")
        return frozenset([MANIFEST, *(entry["path"] for entry in read["files"])] if read["made_by"]["turnmill"] else [])
    except (ValueError, KeyError, TypeError):
        return frozenset()


def _refuse_foreign(to: Repository, there: _There) -> None:
    foreign = sorted(there.files - there.listed - {*KEPT})
    if there.listed or not foreign:
        return
    what = f"{to.name} holds files that turnmill did not push ({', '.join(foreign[:3])}); choose another repository"
    raise UsageError(what, next_step=f"turnmill prepare hf://datasets/{to.name} --model MODEL --output OUT")


def _refuse_public(to: Repository, there: _There, *, public: bool) -> None:
    if there.commit is not None and not there.is_private and not public:
        raise UsageError(f"{to.name} is public: everybody would see these rows", next_step="--public")


def _commit(hub: Hub, ours: _Ours, to: Repository, there: _There) -> Pushed:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    manifest = ours.sent.manifest
    is_kept = there.card is not None and not is_ours(there.card) and manifest["kind"] == "prepared"
    contents = {**ours.sent.contents, **({} if is_kept else {CARD: ours.card.encode("utf-8")})}
    stale = sorted((there.listed & there.files) - contents.keys() - {CARD})
    if there.commit is None:
        hub.api.create_repo(to.name, repo_type=DATASET, private=not ours.is_public, exist_ok=True)
    if to.revision is not None:
        hub.api.create_branch(to.name, repo_type=DATASET, branch=to.revision, exist_ok=True)
    adding = [CommitOperationAdd(name, content) for name, content in contents.items()]
    done = hub.api.create_commit(
        to.name,
        [*adding, *(CommitOperationDelete(name) for name in stale)],
        commit_message=ours.message or f"Push {manifest['kind']} data {_mark(manifest)}",
        repo_type=DATASET,
        revision=to.revision,
        parent_commit=there.commit,
    )
    is_private = not ours.is_public if there.commit is None else there.is_private
    return Pushed(
        to.name, str(done.oid), len(contents), ours.sent.bytes, len(stale), is_kept, is_private, ours.sent.left_rows
    )  # fmt: skip


def _mark(manifest: dict[str, Any]) -> str:
    return str(manifest.get("fingerprint") or manifest.get("made_of") or "")[:12]


def would_push(folder: Path, to: Repository, licence: Licence, *, left: bool = True) -> tuple[Sent, str]:
    """What is sent, and the card; nobody is asked.

    Raises:
        UsageError: no licence was named, or it is no folder that is pushed.
        StaleError: the folder is not what its manifest lists.
    """
    manifest = verify(folder)
    sent = (
        without_left(folder, manifest) if not left and manifest.get("kind") == "prepared" else whole(folder, manifest)
    )
    return sent, card_of(folder, sent.manifest, to, licence)
