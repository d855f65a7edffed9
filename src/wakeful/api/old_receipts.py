"""Names of 0.2 for programs with a server of their own: receipts of runs, and who calls; all are deprecated."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

from wakeful.api.deprecation import warn_of
from wakeful.app import calling
from wakeful.core.refusals import Conflict
from wakeful.features.schedules.owned import of_agents

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful

_DAEMON = "the daemon's REST API takes receipts, and recognises the programs of runs"


class OldReceipts:
    """What 0.2 had as methods of the app."""

    async def receive(
        self, run_id: int, token: str, rung: str, *, text: Any = None, usage: Any = None, error: Any = None
    ) -> str:
        """Deprecated: the daemon's REST API takes receipts. Returns taken, late, again, or forged."""
        warn_of("receive", instead=_DAEMON)
        receipts = self._wakeful._receipts
        return "forged" if receipts is None else await receipts.post(run_id, token, rung, text, usage, error)

    async def report_run(
        self, run_id: int, rung: str, *, text: Any = None, usage: Any = None, error: Any = None
    ) -> str:
        """Deprecated: the tool `report_run` of an agent, or the daemon's REST API."""
        warn_of("report_run", instead=_DAEMON)
        receipts = self._wakeful._receipts
        if receipts is None:
            raise Conflict("this process does not accept receipts; start the daemon")
        return await receipts.post(run_id, receipts.token(run_id), rung, text, usage, error)

    def knows_token(self, run_id: int, token: str) -> bool:
        """Deprecated: the daemon's REST API checks tokens of runs."""
        warn_of("knows_token", instead=_DAEMON)
        receipts = self._wakeful._receipts
        return receipts is not None and receipts.is_genuine(run_id, token)

    async def agent_run_of_session(self, session: int) -> int | None:
        """Deprecated: the daemon recognises the programs of runs."""
        warn_of("agent_run_of_session", instead=_DAEMON)
        run = await calling.calling_run(self._wakeful, [session], [])
        return run.run_id if run is not None and run.is_agents and run.is_running else None

    async def owned_by_agents(self, slugs: Collection[str]) -> frozenset[str]:
        """Deprecated: `owner` of each schedule."""
        warn_of("owned_by_agents", "get, which returns the owner")
        return await self._wakeful._look(lambda tx, _: of_agents(tx, slugs))

    @property
    def _wakeful(self) -> "Wakeful":
        return cast("Wakeful", self)
