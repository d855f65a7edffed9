"""Taking over a crontab: every run happens once in all, by one of the two, whatever dies on the way."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from features.kit import Bench, World, short, virtual
from moving import stand_ins
from moving.kit import BASE
from wakeful.api.importing import Importer
from wakeful.core.run.results import Done, Result
from wakeful.core.schedule.actions import Command
from wakeful.core.time.instants import MINUTE, parse_duration
from wakeful.features.moving.handover import next_handover_at
from wakeful.integrations.imports.crontab import read_crontab
from wakeful.integrations.imports.entries import SourceFile
from wakeful.integrations.imports.switches import MARK

TABLE = "* * * * * every-minute\n0 12 * * * noon\n30 11,12 * * * half\n"


def installed(folder: Path) -> stand_ins.Machine:
    """The programs of the table; what is imported has to exist."""
    return stand_ins.Machine(folder).install("every-minute", "noon", "half")


class Programs:
    """The commands of both sides, on one record: `(minute, command, who)`."""

    is_local = True

    def __init__(self, world: World) -> None:
        self._world = world
        self.ran: list[tuple[str, str, str]] = []

    def check(self, _: Any) -> None:
        return None

    def proves(self, _: Any) -> str:
        return "finished"

    async def perform(self, spec: Command, fire: Any, *_: Any) -> Result:
        self.ran.append((short(fire.planned_at), spec.argv[2], "wakeful"))
        return Done()

    async def close(self) -> None: ...

    async def cron(self, table: Path) -> None:
        """Cron itself: at each minute it reads the table and starts what matches."""
        while True:
            await self._world.clock.sleep(MINUTE - self._world.now % MINUTE)
            now = self._world.now
            context = replace(BASE, zone="UTC", now=now)
            for entry in read_crontab([SourceFile(str(table), table.read_text(), table)], context):
                if entry.times is not None and entry.times(now - 1, 1) == [now]:
                    self.ran.append((short(now), entry.action["command"]["argv"][2], "cron"))


class Machine:
    """A crontab, cron, and a Wakeful that can be killed at a step."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.table = folder / "table"
        self.table.write_text(TABLE)
        self.programs = Programs(world)
        self.kill_at: int | None = None
        self.steps = 0
        self.app: Bench | None = None

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Each look and each switch is two places to die: before it and after it."""
        await self.step()
        done = work()
        await self.step()
        return done

    async def step(self) -> None:
        self.steps += 1
        if self.steps == self.kill_at:
            assert self.app is not None
            app, self.app = self.app, None
            asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(app.kill()))
            await asyncio.Event().wait()

    async def open(self) -> Importer:
        self.app = self.world.bench(timezone="UTC", actions={Command: self.programs}, home=self.table.parent)
        importer = Importer(self.app, in_thread=self.in_thread)
        self.app._add_service(importer.plug)
        await self.app.start()
        return importer


def expected(first: str, last: str) -> list[tuple[str, str]]:
    """Every run of the table between two minutes of the hours around noon."""

    def minute(text: str) -> int:
        return int(text[:2]) * 60 + int(text[3:])

    found = []
    for at in range(minute(first), minute(last) + 1):
        when = f"01-01 {at // 60:02}:{at % 60:02}:00"
        found.append((when, "every-minute"))
        found += [(when, "noon")] if at == 720 else []
        found += [(when, "half")] if at % 60 == 30 else []
    return sorted(found)


async def take_over(world: World, folder: Path, *, kill_at: int | None, off: str) -> Machine:
    machine = Machine(world, folder)
    await world.until("01-01 11:50:10")
    cron = asyncio.ensure_future(machine.programs.cron(machine.table))
    importer = await machine.open()
    await world.until("01-01 11:59:30")
    context = replace(BASE, zone="UTC", now=world.now, **installed(folder).context())
    plan = await importer.plan("crontab", path=machine.table, context=context)
    machine.steps, machine.kill_at = 0, kill_at
    done = await importer.apply(plan, is_handover=True)
    assert done.handover is not None
    for _ in range(40):
        await world.sleep("15s")
        if machine.app is None:
            await world.sleep(off)
            await machine.open()
    await world.until("01-01 12:45:30")
    cron.cancel()
    return machine


@pytest.mark.parametrize("off", ["0s", pytest.param("7m", marks=pytest.mark.torture)])
@pytest.mark.parametrize(
    "kill_at", [None, 4, *(pytest.param(step, marks=pytest.mark.torture) for step in (1, 2, 3, 5, 6))]
)
@virtual
async def test_each_run_happens_once_in_all(world: World, kill_at: int | None, off: str) -> None:
    """11:59:30, with a job at 12:00: with kill -9 before and after each look at the crontab and each change of it, and
    an outage of any length afterwards."""
    machine = await take_over(world, world.path.parent, kill_at=kill_at, off=off)
    ran = sorted((when, what) for when, what, _ in machine.programs.ran)
    by_us = {when for when, what, who in machine.programs.ran if who == "wakeful" and what == "every-minute"}
    assert machine.app is not None and (kill_at is None or machine.steps >= kill_at)
    # What falls into our own outage after the handover is ours to miss, and in the ledger: cron would skip it too.
    missed = sum(run.count for run in await machine.app.runs("every-minute", limit=100) if run.outcome == "missed")
    everything = expected("11:51", "12:45")
    assert len(ran) == len(set(ran)) and set(ran) <= set(everything)
    assert sum(what == "every-minute" for _, what in ran) + missed == sum(
        what == "every-minute" for _, what in everything
    )
    assert (missed == 0 and ran == everything) or (kill_at is not None and off == "7m")
    assert by_us and min(by_us) >= "01-01 12:01:00"
    assert machine.table.read_text() == "".join(f"{MARK}{line}\n" for line in TABLE.splitlines())
    assert (world.path.parent / "table.wakeful-backup").read_text() == TABLE
    ((stage,),) = world.query("SELECT stage FROM handovers")
    assert stage == "done"


@pytest.mark.parametrize(
    "commits", [1, 2, *(pytest.param(commits, marks=pytest.mark.torture) for commits in (0, 3, 4))]
)
@virtual
async def test_a_crash_at_any_commit(world: World, commits: int) -> None:
    """The process dies right after the n-th commit since the request, before it knows of it."""
    machine = Machine(world, world.path.parent)
    await world.until("01-01 11:50:10")
    cron = asyncio.ensure_future(machine.programs.cron(machine.table))
    importer = await machine.open()
    await world.until("01-01 11:59:30")
    context = replace(BASE, zone="UTC", now=world.now, **installed(machine.table.parent).context())
    plan = await importer.plan("crontab", path=machine.table, context=context)
    assert machine.app is not None
    machine.app.store.last = machine.app.store.writes + commits
    request = asyncio.ensure_future(importer.apply(plan, is_handover=True))
    await world.sleep("90s")
    request.cancel()
    await machine.app.kill()
    importer = await machine.open()
    again = await importer.plan("crontab", path=machine.table, context=replace(context, now=world.now))
    if again.writable:  # the request was lost with its commit: the person repeats it
        await importer.apply(again, is_handover=True)
    await world.until("01-01 12:45:30")
    cron.cancel()
    assert sorted((when, what) for when, what, _ in machine.programs.ran) == expected("11:51", "12:45")


def test_the_handover_is_a_full_minute_at_least_one_ahead() -> None:
    """DESIGN §8.9."""
    for now in (0, 1, 59_999, 60_000, 90_000, 119_999):
        assert next_handover_at(now) % MINUTE == 0 and next_handover_at(now) - now >= parse_duration("60s")
        assert next_handover_at(now) - now < 2 * MINUTE
