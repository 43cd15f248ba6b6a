from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from turnmill.files.arrays import SIGNED, UNSIGNED, ArrayWriter, array_length, open_array, wanted_of

NUMBERS = np.array([0, 1, 5, 5, 2**63, 2**64 - 1], dtype=np.uint64)


@pytest.mark.parametrize(("kind", "type_"), [(UNSIGNED, np.uint64), (SIGNED, np.int64)])
def test_numbers_come_back(tmp_path, kind, type_):
    with ArrayWriter(tmp_path / "a.bin", kind) as out:
        out.write(np.array([1, 2], dtype=type_))
        out.write(np.array([], dtype=type_))
        out.write(np.array([3], dtype=type_))
    assert open_array(tmp_path / "a.bin", kind).tolist() == [1, 2, 3]
    assert array_length(tmp_path / "a.bin") == 3


def test_no_numbers_are_a_file_too(tmp_path):
    with ArrayWriter(tmp_path / "a.bin", SIGNED):
        pass
    assert open_array(tmp_path / "a.bin", SIGNED).tolist() == []


@pytest.mark.parametrize("parts", [1, 2, 3, 64])
def test_ranges_hold_every_number_once(parts):
    edges = [2**64 * part // parts for part in range(parts + 1)]
    found = [NUMBERS[wanted_of(NUMBERS, first, end)] for first, end in pairwise(edges)]
    assert np.concatenate(found).tolist() == NUMBERS.tolist()
