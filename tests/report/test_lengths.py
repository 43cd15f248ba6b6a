import pytest

from turnmill.report.lengths import histogram, length_facts


@pytest.mark.parametrize(
    ("lengths", "suggested", "longer"),
    [([10] * 99 + [5000], 256, 1), ([256] * 10, 256, 0), ([257] * 10, 512, 0), ([1], 256, 0)],
)
def test_the_suggested_limit_keeps_99_percent_whole(lengths, suggested, longer):
    facts = length_facts(lengths)
    assert (facts["suggested"], facts["longer"]) == (suggested, longer)


def test_every_example_is_in_one_bin():
    facts = length_facts(range(1, 1001))
    assert sum(count for _, count in facts["bins"]) == 1000
    assert facts["bins"][-1][0] >= 1000


def test_without_examples_there_is_nothing_to_draw():
    assert length_facts([]) == {}
    assert histogram([], 10, "tokens") == ""


def test_the_histogram_says_its_figures_and_the_limit_in_text():
    drawn = histogram([[10, 3], [20, 1]], 16, "tokens")
    assert "1 to 10 tokens: 3 examples" in drawn
    assert "limit 16" in drawn
