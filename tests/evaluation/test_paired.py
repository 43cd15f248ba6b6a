"""Two evaluations row by row, by hand."""

from __future__ import annotations

import math

import pytest

from turnmill.evaluation.paired import compared, difference
from turnmill.evaluation.results import ItemLoss, Loss


def loss(tokens: int, mean: float) -> Loss:
    return Loss(tokens, tokens * mean, float(tokens), tokens * mean)


def item(row: str, tokens: int, mean: float, part: int = 0, unscored: str | None = None) -> ItemLoss:
    one = loss(tokens, mean)
    return ItemLoss("set", row, part, one, 0.0, {"answer": one}, unscored)


def test_the_difference_is_that_of_all_tokens_and_its_error_that_of_a_ratio():
    found = difference([(loss(10, 2.0), loss(10, 1.0)), (loss(30, 1.0), loss(30, 1.2)), (loss(20, 1.5), loss(20, 1.5))])
    assert found.difference == pytest.approx((-10 + 6) / 60)
    residues = [-10 - found.difference * 10, 6 - found.difference * 30, 0 - found.difference * 20]
    spread = math.sqrt(sum(residue**2 for residue in residues) / 2)
    assert found.standard_error == pytest.approx(math.sqrt(3) * spread / 60)
    assert found.mean_difference == pytest.approx((-1.0 + 0.2 + 0) / 3)
    assert (found.better, found.worse, found.rows, found.tokens) == (1, 1, 3, 60)


def test_one_row_has_no_standard_error():
    found = difference([(loss(10, 2.0), loss(10, 2.5))])
    assert (found.difference, found.standard_error) == (pytest.approx(0.5), None)
    assert found.is_rise(0.4)


def test_a_rise_within_two_standard_errors_is_none():
    found = difference([(loss(10, 1.0), loss(10, 3.0)), (loss(10, 1.0), loss(10, 0.5)), (loss(10, 1.0), loss(10, 0.6))])
    assert found.difference > 0.1
    assert not found.is_rise(0.1)


def test_parts_of_a_row_are_one():
    found = compared([item("a", 5, 1.0), item("a", 15, 2.0, part=1)], [item("a", 5, 2.0), item("a", 15, 2.0, part=1)])
    assert found.total is not None
    assert (found.total.rows, found.total.difference) == (1, pytest.approx(5 / 20))


def test_rows_of_one_side_or_other_tokens_are_counted():
    first = [item("a", 5, 1.0), item("b", 5, 1.0), item("c", 5, 1.0), item("d", 0, 1.0, unscored="too long")]
    second = [item("a", 5, 1.5), item("b", 6, 1.0), item("e", 5, 1.0), item("f", 5, 1.0)]
    found = compared(first, second)
    assert (found.only_first, found.only_second, found.other_tokens) == (1, 2, 1)
    assert found.sets["set"].rows == 1
    assert found.groups["answer"].difference == pytest.approx(0.5)


def test_nothing_in_common_is_no_difference():
    assert compared([item("a", 5, 1.0)], [item("b", 5, 1.0)]).total is None
