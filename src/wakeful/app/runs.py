"""Runs: start, cancel, wait for, prove and read them."""

from typing import Any, Final

from wakeful.app.definitions import Definitions
from wakeful.core.refusals import Conflict
from wakeful.core.run.runs import Outcome
from wakeful.core.time.instants import parse_duration
from wakeful.features.schedules import cancelling, commands, queries
from wakeful.features.schedules.views import RunView
from wakeful.integrations.agents.receipts import Receipts

WAIT_STEP: Final = 20


class Runs(Definitions):
    """Rows of the ledger."""

    async def run_now(self, slug: str, *, wait: bool = False, within: str = "60s") -> RunView:
        """Run once now, without changing the cadence; with `wait`, returns when the run has ended."""
        run_id = await self._command(lambda tx, now: commands.run_now(tx, slug, now=now))
        if wait:
            return await self.wait_for(run_id, within=within)
        return await self.get_run(run_id)

    async def cancel(self, run_id: int, *, by: str = "") -> RunView:
        """Cancel a run that is running or waiting. Raises `Conflict` if it has ended.

        A running one ends shortly afterwards: use `wait_for`. `by` is recorded as who asked."""
        hooks = self._open.hooks
        await self._command(lambda tx, now: cancelling.cancel(tx, run_id, hooks=hooks, now=now, by=by))
        return await self.get_run(run_id)

    async def wait_for(self, run_id: int, *, within: str = "60s") -> RunView:
        """Return the run when it has ended; raises `Conflict` if that takes longer than `within`."""
        give_up = self._clock.read().monotonic + parse_duration(within, "within")
        while True:
            run = await self.get_run(run_id)
            if run.outcome not in ("running", "waiting"):
                return run
            if self._clock.read().monotonic >= give_up:
                raise Conflict(f"run {run_id} is still {run.outcome} after {within}")
            await self._clock.sleep(WAIT_STEP)

    async def receive(
        self, run_id: int, token: str, rung: str, *, text: Any = None, usage: Any = None, error: Any = None
    ) -> str:
        """Accept a receipt that an agent or a command posted; returns taken, late, again, or forged."""
        receipts = self._receipts
        return "forged" if receipts is None else await receipts.post(run_id, token, rung, text, usage, error)

    async def report_run(
        self, run_id: int, rung: str, *, text: Any = None, usage: Any = None, error: Any = None
    ) -> str:
        """The same for a caller that was identified as the run by its token."""
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
