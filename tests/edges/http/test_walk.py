"""The walk in ARCHITECTURE.md: one schedule from PUT to delivery, traced through the running system."""

import asyncio
import re
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import wakeful
from channels.receiver import receiving
from edges.http.kit import Client, served
from patience import PATIENCE
from wakeful.integrations.agents.call import CallAgent
from wakeful.integrations.channels.telegram import Bot, TelegramChannel
from wakeful.ports.clock import Clock

HOPS_MAX = 40
PAGE = Path(__file__).parents[3] / "ARCHITECTURE.md"
SOURCE = f"{Path(wakeful.__file__).parent}/"

# What the walk leaves out, as ARCHITECTURE.md says. Modules:
PASSED_BY_EVERYTHING = (
    "stores.",  # SQL
    "observe.",  # events after each commit
    "server.http.",  # access, limits and headers of every request
    "integrations.net.",  # sockets
    "integrations.system.",  # threads, timers, text
    "engine.clock.",
    "engine.urgent_store.",  # the store, for all operations of the engine
    "engine.membership.",  # periodic work: renewing the lease, pruning
    "engine.pruning.",
    "engine.recovery.",
    "engine.store_rollback.",
    "engine.tick_gaps.",
    "features.money.",  # without a budget it only records what the turn cost
    "features.heartbeat.",  # other features, with nothing to do
    "features.workflows.",
)
VALUES = (
    "core.description.",
    "core.fields.",
    "core.retry_json.",
    "core.schedule.definition_json.",
    "core.schedule.definition.",
    "core.schedule.health.",
    "core.heartbeat.conversations.",
    "core.money.",
    "core.run.results.",
    "core.run.runs.",
    "core.run.usage.",
    "core.time.",
    "features.delivery.registry.",
    "features.delivery.text.",
    "features.schedules.views.",
    "integrations.actions.fire.",
    "integrations.actions.invoke.",
    "integrations.actions.registry.",
    "integrations.actions.spec.",
    "integrations.agents.config.",
    "integrations.agents.receipts.",
    "integrations.agents.reply.",
    "integrations.channels.http_outcome.",
    "ports.",
)
# Functions of other modules that return a value and do nothing else:
VALUE_FUNCTIONS = {
    "core.schedule.actions.action_to_json",
    "core.schedule.cadence.in_session",
    "features.schedules.checking.spec_of",
    "features.schedules.compiled.agent_of",
    "features.schedules.compiled.Compilations.of_run",
    "features.schedules.compiled.Compiled.definition",
    "features.schedules.jobs.Jobs.of",
    "app.bootstrap.parts.Parts.conditions",
    "app.costs.Costs.cost_of",
    "app.lifecycle.AppLifecycle.is_started",
    "app.lifecycle.AppLifecycle.terms",
    "core.run.transitions.climbed",
    "core.schedule.cadence.due_at",
    "core.schedule.cadence.is_spent",
    "core.schedule.cadence.is_turned",
    "core.schedule.cadence.with_rows",
    "core.schedule.plain.is_plain",
    "core.schedule.labels.queue_of",
    "engine.engine.Engine.labels",
    "engine.engine.Engine.manual_room",
    "engine.engine.Engine.node_id",
    "engine.engine.Engine.succession_until",
    "engine.limits.manual_max",
    "engine.running.Runner.count",
    "engine.running.Runner.manual_count",
    "engine.running.Runner.next_deadline",
    "engine.settler.Settler.kept",
    "engine.running.Runner.run_ids",
    "engine.lease.Lease.holds",
    "engine.running.Runner.backfill_count",
    "engine.settler.Settler.kept_manual",
    "engine.side_tasks.SideTasks.next_deadline",
    "features.delivery.incidents.of_channel",
    "features.delivery.queue.report",
    "features.delivery.queue.set_alarm",
}
# Callbacks: the store calls them for the module that handed them over.
HANDED_OVER = {"engine.settling.settle_and_claim"}
# Done every few seconds, so also during a walk that a slow machine takes long for:
REGULAR = {"engine.lease.Lease.renew"}
# Checks that find nothing to do on this path:
NOTHING_FOUND = {
    "core.delivery.retries.is_last",
    "core.schedule.plain.is_plain_success",
    "core.schedule.labels.may_take",
    "engine.labels.queues_for",
    "engine.labels.due_runs",
    "engine.labels.due_kinds",
    "engine.labels.next_due_at",
    "engine.claiming.claim_waiting",
    "engine.engine.Engine.look_by",
    "engine.engine.Engine.start_claims",
    "engine.running.Runner.end_overdue",
    "engine.effects.apply",
    "engine.side_tasks.SideTasks.end_overdue",
    "features.delivery.commands.check_channel",
    "features.delivery.incidents.recovered",
    "features.delivery.feature.DeliveryTraces.add",
    "features.schedules.checks.refuse_excluded",
    "features.schedules.checks.refuse_past",
    "features.schedules.plain.plain_starts",
    "features.schedules.resets.followed",
    "features.schedules.resets.informed",
    "features.schedules.rules.Terms.excluded",
    "features.schedules.rules.Terms.excludes",
    "features.schedules.rules.Terms.is_lifted",
    "features.schedules.rules.Terms.starting",
    "features.schedules.runs.ScheduleRuns.settle_plain",
    "features.schedules.rules.Terms.too_often",
    "integrations.actions.cancellation.run_to_end",
    "integrations.agents.one_shot.OneShot.clean_up",
}


