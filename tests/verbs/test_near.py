"""Near-duplicates over files, sources and ranges of keys: the same, however the work is cut."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from chats import chat
from planted import exact_pairs, planted
from turnmill.contract import check
from turnmill.dialects import Reading, convert, dialects
from turnmill.files.tables import group_ranges
from turnmill.options import Filter, Near
from turnmill.verbs import filter, near
from turnmill.verbs.check import conversation_writer


class Rows:
    """Files of checked rows with their indexes, and the near-duplicates among them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[str] = []
        self.indexes: list[str] = []
        self._numbers = count()

    def add(self, texts: list[str], use: tuple[str, ...] = ()) -> None:
        """A file of chats that say these texts."""
        import msgspec

        place = self.folder / f"part-{len(self.files)}"
        place.mkdir()
        with conversation_writer(place / "rows.parquet", ()) as writer:
            for text in texts:
                question, _, answer = text.partition(" ")
                made = convert(chat(question or "?", answer or "…"), dialects.get("openai"), Reading())
                meta = {"source_file": place.name, "source_line": 1, "row": next(self._numbers)}
                writer.write(check(msgspec.structs.replace(made, source="a", meta=meta)))
        filter.run_shard(filter.FilterTask(str(place / "rows.parquet"), Filter(use=use), None, "f"), place)
        self.files.append(str(place / "rows.parquet"))
        self.indexes.append(str(place / filter.INDEX))

    def known(self, parts: int = 1, options: Near = Near()):  # noqa: B008  # frozen
        shards, pairs = [], []
        for number, task in enumerate(near.signature_tasks(self.files, self.indexes, options)):
            shards.append(str(self._folder(f"signatures-{parts}-{number}")))
            near.sign_shard(task, Path(shards[-1]))
        for task in near.pair_tasks(tuple(shards), options, 0, parts):
            place = self._folder(f"pairs-{parts}-{task.part}")
            near.pair_shard(task, place)
            pairs.append(str(place / near.PAIRS))
        return near.read_known(near.NearFiles("f", tuple(shards), tuple(pairs)))

    def _folder(self, name: str) -> Path:
        place = self.folder / name
        place.mkdir()
        return place


@pytest.fixture
def rows(tmp_path) -> Rows:
    return Rows(tmp_path)


def said(known) -> tuple[set, dict]:
    """Pairs, and which rows have the same n-grams, whatever number they share."""
    alike: dict[int, set[int]] = {}
    for row, text in known.texts.items():
        alike.setdefault(text, set()).add(row)
    return set(known.pairs), {min(members): members for members in alike.values()}


def test_the_rows_of_all_files_are_compared(rows):
    texts = planted(150, edited=150, seed=1)
    for start in range(0, 300, 100):
        rows.add(texts[start : start + 100])
    found = {(pair.first, pair.second) for pair in rows.known().pairs}
    expected = exact_pairs(texts, 0.8)
    assert len(expected) > 20
    assert found == {pair for pair, similarity in expected.items() if similarity < 1}


@pytest.mark.parametrize("parts", [2, 64])
def test_ranges_of_keys_change_nothing(rows, parts):
    texts = [*planted(100, edited=100, seed=4), "the same words", "The same words!", ""]
    rows.add(texts[:90])
    rows.add(texts[90:])
    assert said(rows.known(parts)) == said(rows.known(1))
    assert rows.known(3).pairs


def test_files_change_nothing(tmp_path, monkeypatch):
    texts = planted(60, edited=60, seed=5)
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    one, many = Rows(tmp_path / "one"), Rows(tmp_path / "many")
    one.add(texts)
    for start in range(0, 120, 12):
        many.add(texts[start : start + 12])
    monkeypatch.setattr(near, "OPEN_SHARDS", 2)
    assert said(many.known()) == said(one.known())


def test_large_files_are_cut_into_tasks(rows, monkeypatch):
    texts = planted(1600, edited=400, seed=6)
    rows.add(texts)
    whole = said(rows.known(1))
    monkeypatch.setattr(near, "TASK_ROWS", 1000)
    assert len(near.signature_tasks(rows.files, rows.indexes, Near())) == len(group_ranges(Path(rows.files[0]), 1)) == 2
    assert said(rows.known(2)) == whole


def test_rows_that_a_filter_lets_go_are_not_compared(rows):
    loop = "why " + "because of the very same reason, " * 40
    rows.add([loop, f"{loop} indeed"], use=("repetition-loops",))
    assert said(rows.known()) == (set(), {})


def test_all_rows_equal_are_one_text_and_no_pairs(rows):
    rows.add(["one and the same text for all of them"] * 1500)
    known = rows.known()
    assert known.pairs == []
    assert len(known.texts) == 1500
    assert len(set(known.texts.values())) == 1


def test_no_rows_have_no_near_duplicates(rows):
    rows.add([])
    assert said(rows.known()) == (set(), {})


def test_one_giant_text_is_compared_like_any_other(rows):
    giant = " ".join(f"word{number}" for number in range(200_000))
    rows.add([giant, "small one here", f"{giant} more"])
    assert [(pair.first, pair.second) for pair in rows.known().pairs] == [(0, 2)]
