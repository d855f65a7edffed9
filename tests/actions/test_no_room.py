"""Actions on a system without descriptors, memory or processes: nothing begins, and the action says so."""

import asyncio
import errno
import os
import resource
import threading
from typing import Any

import aiohttp
import pytest

from climbing import RecordingLadder as Ladder
from wakeful.core.run.results import Done, Failed
from wakeful.core.schedule.actions import Call, Command, Http
from wakeful.engine.clock import SystemClock
from wakeful.integrations.actions import child, process_table, sessions
from wakeful.integrations.actions.call import CallAction, CallRegistry
from wakeful.integrations.actions.command import CommandAction
from wakeful.integrations.actions.http import HttpAction
from wakeful.integrations.net import exchange
from wakeful.integrations.system.descriptors import KEPT
from wakeful.ports.action import CannotBegin, Fire

LACKS = [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT]


def raising(number: int) -> Any:
    def refuse(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize("number", LACKS)
async def test_a_program_that_cannot_be_started(
    number: int, fire: Fire, ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a separate process; any other error is final, as before."""
    monkeypatch.setattr(child.subprocess, "Popen", raising(number))
    for action, spec in (
        (CommandAction(), Command(("true",))),
        (CallAction(CallRegistry()), Call("math:sqrt", {}, isolate=True)),
    ):
        with pytest.raises(CannotBegin, match=os.strerror(number)):
            await action.perform(spec, fire, ladder)
    monkeypatch.setattr(child.subprocess, "Popen", raising(errno.ENOEXEC))
    assert isinstance(await CommandAction().perform(Command(("true",)), fire, ladder), Failed)


@pytest.mark.parametrize("place", ["identify", "taken_over"])
async def test_a_gate_that_was_never_opened_is_ended(
    place: str, fire: Fire, ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The descriptors ran out after it was started: the program behind it has not begun."""
    monkeypatch.setattr(child, place, raising(errno.EMFILE))
    with pytest.raises(CannotBegin):
        await CommandAction().perform(Command(("touch", "begun")), fire, ladder)


async def test_descriptors_are_kept_for_others(fire: Fire, ladder: Ladder) -> None:
    """With the last ones the store and the socket in the home go on, although a program needs fewer."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + KEPT, before[1]))
    try:
        with pytest.raises(CannotBegin, match="Too many open files"):
            await CommandAction().perform(Command(("true",)), fire, ladder)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert isinstance(await CommandAction().perform(Command(("true",)), fire, ladder), Done)


async def test_a_thread_that_cannot_be_started(fire: Fire, ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a call, and the one that starts a program."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(CannotBegin, match="can't start new thread"):
        await CallAction(CallRegistry()).perform(Call("math:sqrt", {}), fire, ladder)
    with pytest.raises(CannotBegin, match="can't start new thread"):
        await CommandAction().perform(Command(("true",)), fire, ladder)


async def test_a_connection_that_cannot_be_opened(fire: Fire, ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request was not sent. A connection that is refused by the target is a failure, as before."""
    action = HttpAction(SystemClock())
    key: Any = type("Key", (), {"ssl": False, "host": "127.0.0.1", "port": 9})()

    async def out_of_descriptors(*_: object) -> Any:
        raise aiohttp.ClientConnectorError(key, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "_exchange", out_of_descriptors)
        with pytest.raises(CannotBegin, match="Too many open files"):
            await action.perform(Http("POST", "http://127.0.0.1:9/"), fire, ladder)
    refused = await action.perform(Http("POST", "http://127.0.0.1:9/"), fire, ladder)
    assert isinstance(refused, Failed) and "connection refused" in refused.error
    await action.close()


async def test_a_command_that_ended_is_done_without_descriptors(
    fire: Fire, ladder: Ladder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was recorded as failed, because its leftovers could not be looked for."""
    asked = asyncio.Event()

    def members(leader: int) -> list[process_table.Member]:
        if not asked.is_set():
            asked.set()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/proc")
        return process_table.session_members(leader)

    monkeypatch.setattr(sessions, "session_members", members)
    monkeypatch.setattr(child, "group_exists", lambda _: True)
    assert isinstance(await CommandAction().perform(Command(("true",)), fire, ladder), Done)
    assert asked.is_set()
