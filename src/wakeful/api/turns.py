"""The heartbeat, its wakes and its events: what can be asked of them."""

import logging
from dataclasses import dataclass
from typing import Annotated, Final

from wakeful.api.agents import AgentTurns
from wakeful.api.operation import Blocking, Returns, read, write
from wakeful.api.parameters import Param
from wakeful.api.reading import end_of_pause, run_id_of
from wakeful.api.shared_parameters import Until
from wakeful.api.tools import ToolCalls
from wakeful.app.heartbeat import STATE, HeartbeatState, heartbeat_state
from wakeful.core.errors import refuse
from wakeful.core.refusals import Conflict
from wakeful.core.returned import RUN_ID, returned
from wakeful.core.self_scheduling.proposals import read_answer
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat import planning
from wakeful.features.heartbeat.commands import WOKEN, Given, WakeResult, reason_of, request_wake
from wakeful.features.heartbeat.events import KEY_MAX, TEXT_MAX
from wakeful.ports.heartbeats import SystemEvent, WaitingEvents
from wakeful.ports.store import Tx

log = logging.getLogger("wakeful.approvals")

TEXT: Final = {"type": "string", "minLength": 1, "maxLength": TEXT_MAX, "description": "text for the agent"}
KEY: Final = {"type": "string", "minLength": 1, "maxLength": KEY_MAX}
STATE_AFTER: Final = Returns(STATE, "The new state.")


@dataclass(frozen=True, slots=True)
class SystemEvents:
    """System events queued for the next turn, oldest first."""

    events: list[SystemEvent]


def undecided(text: str, source: str = "a wake") -> str:
    """The text of an event. A decision on a proposal is refused: it would not come from a person."""
    if read_answer(text) is not None:
        log.warning("a decision on a proposal was sent as the text of %s; it was refused", source)
        refuse("text", "is a decision on a proposal, which is not accepted here; use wakeful approvals")
    return text


class Turns(AgentTurns, ToolCalls):
    """Agents, the heartbeat, its wakes and its events."""

    @write(
        "POST /api/wake",
        "Request a turn",
        Returns(WOKEN, "A turn follows."),
        statuses=(202,),
        refuses=(409,),
        id="wake",
        tag="heartbeat",
        agents=True,
        commands=True,
        body_name="Wake",
        body_says="A request for a turn.",
    )
    def wake(
        self,
        tx: Tx,
        now: Instant,
        reason: Annotated[Given | None, Param(read=reason_of)] = None,
        text: Annotated[str | None, Param(schema=TEXT, read=undecided)] = None,
        context_key: Annotated[str | None, Param(schema=KEY)] = None,
        *,
        run_id: Annotated[
            int | None, Param("run id of the requesting turn, if any", schema=RUN_ID.schema, read=run_id_of)
        ] = None,
        token: Annotated[str | None, Param("token of that run")] = None,
    ) -> WakeResult:
        """Requests within 250 ms become one turn. `text` is passed to the agent as a system event. A turn that requests
        another one sends the id and token of its run: such turns are at least `spacing_min` apart."""
        if text is None and context_key is not None:
            refuse("contextKey", "needs text; give both, or leave it out")
        return request_wake(
            tx,
            reason_of("manual" if reason is None else reason),
            now=now,
            apply=self._app._open.apply,
            text=text,
            context_key=context_key,
            is_own=self._is_turn(run_id, token) or self._actor.run_id is not None,
        )

    @read(
        "GET /api/heartbeat",
        "State of the heartbeat",
        Returns(STATE, "With its last turns, newest first."),
        id="get_heartbeat",
        tag="heartbeat",
    )
    def heartbeat(self, tx: Tx, now: Instant) -> HeartbeatState:
        return heartbeat_state(tx, self._app._heartbeat.terms, now=now)

    @write(
        "POST /api/heartbeat/pause",
        "Pause the heartbeat",
        STATE_AFTER,
        refuses=(409,),
        id="pause_heartbeat",
        tag="heartbeat",
        body_name="Pause",
        body_says="When the pause ends; without `until`, it lasts until the schedule is resumed.",
    )
    def pause_heartbeat(self, tx: Tx, now: Instant, *, until: Until = None) -> HeartbeatState:
        """No beats and no retries until the heartbeat is resumed, or until `until`; a wake still starts a turn."""
        terms = self._app._heartbeat.terms
        planning.pause(tx, terms, now=now, until=end_of_pause(until, now))
        return heartbeat_state(tx, terms, now=now)

    @write(
        "POST /api/heartbeat/resume",
        "Resume the heartbeat",
        STATE_AFTER,
        refuses=(409,),
        id="resume_heartbeat",
        tag="heartbeat",
    )
    def resume_heartbeat(self, tx: Tx, now: Instant) -> HeartbeatState:
        """It beats again from now on; beats missed during the pause are not caught up."""
        terms = self._app._heartbeat.terms
        planning.resume(tx, terms, now=now)
        return heartbeat_state(tx, terms, now=now)

    @read(
        "GET /api/system-events",
        "System events queued for the next turn",
        Returns(returned(SystemEvents), "Oldest first."),
        id="list_system_events",
        tag="heartbeat",
    )
    def system_events(self, tx: Tx, now: Instant) -> SystemEvents:
        return SystemEvents(tx[WaitingEvents].all())

    def _is_turn(self, run_id: int | None, token: str | None) -> bool:
        """Whether a turn asks, which gives its own id and token."""
        if run_id is None and token is None:
            return False
        if run_id is None or token is None:
            name = "runId" if run_id is None else "token"
            refuse(name, "is missing; a turn sends both the id and the token of its run")
        receipts = self._app._open.receipts
        if receipts is None or not receipts.is_genuine(run_id, token):
            raise Conflict("the token does not belong to that run; give the run and the token of the turn, or neither")
        return True


class BlockingTurns(Turns, Blocking):
    """Agents and the heartbeat, for programs without an event loop."""
