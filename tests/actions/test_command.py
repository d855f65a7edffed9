"""The command action, with real programs."""

import asyncio
import json
import os
import signal
import sys
import threading
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE
from wakeful.core.run.results import Done, Failed, Result
from wakeful.core.schedule.actions import Command
from wakeful.integrations.actions import sessions
from wakeful.integrations.actions.command import CommandAction
from wakeful.ports.action import FencedOff, Fire, StillRunning

Eventually = Callable[[Callable[[], object]], Awaitable[None]]
PRINT_ENV = "import json, os; print(json.dumps(dict(os.environ)))"
IGNORE_TERM = "trap '' TERM; "


@pytest.fixture
def action() -> CommandAction:
    return CommandAction(grace=300)


async def test_output_and_rungs(action: CommandAction, fire: Fire, ladder: Any) -> None:
    """A program that exits with 0 is done, with both its outputs apart, and was on record before it ran."""
    result = await action.perform(Command(("sh", "-c", "echo out; echo err >&2")), fire, ladder)
    assert result == Done(output="out\n", stderr="err\n")
    assert ladder.rungs == ["sent", "started"]
    assert ladder.process is not None and ladder.process.pid > 1


async def test_the_recorded_pid_is_the_programs(action: CommandAction, fire: Fire, ladder: Any) -> None:
    """The gate turns into the program under the same pid, which leads its session."""
    script = "import os; print(os.getpid(), os.getsid(0))"
    result = await action.perform(Command((sys.executable, "-c", script)), fire, ladder)
    assert isinstance(result, Done) and ladder.process is not None
    assert result.output == f"{ladder.process.pid} {ladder.process.pid}\n"


@pytest.mark.parametrize("extra", [{}, {"not-a.shell%name": "kept"}], ids=["shell gate", "python gate"])
async def test_environment(action: CommandAction, fire: Fire, ladder: Any, extra: dict[str, str]) -> None:
    """The program sees our environment, the definition's over it, and the facts of the attempt over both."""
    spec = Command((sys.executable, "-c", PRINT_ENV), env={"GREETING": "hello", "WAKEFUL_SLUG": "forged", **extra})
    result = await action.perform(spec, fire, ladder)
    assert isinstance(result, Done) and result.output is not None
    seen = json.loads(result.output)
    expected = {
        "PATH": os.environ["PATH"],
        "GREETING": "hello",
        "WAKEFUL_SLUG": "report",
        "WAKEFUL_RUN_ID": "42",
        "WAKEFUL_PLANNED_AT": "2026-01-30T09:00:00.000Z",
        "WAKEFUL_ATTEMPT": "2",
        "WAKEFUL_IDEMPOTENCY_KEY": "report-key-1",
        "WAKEFUL_RECEIPT_URL": "http://127.0.0.1:1/receipt",
        **extra,
    }
    assert {name: seen.get(name) for name in expected} == expected


