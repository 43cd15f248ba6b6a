from __future__ import annotations

from turnmill.dialects import dialects


def test_families_are_listed(turnmill) -> None:
    assert {"dialects", "filters"} <= set(turnmill("list").out.split())


def test_a_family_is_listed_with_summaries(turnmill) -> None:
    rows = turnmill("list", "dialects", "--json").json
    assert [row["name"] for row in rows] == dialects.names()


def test_the_table_names_every_plugin(turnmill) -> None:
    answer = turnmill("list", "dialects")
    assert answer.code == 0
    assert {line.split()[0] for line in answer.out.splitlines()[1:]} == set(dialects.names())
