from __future__ import annotations

from pathlib import Path

import pytest

from training_runs import prepared, tiny_chat_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """A random llama of a few thousand weights; read only."""
    return tiny_chat_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def out(tiny, tmp_path_factory) -> Path:
    """Chats with fractional weights, prepared for it; read only."""
    return prepared(tmp_path_factory.mktemp("data"), tiny)
