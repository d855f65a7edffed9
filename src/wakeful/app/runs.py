"""Runs: start, cancel, wait for, prove and read them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from wakeful.app.definitions import Definitions
from wakeful.core.money.prices import dollars
from wakeful.core.refusals import Conflict
from wakeful.core.run.runs import OPEN, Outcome
from wakeful.core.schedule.definition_json import decode_definition
from wakeful.core.time.instants import SECOND, Duration, Instant, parse_duration
from wakeful.core.time.timing_builders import as_instant
from wakeful.features.money.queries import expected_cost
from wakeful.features.schedules import backfilling, cancelling, commands, queries
from wakeful.features.schedules.views import RunView
from wakeful.integrations.agents.receipts import Receipts
from wakeful.ports.store import Tx

LOOK_EVERY: Final[Duration] = 20
"""How often the row of a run is read whose end this process does not hear of, because another one ticks."""
LOOK_ANYWAY: Final[Duration] = SECOND // 2
"""The same where this process ticks, and no other can."""
LOOK_AT_OTHERS: Final[Duration] = SECOND // 10
"""The same where this process ticks, and another one may have the run."""


class Runs(Definitions):
    """Rows of the ledger."""

    async def run_now(self, slug: str, *, wait: bool = False, within: str = "60s") -> RunView:
        """Run once now, without changing the cadence; with `wait`, returns when the run has ended."""
        run_id = await self.request_run(slug)
        if wait:
            return await self.wait_for(run_id, within=within)
        return await self.get_run(run_id)

    async def request_run(self, slug: str) -> int:
        """Like `run_now` without `wait`; returns only the run's id."""
        return await self._command(lambda tx, now: commands.run_now(tx, slug, now=now))

    async def cancel(self, run_id: int, *, by: str = "") -> RunView:
        """Cancel a run that is running or waiting. Raises `Conflict` if it has ended.

        A running run ends shortly afterwards: use `wait_for`. `by` is recorded as who asked."""
        hooks = self._open.hooks
        await self._command(lambda tx, now: cancelling.cancel(tx, run_id, hooks=hooks, now=now, by=by))
        return await self.get_run(run_id)

    async def replay(self, run_id: int) -> RunView:
        """Run a finished run's instant once more, outside the plan."""
        new_id = await self._command(lambda tx, now: backfilling.replay(tx, run_id, now=now))
        return await self.get_run(new_id)

    async def check_replay(self, run_id: int) -> str:
        """Whether a run can be replayed; returns the slug of its schedule, or raises."""
        return await self._open.store.read(lambda tx: backfilling.replayable(tx, run_id)[1].slug)

    async def estimated_cost(self, by_slug: Mapping[str, int]) -> float | None:
        """The estimated cost of this many runs of these schedules, in US dollars; None: unknown.

        Each costs the mean of the last known costs of its schedule, else of its agent. Only prompts cost something."""
        now = self._clock.read().now

        def look(tx: Tx) -> float | None:
            total = 0.0
            for slug, schedule in tx.schedules.by_slugs(sorted(by_slug)).items():
                each = expected_cost(tx, schedule.schedule_id, decode_definition(schedule.definition), now=now)
                if each is None:
                    return None
                total += each * by_slug[slug]
            return dollars(round(total))

        return await self._open.store.read(look)

    async def replay_missed(
        self, since: datetime | str, slug: str | None = None, *, apply: bool = False, by: str = ""
    ) -> dict[str, int]:
        """Run missed instants since `since`, of one schedule or of all; returns how many, by slug. Without `apply`
        nothing runs."""
        first = as_instant(since, "since")

        def replay(tx: Tx, now: Instant) -> dict[str, int]:
            wanted = backfilling.missed_since(tx, slug, since=first)
            for item in wanted if apply else ():
                backfilling.start(tx, item, "replay", now=now, by=by)
            return {item.schedule.slug: len(item.instants) for item in wanted}

        return await self._command(replay)

    async def backfill(
        self, slug: str, since: datetime | str, until: datetime | str, *, apply: bool = False, by: str = ""
    ) -> int:
        """Run the past instants in [since, until] that have not succeeded, one after another; returns how many. Without
        `apply` nothing runs."""
        first, last = as_instant(since, "from"), as_instant(until, "until")

        def backfill(tx: Tx, now: Instant) -> int:
            wanted = backfilling.backfill_of(tx, slug, since=first, until=last, terms=self.terms, now=now)
            if apply:
                backfilling.start(tx, wanted, "backfill", now=now, by=by)
            return len(wanted.instants)

        return await self._command(backfill)

    async def stop_backfill(self, slug: str) -> int:
        """Stop the backfills of a schedule; returns how many instants will not run."""
        return await self._command(lambda tx, now: backfilling.stop(tx, slug, now=now))

    async def wait_for(self, run_id: int, *, within: str = "60s") -> RunView:
        """Return the run when it has ended; raises `Conflict` if that takes longer than `within`."""
        give_up = self._clock.read().monotonic + parse_duration(within, "within")
        with self._run_endings.bell_of(run_id, self._bus.fan_out) as ended:
            while True:
                ended.clear()
                run = await self.get_run(run_id)
                if run.outcome not in OPEN:
                    return run
                left = give_up - self._clock.read().monotonic
                if left <= 0:
                    raise Conflict(f"run {run_id} is still {run.outcome} after {within}")
                await self._clock.wait(ended, min(left, self._looks_every()))

    def _looks_every(self) -> Duration:
        if not self.is_ticking or not self._bus.is_connected:
            return LOOK_EVERY
        return LOOK_ANYWAY if self._open.store.is_exclusive else LOOK_AT_OTHERS

    async def receive(
        self, run_id: int, token: str, rung: str, *, text: Any = None, usage: Any = None, error: Any = None
    ) -> str:
        """Accept a receipt that an agent or a command posted; returns taken, late, again, or forged."""
        receipts = self._receipts
        return "forged" if receipts is None else await receipts.post(run_id, token, rung, text, usage, error)

    async def report_run(
        self, run_id: int, rung: str, *, text: Any = None, usage: Any = None, error: Any = None
    ) -> str:
        """Like `receive`, for a caller identified as the run by its token."""
        receipts = self._receipts
        if receipts is None:
            raise Conflict("this process does not accept receipts; start the daemon")
        return await receipts.post(run_id, receipts.token(run_id), rung, text, usage, error)

    def knows_token(self, run_id: int, token: str) -> bool:
        """Whether this is the token that the target of the run was given."""
        return self._receipts is not None and self._receipts.is_genuine(run_id, token)

    @property
    def _receipts(self) -> Receipts | None:
        return (self._ending or self._open).receipts  # a run that gets its grace may be waiting for just this

    async def runs(
        self,
        slug: str | None = None,
        *,
        limit: int = 100,
        before_id: int | None = None,
        outcome: Outcome | None = None,
    ) -> list[RunView]:
        """Rows of the ledger, newest first."""
        return await self._open.store.read(
            lambda tx: queries.runs(tx, slug, limit=limit, before_id=before_id, outcome=outcome)
        )

    async def get_run(self, run_id: int) -> RunView:
        """One row of the ledger."""
        return await self._open.store.read(lambda tx: queries.run(tx, run_id))
