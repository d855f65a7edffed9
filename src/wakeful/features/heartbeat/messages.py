"""Messages from people on a channel: each gets its own turn in the conversation's session, and a reply to the sender.

A message is a run of its conversation, committed before it is acknowledged, so it survives a crash. The agent's lane
keeps messages in order and separate from other turns; none are merged, because each sender expects a reply.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from wakeful.core.errors import refuse
from wakeful.core.heartbeat.acknowledgement import stripped
from wakeful.core.heartbeat.conversations import conversation
from wakeful.core.run.effects import Alert, Deliver, Effect, Recovered
from wakeful.core.run.results import Busy, Done, Ending, Throttled, kept_of, kept_while_waiting, session_of
from wakeful.core.run.runs import ERRORS, PRIORITY_PERSON, Run, unplanned
from wakeful.core.run.settlement import Close, Policy, Settlement, Wait, after_attempt, after_close
from wakeful.core.run.transitions import planned
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.cadence import Cadence, Rules, begin, in_session
from wakeful.core.schedule.definition import DeliverTo
from wakeful.core.schedule.gates import Defer, Skip
from wakeful.core.schedule.policies import Retry, ladder_delay
from wakeful.core.time.instants import SECOND, Instant
from wakeful.core.time.timing import Manual
from wakeful.features.heartbeat.agent_runs import NO_AGENT, AgentRuns
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.ports import events
from wakeful.ports.event_data import Received
from wakeful.ports.handlers import Job, RunAgent, Settled
from wakeful.ports.interactions import Interactions
from wakeful.ports.meta import Meta
from wakeful.ports.owners import Owners
from wakeful.ports.store import Report, Tx, run_alarm

MESSAGE: Final = "message"
TEXT_MAX: Final = 64 * 1024
_RULES: Final = Rules(Manual())
# A person waits: a failed turn is retried twice, soon, and then the sender is notified, so no incident is needed.
_POLICY: Final = Policy(Retry(2, 5 * SECOND), "retry", 0, None, alert=False)
# Sent to people who would otherwise wait for nothing.
_NO_REPLY: Final = {
    "no-reply": "The agent's turn for your message ended, but no reply could be read.",
    "ok-empty": "The agent's reply to your message was empty.",
}
BUSY_MAX: Final = 4
"""How often a message is retried if the agent is busy: after 30 s and 1, 5 and 15 minutes."""


def message(tx: Tx, *, channel: str, to: str, text: str, terms: HeartbeatTerms, now: Instant) -> int:
    """Accept a message and record the interaction; returns the id of the run that will answer it."""
    if not text.strip():
        refuse("text", "is empty; write a message")
    if len(text) > TEXT_MAX:
        refuse("text", f"has {len(text)} characters; send at most {TEXT_MAX}")
    tx[Interactions].touch(channel, to, at=now)
    owner_id = tx[Owners].named(conversation(channel, to))
    known = tx.cadences.lock([owner_id])
    if not known:
        known[owner_id] = begin(owner_id, 1, _RULES, now=now, state="active", reason=None)
        tx.cadences.add_many([known[owner_id]])
    _switch_agent(tx, known[owner_id], terms.agent)
    run_id = tx.runs.reserve_ids(1)[0]
    run = planned(
        run_id=run_id,
        kind=MESSAGE,
        schedule_id=owner_id,
        version=1,
        planned_at=now,
        due_at=now,
        trigger="wake",
        lane=terms.lane,
        reason=MESSAGE,
    )
    kept = {"reasons": [MESSAGE], "agent": terms.agent, "channel": channel, "to": to, "text": text}
    run = run._replace(
        occurrence=unplanned(run_id, now), priority=PRIORITY_PERSON, definition=json.dumps(kept, ensure_ascii=False)
    )
    tx.runs.add_many([run])
    tx.alarms.set_many([run_alarm(run, now)])
    tx.report(Report(events.MESSAGE_RECEIVED, Received(run_id, channel)))
    return run_id


class MessageRuns(AgentRuns):
    """Manages message runs."""

    kind = MESSAGE
    admits_without_locks = True

    def lock(self, tx: Tx, runs: Sequence[Run]) -> dict[int, Cadence]:
        return tx.cadences.lock({run.schedule_id for run in runs})

    def admit(self, tx: Tx, runs: Sequence[Run], *, now: Instant) -> list[Job | Defer | Skip | str]:
        return [*self.jobs(tx, runs)]

    def jobs(self, tx: Tx, runs: Sequence[Run]) -> list[Job | str]:
        names = tx[Owners].names({run.schedule_id for run in runs})
        return [self._job(run, names[run.schedule_id]) for run in runs]

    def settle(
        self, tx: Tx, locked: dict[int, Cadence], ended: Sequence[tuple[Run, Ending]], *, now: Instant
    ) -> list[Settled]:
        return [self._settle(tx, locked, run, ending, now) for run, ending in ended]

    def agent_of(self, tx: Tx, run: Run) -> RunAgent:
        kept = _kept(run)
        return RunAgent(str(kept["agent"]), DeliverTo(str(kept["channel"]), str(kept["to"])))

    def _job(self, run: Run, name: str) -> Job | str:
        if not self._has_agents:
            return NO_AGENT
        kept = _kept(run)
        return Job(Prompt(kept["text"], kept["agent"]), self._fire(run, name), self._terms().timeout, "retry")

    def _settle(self, tx: Tx, locked: dict[int, Cadence], run: Run, ending: Ending, now: Instant) -> Settled:
        settlement, agent = _after_attempt(run, ending, now), _kept(run)["agent"]
        if isinstance(settlement, Wait):
            return Settled(settlement, result=kept_while_waiting(ending, earlier=run.result), agent=agent)
        settlement, said = self._answer(run, ending, settlement, self._budget_note(tx, agent, now))
        cadence, effects = after_close(locked[run.schedule_id], _RULES, _POLICY, run, settlement, now=now)
        if settlement.outcome == "succeeded" and locked[run.schedule_id].last_outcome in ERRORS:
            effects += (Recovered((unanswered(run.schedule_id),)),)
        if tx[Meta].value(_agent_of(run.schedule_id)) in (None, _kept(run)["agent"]):  # else another agent took over
            cadence = in_session(cadence, session_of(ending), self._node)
        locked[run.schedule_id] = cadence
        tx.cadences.save_many([cadence])
        kept = kept_of(ending, earlier=run.result, is_late=not run.is_open)
        return Settled(settlement, effects + said, kept, agent)

    def _answer(
        self, run: Run, ending: Ending, close: Close, budget_note: str | None
    ) -> tuple[Close, tuple[Effect, ...]]:
        """The reply to the sender, or a note that there is none. A used-up budget does not stop the reply, but the
        reply mentions it."""
        kept = _kept(run)
        channel, to = kept["channel"], kept["to"]
        if close.outcome != "succeeded":
            text = f"Your message could not be answered: {close.error or close.reason or close.outcome}"
            note = Deliver(text, channel, to, run.run_id, conversation(channel, to), is_note=True)
            if close.reason == "quota" or close.is_cancelled:  # already known
                return close, (note,)
            return close, (note, Alert(unanswered(run.schedule_id), f"run {run.run_id}: {close.error}"))
        reply = ending.reply if isinstance(ending, Done) else None
        text = "" if reply is None else stripped(reply, self._terms().ack.token)
        if text:
            text = text if budget_note is None else f"{text}\n\n{budget_note}"
            return close._replace(reason="sent"), (Deliver(text, channel, to, run.run_id, conversation(channel, to)),)
        if reply is not None and reply.strip():  # only the ack token: the agent chose not to reply
            return close._replace(reason="ok-ack"), ()
        reason = "no-reply" if reply is None else "ok-empty"
        note = Deliver(_NO_REPLY[reason], channel, to, run.run_id, conversation(channel, to), is_note=True)
        return close._replace(reason=reason), (note,)


def unanswered(owner_id: int) -> str:
    """The name of the incident for unanswered messages of a conversation."""
    return f"unanswered:{owner_id}"


def _after_attempt(run: Run, ending: Ending, now: Instant) -> Settlement:
    """A busy agent is retried soon, not after an hour as for a schedule; then the sender is notified. The sender is
    also notified if the agent's usage limit is reached: hours later the reply may be useless."""
    if isinstance(ending, Throttled) and ending.reason == "quota":
        return Close("failed", run.rung, ending.error, "quota", is_counted=False)
    if not isinstance(ending, Busy):
        return after_attempt(run, _POLICY, ending, now=now, next_due_at=None)
    if run.waits >= BUSY_MAX:
        return Close("failed", run.rung, ending.error, "busy", is_counted=False)
    return Wait(now + ladder_delay(run.waits + 1), "busy", "busy", run.rung, ending.error, is_busy=True)


def _switch_agent(tx: Tx, cadence: Cadence, agent: str) -> None:
    """A session belongs to the agent that created it: with another agent the conversation starts over."""
    name = _agent_of(cadence.schedule_id)
    known = tx[Meta].value(name)
    if known == agent:
        return
    tx[Meta].set(name, agent)
    if known is not None:
        tx.cadences.save_many([cadence._replace(session_id=None, session_node=None)])


def _agent_of(owner_id: int) -> str:
    return f"conversation_agent:{owner_id}"


def _kept(run: Run) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(run.definition or "{}")
    return kept
