from __future__ import annotations

from collections import Counter

import pytest

from turnmill.contract.definitions import defined_tools, enveloped
from turnmill.conversation import Conversation, Message
from turnmill.rendering.form import Form, write

SCHEMA = {"type": "object", "properties": {}}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA}
ANTHROPIC = {"name": "f", "description": "d", "input_schema": SCHEMA}


@pytest.mark.parametrize("definition", [FUNCTION, ANTHROPIC, {"type": "function", "function": FUNCTION}])
def test_every_form_of_a_definition_names_a_tool(definition):
    assert defined_tools((definition,)) == {"f"}


@pytest.mark.parametrize("definition", [FUNCTION, ANTHROPIC])
def test_an_envelope_holds_the_function_in_the_form_that_templates_know(definition):
    assert list(enveloped(definition)["function"].items()) == list(FUNCTION.items())


@pytest.mark.parametrize(
    ("definition", "bare", "written"),
    [
        (FUNCTION, True, FUNCTION),
        (FUNCTION, False, enveloped(FUNCTION)),
        (ANTHROPIC, True, enveloped(FUNCTION)),
        (ANTHROPIC, False, enveloped(FUNCTION)),
    ],
)
def test_a_template_sees_anthropics_definitions_in_its_own_form(definition, bare, written):
    row = Conversation((Message("user", "q"), Message("assistant", "a", "final")), (definition,))
    assert write(row, Form(bare_tools=bare), None, Counter()).tools == [written]
