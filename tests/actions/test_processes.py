"""Orphans: what a dead incarnation left behind, with real processes and real deaths."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from wakeful.integrations.actions import process_table
from wakeful.integrations.actions.process_table import boot_id, started_of, this_host
from wakeful.integrations.actions.processes import end_orphan, identify
from wakeful.ports.action import Process

Eventually = Callable[[Callable[[], object]], Awaitable[None]]

# A node that performs one command, writes down the record it made of it, and can be told to die on making it.
NODE = """
import asyncio, json, os, pathlib, signal, sys
from wakeful.integrations.actions.command import CommandAction
from wakeful.core.schedule.actions import Command
from wakeful.ports.action import Fire

class Ladder:
    async def climb(self, rung, *, process=None):
        if rung != "started":
            return
        pathlib.Path("record.part").write_text(json.dumps(process))
        os.rename("record.part", "record")
        if sys.argv[1] == "die":
            os.kill(os.getpid(), signal.SIGKILL)

fire = Fire(1, 1, "job", 0, 0, "schedule", 1, "key")
asyncio.run(CommandAction().perform(Command(tuple(sys.argv[2:]), env=json.loads(os.environ["EXTRA"])), fire, Ladder()))
"""


class Nodes:
    """Starts nodes in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, mode: str, *argv: str, env: dict[str, str] | None = None) -> "subprocess.Popen[bytes]":
        variables = {**os.environ, "EXTRA": json.dumps(env or {})}
        node = subprocess.Popen([sys.executable, "-c", NODE, mode, *argv], cwd=self.folder, env=variables)
        self.started.append(node)
        return node

    def record(self) -> Process:
        return Process(*json.loads((self.folder / "record").read_text()))


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path)
    yield nodes
    for node in nodes.started:
        node.kill()
        node.wait()


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that has nothing to do with us, leading its own session."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("env", [{}, {"not-a.shell%name": "x"}], ids=["shell gate", "python gate"])
async def test_a_node_that_dies_before_the_record_has_run_nothing(
    nodes: Nodes, eventually: Eventually, is_alive: Callable[[int], bool], env: dict[str, str]
) -> None:
    """Between starting a program and recording it, a crash of the node leaves nothing that runs, or ever ran."""
    node = nodes.start("die", "touch", "ran", env=env)
    assert await asyncio.to_thread(node.wait) == -signal.SIGKILL
    gate = nodes.record().pid
    await eventually(lambda: not is_alive(gate))
    assert not (nodes.folder / "ran").exists()


async def test_the_same_node_runs_it_if_it_lives(nodes: Nodes) -> None:
    """What the test above sees is the death, not a broken helper."""
    assert await asyncio.to_thread(nodes.start("live", "touch", "ran").wait) == 0
    assert (nodes.folder / "ran").exists()


@pytest.mark.parametrize("source", ["the system's own", "ps"])
async def test_an_orphan_is_ended(
    nodes: Nodes,
    eventually: Eventually,
    is_alive: Callable[[int], bool],
    monkeypatch: pytest.MonkeyPatch,
    source: str,
) -> None:
    """The program of a killed node, and its child that ignores SIGTERM, are gone after the rescue."""
    if source == "ps" and not Path("/bin/ps").exists():
        pytest.skip("needs ps")
    node = nodes.start("live", "sh", "-c", "trap '' TERM; sleep 60 & echo $! >child; wait; sleep 60")
    await eventually(lambda: (nodes.folder / "child").exists() and (nodes.folder / "child").read_text())
    node.kill()
    await asyncio.to_thread(node.wait)
    process, child = nodes.record(), int((nodes.folder / "child").read_text())
    assert is_alive(process.pid) and is_alive(child)
    if source == "ps":  # what other systems are asked; they describe a start in their own words
        monkeypatch.setattr(process_table, "_IS_LINUX", False)
        process = identify(process.pid)
    assert await end_orphan(process, grace=200) == "gone"
    assert not is_alive(process.pid) and not is_alive(child)
    assert await end_orphan(process) == "gone", "and once gone it stays proven"


async def test_an_orphans_children_are_ended_without_it(
    nodes: Nodes, eventually: Eventually, is_alive: Callable[[int], bool]
) -> None:
    """When the leader is gone as well, what it left in its session is still found and ended."""
    node = nodes.start("live", "sh", "-c", "sleep 60 & echo $! >child; wait")
    await eventually(lambda: (nodes.folder / "child").exists() and (nodes.folder / "child").read_text())
    process, child = nodes.record(), int((nodes.folder / "child").read_text())
    node.kill()
    await asyncio.to_thread(node.wait)
    os.kill(process.pid, signal.SIGKILL)
    await eventually(lambda: not is_alive(process.pid))
    assert is_alive(child)
    assert await end_orphan(process, grace=200) == "gone"
    assert not is_alive(child)


async def test_a_recycled_pid_is_not_killed(
    stranger: "subprocess.Popen[bytes]", is_alive: Callable[[int], bool]
) -> None:
    """Another process under the number proves that ours is gone, and is not touched."""
    recorded = Process(this_host(), stranger.pid, f"{boot_id()}/1")
    assert await end_orphan(recorded, grace=100) == "gone"
    assert is_alive(stranger.pid)


async def test_a_strangers_session_is_not_killed(eventually: Eventually, is_alive: Callable[[int], bool]) -> None:
    """A session under the number whose leader is gone and that does not bear our mark may be anyone's: not proven."""
    daemonizing = subprocess.Popen(
        ["sh", "-c", "sleep 60 >/dev/null & echo $!"], start_new_session=True, stdout=subprocess.PIPE
    )
    out, _ = daemonizing.communicate()
    member = int(out)
    try:
        recorded = Process(this_host(), daemonizing.pid, f"{boot_id()}/1")
        assert await end_orphan(recorded, grace=100) == "remains"
        assert is_alive(member)
    finally:
        os.kill(member, signal.SIGKILL)


async def test_another_host_proves_nothing(
    stranger: "subprocess.Popen[bytes]", is_alive: Callable[[int], bool]
) -> None:
    """A process of another machine is not ours to judge."""
    assert await end_orphan(identify(stranger.pid)._replace(host="elsewhere")) == "elsewhere"
    assert is_alive(stranger.pid)


async def test_another_boot_proves_the_end(
    stranger: "subprocess.Popen[bytes]", is_alive: Callable[[int], bool]
) -> None:
    """Nothing outlives a boot of the machine."""
    started = f"another-boot/{identify(stranger.pid).started.partition('/')[2]}"
    assert await end_orphan(identify(stranger.pid)._replace(started=started)) == "gone"
    assert is_alive(stranger.pid)


@pytest.mark.parametrize("record", [Process(this_host(), 1, f"{boot_id()}/1"), Process(this_host(), 99, "")])
async def test_a_record_that_makes_no_sense(record: Process) -> None:
    """A broken record proves nothing and harms nobody."""
    assert await end_orphan(record) == "remains"


def test_identity_is_stable_and_particular(stranger: "subprocess.Popen[bytes]") -> None:
    """The same process is always described alike, another one differently, a missing one not at all."""
    assert identify(stranger.pid) == identify(stranger.pid)
    assert identify(stranger.pid).started != identify(os.getpid()).started
    stranger.kill()
    stranger.wait()
    assert started_of(stranger.pid) is None
