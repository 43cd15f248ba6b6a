from pathlib import Path

import pytest

from tests_support import TRANSFORMERS_TOKENS, stops_of_template
from turnmill.options import Render
from turnmill.rendering.renderer import Renderer

OWN_TEMPLATES = Path(__file__).parents[2] / "src/turnmill/rendering/templates"


@pytest.fixture(scope="session")
def chatml() -> Renderer:
    """Our own template."""
    return Renderer((OWN_TEMPLATES / "chatml.jinja").read_text(), {}, ["<|im_end|>"])


@pytest.fixture(scope="session")
def renderer_of(trl_templates):
    """Name of a TRL template → its renderer, with the given `render` options."""
    made = {}

    def of(name: str, **options) -> Renderer:
        key = (name, *sorted(options.items()))
        if key not in made:
            source = (trl_templates / f"{name}.jinja").read_text()
            made[key] = Renderer(source, TRANSFORMERS_TOKENS, stops_of_template(source), None, Render(**options), name)
        return made[key]

    return of
