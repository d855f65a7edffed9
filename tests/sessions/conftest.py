"""One daemon and one agent server for all tests of this folder that do not end their daemon."""

import itertools
from collections.abc import Iterator

import pytest

from agents.server import AgentServer
from sessions.kit import Daemon, Desk, Town, daemon, desk_of, make_home

_numbers = itertools.count()


@pytest.fixture(scope="session")
def town() -> Iterator[Town]:
    town = Town()
    yield town
    town.close()


@pytest.fixture(scope="session")
def server(town: Town) -> AgentServer:
    """An agent server that does as it is told."""
    return town.server()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory, server: AgentServer) -> Iterator[Daemon]:
    """A daemon whose agents are at that server."""
    with daemon(make_home(tmp_path_factory.mktemp("sessions") / "home", server.url), environ=server.environ) as one:
        yield one


@pytest.fixture
def desk(running: Daemon, server: AgentServer, town: Town) -> Iterator[Desk]:
    """An agent and a slug of its own for each test."""
    number = next(_numbers)
    with desk_of(running, server, town, f"a{number}", f"job-{number}") as desk:
        yield desk