async def test_a_receipt_url_is_not_inherited(
    action: CommandAction, fire: Fire, ladder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run without a receipt does not see the one of the run that started the daemon."""
    monkeypatch.setenv("WAKEFUL_RECEIPT_URL", "http://127.0.0.1:1/other")
    spec = Command(("sh", "-c", 'echo "[$WAKEFUL_RECEIPT_URL]"'))
    assert await action.perform(spec, fire._replace(receipt_url=None), ladder) == Done(output="[]\n")


@pytest.mark.parametrize("env", [{}, {"not-a.shell%name": "x"}], ids=["shell gate", "python gate"])
async def test_stdin(action: CommandAction, fire: Fire, ladder: Any, env: dict[str, str]) -> None:
    """The program reads exactly the text it was given, however long, and nothing of the gate."""
    text = "first line\n\n" + "ä" * 200_000
    spec = Command((sys.executable, "-c", "import sys; print(len(sys.stdin.buffer.read()))"), stdin=text, env=env)
    assert await action.perform(spec, fire, ladder) == Done(output=f"{len(text.encode())}\n")


@pytest.mark.parametrize("env", [{}, {"not-a.shell%name": "x"}], ids=["shell gate", "python gate"])
async def test_without_stdin(action: CommandAction, fire: Fire, ladder: Any, env: dict[str, str]) -> None:
    """Without a text the program reads from nowhere, which is not a pipe: some programs look."""
    script = "import os, stat; print(stat.S_ISCHR(os.fstat(0).st_mode), os.read(0, 1))"
    spec = Command((sys.executable, "-c", script), env=env)
    assert await action.perform(spec, fire, ladder) == Done(output="True b''\n")


async def test_stdin_nobody_reads(action: CommandAction, fire: Fire, ladder: Any) -> None:
    """A program that ignores a long stdin is no failure."""
    assert await action.perform(Command(("true",), stdin="x" * 500_000), fire, ladder) == Done(output="")


async def test_arguments_are_never_shell_text(action: CommandAction, fire: Fire, ladder: Any, tmp_path: Path) -> None:
    """Arguments arrive letter by letter, whatever a shell would make of them."""
    nasty = ["$(touch pwned)", "; touch pwned", "a b", "", "'\"\\", "-n", "*", "\n", "ü\udce9"]
    script = "import sys, json; print(json.dumps(sys.argv[1:]))"
    result = await action.perform(Command((sys.executable, "-c", script, *nasty), cwd=str(tmp_path)), fire, ladder)
    assert isinstance(result, Done) and result.output is not None
    assert json.loads(result.output) == nasty
    assert list(tmp_path.iterdir()) == []


async def test_folder_and_relative_program(action: CommandAction, fire: Fire, ladder: Any, tmp_path: Path) -> None:
    """A relative program is looked for where it is to run."""
    program = tmp_path / "job.sh"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    spec = Command(("./job.sh",), cwd=str(tmp_path))
    assert action.check(spec) is None
    assert await action.perform(spec, fire, ladder) == Done(output=f"{tmp_path.resolve()}\n")


async def test_a_program_named_like_an_option(action: CommandAction, fire: Fire, ladder: Any, tmp_path: Path) -> None:
    """The name of a program is not read as an option of the gate."""
    (tmp_path / "-c").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "-c").chmod(0o755)
    spec = Command(("-c", "echo tricked"), env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert await action.perform(spec, fire, ladder) == Done(output="ran\n")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (Command(()), "argv is empty"),
        (Command(("no-such-program-here",)), "not found on the PATH"),
        (Command(("ls",), env={"PATH": "/nowhere"}), "not found on the PATH (/nowhere)"),
        (Command(("echo hello",)), "a list of words"),
        (Command(("/etc/passwd",)), "chmod +x"),
        (Command(("/etc",)), "not a file"),
        (Command(("./missing",)), "does not exist"),
        (Command(("true",), cwd="/nowhere"), "not a folder"),
        (Command(("true", "a\0b")), "NUL"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_cannot_be_started(action: CommandAction, fire: Fire, ladder: Any, spec: Command, says: str) -> None:
    """A command that cannot start fails for good with the cause, and nothing is sent; the check says the same."""
    result = await action.perform(spec, fire, ladder)
    assert isinstance(result, Failed) and result.permanent and says in result.error
    assert action.check(spec) == result.error
    assert ladder.rungs == []


def test_a_program_that_comes_goes_and_moves(action: CommandAction, tmp_path: Path) -> None:
    """It is looked for again when it is not where it was found before, and when it was not found."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    spec = Command(("job",), env={"PATH": f"{first}:{second}"})
    assert "not found on the PATH" in (action.check(spec) or "")
    (first / "job").write_text("#!/bin/sh\n")
    (first / "job").chmod(0o755)
    assert action.check(spec) is None
    (first / "job").rename(second / "job")
    assert action.check(spec) is None
    (second / "job").unlink()
    assert "not found on the PATH" in (action.check(spec) or "")


async def test_too_many_arguments(action: CommandAction, fire: Fire, ladder: Any) -> None:
    """What the system refuses to start fails for good with the cure."""
    result = await action.perform(Command(("true", "x" * 5_000_000)), fire, ladder)
    assert isinstance(result, Failed) and result.permanent and "stdin" in result.error


async def test_exit_code_and_last_line(action: CommandAction, fire: Fire, ladder: Any) -> None:
    """A failure names the exit code and the last line said, and keeps the whole output."""
    result = await action.perform(Command(("sh", "-c", "echo start; echo 'no such table' >&2; exit 3")), fire, ladder)
    assert result == Failed("exited with 3: no such table", output="start\n", stderr="no such table\n")


async def test_killed_by_a_signal(action: CommandAction, fire: Fire, ladder: Any) -> None:
    """A program that something else killed says by which signal."""
    result = await action.perform(Command(("sh", "-c", "kill -KILL $$")), fire, ladder)
    assert isinstance(result, Failed) and result.error == "killed by SIGKILL"


async def test_output_that_no_store_takes(action: CommandAction, fire: Fire, ladder: Any) -> None:
    """NUL and broken UTF-8 are replaced."""
    result = await action.perform(Command(("printf", r"a\000b\377c")), fire, ladder)
    assert result == Done(output="a\ufffdb\ufffdc")


async def test_gigantic_output_in_bounded_memory(action: CommandAction, fire: Fire, ladder: Any) -> None:
    """A program that prints 200 MB ends, and only the head and the tail of it are ever held."""
    script = "echo begin; yes | head -c 209715200; echo end"
    tracemalloc.start()
    try:
        result = await action.perform(Command(("sh", "-c", script), output_max=1000), fire, ladder)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(result, Done) and result.output is not None
    assert result.output.startswith("begin\ny\n") and result.output.endswith("y\nend\n")
    assert f"[… {209715200 + 10 - 1000} bytes left out …]" in result.output
    assert peak < 8_000_000


async def test_cancel_ends_grandchildren_that_refuse(
    action: CommandAction,
    fire: Fire,
    ladder: Any,
    tmp_path: Path,
    eventually: Eventually,
    is_alive: Callable[[int], bool],
) -> None:
    """Cancelled, the whole session is gone: what ignores SIGTERM, and what moved to a group of its own, too."""
    regroup = "import os, time; os.setpgid(0, 0); open('group', 'w').write(str(os.getpid())); time.sleep(60)"
    script = f'{IGNORE_TERM} (echo $$ >self; sleep 60 & echo $! >child; wait) & {sys.executable} -c "{regroup}" & wait'
    task = asyncio.create_task(action.perform(Command(("sh", "-c", script), cwd=str(tmp_path)), fire, ladder))
    names = ("self", "child", "group")
    await eventually(lambda: all((tmp_path / name).exists() and (tmp_path / name).read_text() for name in names))
    pids = [int((tmp_path / name).read_text()) for name in names]
    assert all(map(is_alive, pids))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(map(is_alive, pids))


async def test_cancel_lets_a_program_clean_up(
    action: CommandAction, fire: Fire, ladder: Any, tmp_path: Path, eventually: Eventually
) -> None:
    """SIGTERM comes first, and a program that heeds it has its time."""
    script = "trap 'echo bye >cleaned; exit 0' TERM; echo >ready; while :; do sleep 0.05; done"
    task = asyncio.create_task(action.perform(Command(("sh", "-c", script), cwd=str(tmp_path)), fire, ladder))
    await eventually((tmp_path / "ready").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tmp_path / "cleaned").read_text() == "bye\n"


async def test_cancelled_again_while_ending(
    action: CommandAction,
    fire: Fire,
    ladder: Any,
    tmp_path: Path,
    eventually: Eventually,
    is_alive: Callable[[int], bool],
) -> None:
    """A second cancellation does not cut the ending short: it is still proven."""
    script = f"{IGNORE_TERM} echo >ready; sleep 60 & wait; sleep 60"
    task = asyncio.create_task(action.perform(Command(("sh", "-c", script), cwd=str(tmp_path)), fire, ladder))
    await eventually((tmp_path / "ready").exists)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ladder.process is not None and not is_alive(ladder.process.pid)


async def test_what_cannot_be_ended_is_still_running(
    action: CommandAction,
    fire: Fire,
    ladder: Any,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the system does not end it, nobody says it ended; when it does end, that is noticed."""
    task = asyncio.create_task(action.perform(Command(("sleep", "60")), fire, ladder))
    await eventually(lambda: "started" in ladder.rungs)
    with monkeypatch.context() as system:  # as if it hung inside the kernel, where no signal reaches it
        system.setattr(os, "killpg", lambda group, number: None)
        system.setattr(sessions, "KILL_PATIENCE", 50)
        task.cancel()
        with pytest.raises(StillRunning) as still:
            await task
    assert not still.value.ended.done()
    os.kill(ladder.process.pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        await still.value.ended
    await action.close()


async def test_a_daemon_in_its_own_session_is_left_alone(
    action: CommandAction,
    fire: Fire,
    ladder: Any,
    tmp_path: Path,
    eventually: Eventually,
    is_alive: Callable[[int], bool],
) -> None:
    """A program that makes its own session outlives the run, and holding the output open does not hold up the run."""
    daemon = "import os, time; os.setsid(); open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    script = f'{sys.executable} -c "{daemon}" & while [ ! -s pid ]; do sleep 0.02; done; echo done'
    result = await action.perform(Command(("sh", "-c", script), cwd=str(tmp_path)), fire, ladder)
    assert result == Done(output="done\n")
    pid = int((tmp_path / "pid").read_text())
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)


async def test_what_a_program_leaves_in_its_group_is_ended(
    action: CommandAction, fire: Fire, ladder: Any, tmp_path: Path, is_alive: Callable[[int], bool]
) -> None:
    """The run is over with its leader: what is left in the group is ended, even if it refuses."""
    script = f"({IGNORE_TERM} sleep 60; sleep 60) >/dev/null 2>&1 & echo $! >pid; echo done"
    result = await action.perform(Command(("sh", "-c", script), cwd=str(tmp_path)), fire, ladder)
    assert result == Done(output="done\n")
    assert not is_alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("rung", ["sent", "started"])
async def test_fenced_off(action: CommandAction, fire: Fire, ladder: Any, tmp_path: Path, rung: str) -> None:
    """A run that was taken from us does not start its program."""
    ladder.refuses[rung] = FencedOff("taken")
    with pytest.raises(FencedOff):
        await action.perform(Command(("touch", "ran"), cwd=str(tmp_path)), fire, ladder)
    assert list(tmp_path.iterdir()) == []


async def test_cancelled_while_being_recorded(action: CommandAction, fire: Fire, tmp_path: Path) -> None:
    """Cancelled before the record is durable, the program never runs."""
    recording = asyncio.Event()

    class SlowLadder:
        async def climb(self, rung: str, *, process: object = None) -> None:
            if rung == "started":
                recording.set()
                await asyncio.Event().wait()

    task = asyncio.create_task(action.perform(Command(("touch", "ran"), cwd=str(tmp_path)), fire, SlowLadder()))
    await recording.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(tmp_path.iterdir()) == []


async def test_a_lost_exit_status_is_not_success(action: CommandAction, fire: Fire, ladder: Any) -> None:
    """In a program that ignores SIGCHLD the system keeps no exit status; that is said, and is not green."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        result = await action.perform(Command(("true",)), fire, ladder)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert isinstance(result, Failed) and "SIGCHLD" in result.error


def test_on_an_event_loop_in_a_thread(fire: Fire, ladder: Any) -> None:
    """Commands run on a loop that is not in the main thread."""
    results: list[Result] = []

    def run() -> None:
        results.append(asyncio.run(CommandAction().perform(Command(("echo", "hi")), fire, ladder)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE)
    assert results == [Done(output="hi\n")]


async def test_many_at_once(action: CommandAction, fire: Fire, ladder: Any, tmp_path: Path) -> None:
    """Programs run side by side: each ends only once all have begun."""
    wait_for_all = f"touch {tmp_path}/$0; while [ $(ls {tmp_path} | wc -l) -lt 10 ]; do sleep 0.05; done; echo $0"
    results = await asyncio.gather(
        *(action.perform(Command(("sh", "-c", wait_for_all, str(n))), fire, ladder) for n in range(10))
    )
    assert results == [Done(output=f"{n}\n") for n in range(10)]