class Trace:
    """The functions of ours that were called, and those that were called from another module."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.hops: set[str] = set()
        self.is_on = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self.is_on or not frame.f_code.co_filename.startswith(SOURCE):
            return
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(SOURCE):
            caller = caller.f_back
        name = f"{_module(frame)}.{frame.f_code.co_qualname.rpartition('<locals>.')[2]}"
        self.called.add(name)
        is_nested = "<" in frame.f_code.co_qualname
        if not is_nested and (caller is None or _module(caller) != _module(frame)):
            self.hops.add(name)


def _module(frame: FrameType) -> str:
    return frame.f_code.co_filename.removeprefix(SOURCE).removesuffix(".py").replace("/", ".")


@contextmanager
def tracing() -> Iterator[Trace]:
    """Traces this thread, and those that start meanwhile, whenever it is on."""
    trace, before = Trace(), sys.getprofile()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(before)
        threading.setprofile(before)


def steps_of_the_walk() -> list[str]:
    return re.findall(r"^\d+\. `([\w.]+)`", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def is_left_out(name: str) -> bool:
    is_private = name.rpartition(".")[2].startswith("_")  # a callback into the module that handed it out, or a dunder
    named = name in VALUE_FUNCTIONS | HANDED_OVER | REGULAR | NOTHING_FOUND
    return is_private or named or name.startswith((*PASSED_BY_EVERYTHING, *VALUES))


async def put_fire_deliver(api: Client, path: Path, trace: Trace) -> None:
    at = datetime.now(UTC) + timedelta(seconds=5)  # still ahead when a slow machine has written it
    definition = {
        "prompt": "What is new?",
        "schedule": {"type": "at", "at": at.isoformat()},
        "deliver": {"channel": "phone"},
    }
    trace.is_on = True
    assert (await api.put("standup", definition)).status == 201

    async with asyncio.timeout(PATIENCE):
        while not is_delivered(path):
            await asyncio.sleep(0.05)
    trace.is_on = False


def is_delivered(path: Path) -> bool:
    """Asks the file: a query through the app would be traced."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT status FROM deliveries").fetchall() == [("delivered",)]


async def test_the_walk_of_one_schedule_is_complete_and_short(tmp_path: Path) -> None:
    def agents(_: Clock, registry: Any) -> Any:
        registry.register("bot", lambda prompt: "nothing new")
        return {"default": CallAgent("bot", registry)}

    async with receiving() as receiver:

        def channels(clock: Clock, listener: Any) -> Any:
            return {"phone": TelegramChannel(Bot("1:x", receiver.url, clock, listener), "42", clock)}

        with tracing() as trace:
            async with served(tmp_path, agents=agents, channels=channels) as api:
                await put_fire_deliver(api, tmp_path / "wakeful.db", trace)
    steps = steps_of_the_walk()
    assert len(steps) == len(set(steps)) <= HOPS_MAX
    assert set(steps) - trace.called == set(), "the walk names functions that are not called"
    unnamed = sorted(name for name in trace.hops - set(steps) if not is_left_out(name))
    cure = "add a step to ARCHITECTURE.md, or, for a function that only returns a value, an entry to the lists above"
    assert not unnamed, f"calls into another module that the walk does not name: {unnamed}; {cure}"
