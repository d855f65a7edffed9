"""Three nodes in three processes drain hundreds of due instants, while one is killed and one is frozen."""

import asyncio
import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import forking
from patience import PATIENCE
from postgres.cluster import make_node, until
from postgres.node import LIMITS
from postgres.server import Server, schema_of
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import DAY
from wakeful.core.time.timing import Every, Once

LANES = 40
IN_LANES = 5  # one in so many has a lane


class Line(NamedTuple):
    """What a target wrote."""

    word: str
    slug: str
    attempt: str
    node: str
    at: str  # by the clock of the machine, in nanoseconds, just before the line was written


def _lines(path: Path) -> list[Line]:
    return [Line(*line.split()) for line in path.read_text().splitlines()]


def _definition(n: int, at: int) -> Definition:
    """One in so many has a lane; of the others, half are daily and so take the plain path."""
    lane = f"lane{n // IN_LANES % LANES}" if n % IN_LANES == 0 else None
    timing = Every(DAY, at) if n % 2 else Once(at)
    return Definition(f"s{n}" if lane is None else f"{lane}-{n}", timing, Call("target", {}), lane=lane)


@contextmanager
def _nodes(url: str, path: Path, names: str) -> Iterator[dict[str, forking.Process]]:
    program = Path(__file__).with_name("node.py")
    errors = path.with_name("errors")
    with errors.open("wb") as heard:
        started = {name: forking.start(program, url, name, path, stdout=heard, stderr=heard) for name in names}
        try:
            yield started
        finally:
            for process in started.values():
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
            print(errors.read_text()[-5_000:])


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("instants", [300, pytest.param(10_000, marks=pytest.mark.torture)])
async def test_a_killed_and_a_frozen_node_cost_one_more_attempt_and_nothing_else(
    url: str, server: Server, tmp_path: Path, instants: int
) -> None:
    """None of the instants is lost, none is tried a third time, no lane is held twice, nothing deadlocks."""
    since = server.log_size()
    path = tmp_path / "effects"
    path.touch()
    writer = await make_node(url, "writer")
    double_held: list[Any] = []
    watching = asyncio.create_task(_watch_lanes(url, server, double_held))

    async def wrote(word: str, n: int, by: str = "") -> None:
        """Wait until there are so many of these lines, and one of them by this node."""

        def is_written() -> bool:
            nodes = [line.node for line in _lines(path) if line.word == word]
            return len(nodes) >= n and (not by or by in nodes)

        await until(lambda: _is_true(is_written), within=2 * PATIENCE)

    with _nodes(url, path, "abc") as processes:
        await wrote("up", 3)
        at = writer.now + 5_000 + 2 * instants  # still ahead when a slow machine has written all of them
        for start in range(0, instants, 1_000):
            await writer.put([_definition(n, at) for n in range(start, min(start + 1_000, instants))])
        await wrote("end", instants // 5, by="a")
        processes["a"].kill()
        await wrote("end", 2 * instants // 5, by="b")
        frozen_at = time.monotonic_ns()
        os.kill(processes["b"].pid, signal.SIGSTOP)
        await asyncio.sleep((LIMITS.lease + 2 * LIMITS.renew_every) / 1_000)
        os.kill(processes["b"].pid, signal.SIGCONT)
        await _all_done(url, server, instants)
        for name in "bc":
            processes[name].terminate()
        assert [processes[name].wait(PATIENCE) for name in "bc"] == [0, 0]
    watching.cancel()
    await asyncio.wait([watching])
    await writer.store.close()

    lines = _lines(path)
    _check_ledger(url, server, instants)
    _check_effects(lines, frozen_at, instants)
    assert double_held == []
    assert "deadlock" not in server.logged(since)
    assert {line.node for line in lines if line.word == "end"} == {"a", "b", "c"}


def _check_ledger(url: str, server: Server, instants: int) -> None:
    """One row for each instant, closed; one lost twice is `unknown`, and no other is anything but succeeded."""
    rows = _ask(url, server, "SELECT schedule_id, outcome, attempt, crashes FROM runs")
    odd = _ask(
        url, server, "SELECT * FROM runs WHERE outcome <> 'succeeded' AND (outcome <> 'unknown' OR attempt <> 2)"
    )
    assert len(rows) == len({schedule_id for schedule_id, *_ in rows}) == instants
    assert max(attempt for *_, attempt, _ in rows) <= 2
    assert odd == []
    print(Counter((outcome, attempt) for _, outcome, attempt, _ in rows))
    assert _ask(url, server, "SELECT * FROM lanes WHERE holder IS NOT NULL") == []
    assert _ask(url, server, "SELECT * FROM alarms WHERE kind = 'run'") == []


def _check_effects(lines: list[Line], frozen_at: int, instants: int) -> None:
    """Every instant took effect, at most twice; in a lane one began only after the one before had ended, except after
    a node that was killed or frozen: what it had begun, it had lost. What it had only claimed it must not begin when it
    goes on; a line it was just about to write when it was frozen is written then, and is as old as it says."""
    begun = Counter(line.slug for line in lines if line.word == "begin")
    assert len(begun) == instants
    assert max(begun.values()) <= 2
    inside: dict[str, set[Line]] = defaultdict(set)
    for line in lines:
        lane, _, rest = line.slug.partition("-")
        if not rest:
            continue
        if line.word == "begin":
            is_from_before = line.node == "b" and int(line.at) <= frozen_at
            assert is_from_before or not [other for other in inside[lane] if other.node == "c"], (
                f"{line} while {inside[lane]}"
            )
            inside[lane].add(line)
        else:
            inside[lane] -= {one for one in inside[lane] if _who(one) == _who(line)}


async def _watch_lanes(url: str, server: Server, found: list[Any]) -> None:
    """Look again and again whether the ledger has a lane with two that run."""
    query = "SELECT lane, count(*) FROM runs WHERE outcome = 'running' AND lane IS NOT NULL GROUP BY lane"
    with _connected(url, server) as connection:
        while True:
            found += await asyncio.to_thread(_fetch, connection, f"{query} HAVING count(*) > 1")
            await asyncio.sleep(0.05)


async def _all_done(url: str, server: Server, instants: int) -> None:
    """Wait until every run is closed, for as long as further ones close."""
    done = -1
    query = "SELECT count(*) FROM runs WHERE outcome NOT IN ('running', 'waiting')"
    with _connected(url, server) as connection:
        while done < instants:
            before = done

            async def moved_on(before: int = before) -> bool:
                nonlocal done
                ((done,),) = await asyncio.to_thread(_fetch, connection, query)
                return done > before

            await until(moved_on)


async def _is_true(question: Callable[[], bool]) -> bool:
    return question()


def _ask(url: str, server: Server, query: str) -> list[tuple[Any, ...]]:
    with _connected(url, server) as connection:
        return _fetch(connection, query)


@contextmanager
def _connected(url: str, server: Server) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
    with server.connect() as connection:
        connection.execute(f"SET search_path = {schema_of(url)}".encode())
        yield connection


def _fetch(connection: "psycopg.Connection[tuple[Any, ...]]", query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode()).fetchall()


def _who(line: Line) -> tuple[str, str, str]:
    return line.slug, line.attempt, line.node
