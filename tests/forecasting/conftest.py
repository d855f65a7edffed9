"""The fixtures of the edges: a server with a client, and a daemon with a command line."""

import asyncio
import pickle
import tempfile

import pytest

import forking
from edges.cli.conftest import cli
from edges.http.conftest import api
from patience import PATIENCE
from postgres.server import server, url
from wakeful.app import simulating
from wakeful.app.simulation_job import SimulationJob

__all__ = ["api", "cli", "server", "url"]


@pytest.fixture(autouse=True)
def forked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulations of this process are forks: an interpreter of its own takes longer to start than most of them run."""
    if "interpreter" not in request.fixturenames:
        monkeypatch.setattr(simulating, "run_apart", run_forked)


@pytest.fixture
def interpreter() -> None:
    """For tests whose simulations are started as in production."""


async def run_forked(job: SimulationJob) -> bytes:
    """As `run_apart`, in a fork of a process that has imported everything."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as written:
        pickle.dump(job, given, pickle.HIGHEST_PROTOCOL)
        given.seek(0)
        process = forking.start("wakeful.simulation", stdin=given, stdout=written)
        _, errors = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
        assert process.returncode == 0, errors
        written.seek(0)
        return written.read()
