"""transformers trains what our line trains under our own templates, whose tags our line does not read."""

import pytest

from oracle_reasons import CONTENT, EDGE, tag_reason_of
from oracle_tags import find_tags
from turnmill.models import open_template, own_templates


@pytest.mark.parametrize("name", own_templates())
def test_labels_are_those_of_the_generation_tags(name):
    found = find_tags(name, open_template(name).template)
    assert found.compared >= 23
    assert found.equal >= 19
    assert {tag_reason_of(one) for _, one in found.differences} <= {CONTENT, EDGE}
