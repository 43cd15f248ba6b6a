import pytest
from tokenizers import Tokenizer

from tokenizers_of_tests import byte_level


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return byte_level()


@pytest.fixture(scope="session")
def nfc_tokenizer() -> Tokenizer:
    return byte_level(nfc=True)
