"""Agents that schedule themselves: who calls, what they may see and change, and people's decisions.

Everything an agent asks for passes through this module, however it arrived: MCP, REST with an agent's or a run's token,
the command line inside a run, or the tools of a chat model. An agent is an `Actor`; it reaches its own schedules only.
"""

import json
import logging
import secrets
import socket
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from wakeful.app.schedules import Schedules
from wakeful.app.values import Guard
from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.effects import ChatDecision, Deliver
from wakeful.core.run.runs import Run
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition import Definition, DeliverTo, ending
from wakeful.core.schedule.definition_json import decode_definition
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.self_scheduling.proposals import Decision, OwnedKind, Proposal
from wakeful.core.self_scheduling.slugs import owned_slug
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Once, Timing, next_n, resolve, without_days
from wakeful.core.time.timing_json import timing_to_json
from wakeful.core.time.when import read_when
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.schedules import approvals, guessing, owned, queries
from wakeful.features.schedules.approvals import asking
from wakeful.features.schedules.checks import Checked
from wakeful.features.schedules.owned import Actor, Written
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.views import ScheduleView, view_proposal
from wakeful.ports.live import Live
from wakeful.ports.store import Schedule, Tx

log = logging.getLogger("wakeful.approvals")

TIMES_SHOWN: Final = 5
ALLOWED: Final = (
    "slug", "schedule", "prompt", "agent", "command", "deliver", "timeout", "expiresAt", "sessionConfig", "exclude",
)  # fmt: skip
"""The fields of a definition that an agent may write."""
TEXT_MAX: Final = 20_000
RUNS_MAX: Final = 10_000


class AgentWritten(NamedTuple):
    """The result of an agent's write: the outcome, the schedule or proposal, and its next times."""

    result: owned.Result
    view: ScheduleView
    proposal: Proposal | None
    is_copy: bool
    next_times: tuple[Instant, ...]
    timing: Timing


class SelfScheduling(Schedules):
    """What agents ask for, and what people decide."""

    _self_scheduling: Live[SelfSchedulingTerms]

    def change_self_scheduling(self, terms: SelfSchedulingTerms) -> None:
        """Use other limits from now on."""
        self._self_scheduling.value = terms

    @property
    def self_scheduling(self) -> SelfSchedulingTerms:
        """The limits in effect."""
        return self._self_scheduling.value

    # --- who calls ----------------------------------------------------------------------------------------------------

    async def actor_of_run(self, run_id: int) -> Actor:
        """The agent that a run belongs to, with its lineage and where its reply goes."""
        heart = self._heartbeat.terms.agent

        def look(tx: Tx) -> Actor:
            run = tx.runs.lock([run_id]).get(run_id)
            if run is None:
                raise NotFound(f"there is no run {run_id}")
            name = queries.run(tx, run_id).slug
            if run.kind == "schedule":
                return _of_schedule(tx, run_id, name, run.schedule_id, run.definition)
            kept = json.loads(run.definition or "{}")
            if run.kind == "message":
                return Actor(str(kept["agent"]), run_id, name, 0, DeliverTo(str(kept["channel"]), str(kept["to"])))
            is_beat = run.kind == HEARTBEAT
            return Actor(heart, run_id, name, 0, DeliverTo("last") if is_beat else None, is_agent_run=is_beat)

        return await self._open.store.read(look)

    async def actor_of_agent(self, agent: str) -> Actor:
        """An agent that calls with its own token, from outside or from one of its runs: that cannot be told apart, so
        its deepest run in progress counts. Otherwise a chain of `wake_me` would never end."""

        def look(tx: Tx) -> int:
            runs = tx.runs.of_nodes([node.node_id for node in tx.nodes.all()], limit=RUNS_MAX)
            owners = tx.ownerships.by_ids([run.schedule_id for run in runs if run.outcome == "running"])
            return max((row.depth for row in owners.values() if row.owner == agent), default=0)

        return Actor(agent, depth=await self._open.store.read(look))

    async def agent_run_of_session(self, session: int) -> int | None:
        """The run of an agent, or of a command that an agent scheduled, whose program leads this process session on
        this machine."""
        host = socket.gethostname()

        def look(tx: Tx) -> list[tuple[int, bool]]:
            nodes = [node.node_id for node in tx.nodes.all() if node.host == host]
            runs = tx.runs.of_nodes(nodes, limit=RUNS_MAX) if nodes else []
            leading = [run for run in runs if run.outcome == "running" and _leads(run, session)]
            owners = tx.ownerships.by_ids([run.schedule_id for run in leading])
            return [(run.run_id, run.schedule_id in owners) for run in leading]

        for run_id, is_owned in await self._open.store.read(look):
            if is_owned or (await self.actor_of_run(run_id)).is_agent_run:
                return run_id
        return None

    # --- what agents do -----------------------------------------------------------------------------------------------

    def read_when(self, text: object, timezone: str | None = None, field: str = "when") -> Timing:
        """A `when` string, completed as of now."""
        now, zone = self._clock.read().now, self._open.conditions.default_zone
        timing = read_when(text, now=now, default_zone=zone, timezone=timezone, field=field)
        return resolve(timing, now=now, default_zone=zone)

    def times_after_now(self, timing: Timing) -> tuple[Instant, ...]:
        """The next five times of a timing that are not on excluded days."""
        return next_n(without_days(timing, self.terms.excluded_in(timing)), self._clock.read().now, TIMES_SHOWN)

    async def put_as_agent(
        self, actor: Actor, slug: object, definition: Any, *, note: str | None = None, kind: OwnedKind = "schedule"
    ) -> AgentWritten:
        """Write an agent's schedule, or propose it."""
        _refuse_command_run(actor)
        full = owned_slug(actor.agent, slug)
        checked = self._read_as_agent(actor, full, definition)
        given = {name for name, value in definition.items() if value is not None}
        return await self._put_as_agent(actor, checked, note=_note(note), kind=kind, given=given)

    async def _put_as_agent(
        self, actor: Actor, checked: Checked, *, note: str | None, kind: OwnedKind, given: Collection[str] = ()
    ) -> AgentWritten:
        terms, hooks = self._self_scheduling.value, self._open.hooks

        def write(tx: Tx, now: Instant) -> AgentWritten:
            ask = asking(terms.approvers, self._open.apply, terms=self.terms, now=now)
            done = owned.put(
                tx, actor, checked, kind=kind, note=note, given=given, terms=terms, hooks=hooks, ask=ask, now=now
            )
            return _read_back(tx, done, now, self.terms)

        written = await self._command(write)
        log.info("%s: %s %s (%s)", written.result, written.view.slug, f"by {actor.agent}", _from(actor))
        return written

    async def wake_me(self, actor: Actor, when: str, text: object) -> AgentWritten:
        """Schedule one turn of the calling agent, in the session it calls from."""
        if not isinstance(text, str) or not text.strip():
            refuse("text", "is empty; write the text you want to get at that time")
        timing = self.read_when(when)
        if not isinstance(timing, Once):
            refuse("after", f"'{when}' is not one point in time; write for example 20m, or use put_schedule")
        slug = owned_slug(actor.agent, f"wake-{secrets.token_hex(4)}")
        definition = {
            "schedule": timing_to_json(timing),
            "prompt": text,
            "agent": actor.agent,
            **_deliver_json(actor, self._delivers),
        }
        checked = self._read(slug, _bounded(definition), self._clock.read().now)
        return await self._put_as_agent(actor, self._with_end(checked), note=None, kind="wake")

    def _read_as_agent(self, actor: Actor, slug: str, definition: Any) -> Checked:
        if not isinstance(definition, Mapping):
            raise Invalid(FieldError("", "a definition is a JSON object; write {…}"))
        shown = {name: value for name, value in definition.items() if name not in _IGNORED}
        unknown = [name for name in shown if name not in ALLOWED]
        errors = [FieldError(str(name)[:80], _NOT_YOURS) for name in unknown]
        if shown.get("agent") not in (None, actor.agent) and "prompt" in shown:
            errors.append(
                FieldError("agent", f"an agent can only schedule its own turns; leave it out, or write {actor.agent!r}")
            )
        command = shown.get("command")
        if isinstance(command, Mapping) and set(command) - {"argv"}:
            errors.append(FieldError("command", "an agent may give argv only; leave the rest out"))
        session = shown.get("sessionConfig")
        if isinstance(session, Mapping) and set(session) - {"persistSession"}:
            errors.append(FieldError("sessionConfig", "an agent may set persistSession only; leave the rest out"))
        exclude = shown.get("exclude")
        if isinstance(exclude, Mapping) and set(exclude) - {"dates", "timezone"}:
            errors.append(FieldError("exclude", "an agent may give dates, but cannot name files; leave the rest out"))
        if errors:
            raise Invalid(*errors)
        written = {**shown, "slug": slug}
        if "prompt" in written:
            written["agent"] = actor.agent
            if written.get("deliver") is None:
                written |= _deliver_json(actor, self._delivers)
        return self._with_end(self._read(slug, _bounded(written), self._clock.read().now))

    def _with_end(self, checked: Checked) -> Checked:
        """The definition with an end: every schedule of an agent ends."""
        if checked.definition.expires_at is not None:
            return checked
        ends = self._clock.read().now + self._self_scheduling.value.expires
        return checked._replace(definition=ending(checked.definition, ends))

    @property
    def _delivers(self) -> bool:
        return Deliver in self._open.applied

    async def list_as_agent(self, actor: Actor, contains: str | None = None) -> list[ScheduleView]:
        """What an agent owns: schedules, including finished ones, and proposals, including changes to schedules."""
        _refuse_command_run(actor)
        now = self._clock.read().now

        def look(tx: Tx) -> list[ScheduleView]:
            schedules: list[Schedule] = owned.owned(tx, actor.agent, is_live=False)
            views = [queries.get(tx, schedule.slug, now=now, terms=self.terms) for schedule in schedules]
            views += [view_proposal(row) for row in tx.proposals.pending(now=now, owner=actor.agent)]
            return sorted(views, key=lambda view: (view.slug, view.approval == "pending"))

        views = await self._open.store.read(look)
        wanted = (contains or "").casefold()
        return [view for view in views if wanted in f"{view.slug} {view.stored}".casefold()]

    async def owned_by_agents(self, slugs: Collection[str]) -> frozenset[str]:
        """Those of the slugs that belong to agents."""

        def look(tx: Tx) -> frozenset[str]:
            schedules = tx.schedules.by_slugs(sorted(slugs))
            owners = tx.ownerships.by_ids(schedule.schedule_id for schedule in schedules.values())
            return frozenset(slug for slug, schedule in schedules.items() if schedule.schedule_id in owners)

        return await self._open.store.read(look)

    async def get_as_agent(self, actor: Actor, slug: object) -> ScheduleView:
        """One of an agent's schedules or proposals."""
        _refuse_command_run(actor)
        full, now = owned_slug(actor.agent, slug), self._clock.read().now

        def look(tx: Tx) -> ScheduleView:
            if owned.find(tx, actor.agent, full) is not None:
                return queries.get(tx, full, now=now, terms=self.terms)
            proposal = owned.pending_of(tx, actor.agent, full, now)
            if proposal is None:
                raise owned.missing(full)
            return view_proposal(proposal)

        return await self._open.store.read(look)

    async def pause_as_agent(self, actor: Actor, slug: object) -> ScheduleView:
        """Pause one of the agent's schedules."""
        _refuse_command_run(actor)
        full, hooks = owned_slug(actor.agent, slug), self._open.hooks
        await self._command(lambda tx, now: owned.pause(tx, actor.agent, full, hooks=hooks, now=now))
        return await self.get_as_agent(actor, full)

    async def resume_as_agent(self, actor: Actor, slug: object) -> ScheduleView:
        """Resume one of the agent's schedules that no person stopped."""
        _refuse_command_run(actor)
        full = owned_slug(actor.agent, slug)
        await self._command(lambda tx, now: owned.resume(tx, actor.agent, full, now=now))
        return await self.get_as_agent(actor, full)

    async def remove_as_agent(self, actor: Actor, slug: object) -> str:
        """Remove one of the agent's schedules, or withdraw a proposal; returns the full slug."""
        _refuse_command_run(actor)
        full, hooks = owned_slug(actor.agent, slug), self._open.hooks
        await self._command(lambda tx, now: owned.remove(tx, actor.agent, full, hooks=hooks, now=now))
        return full

    async def remove(self, slug: str, *, guard: Guard | None = None) -> None:
        """Remove a schedule; an agent's proposal for this slug is rejected."""
        try:
            await super().remove(slug, guard=guard)
        except NotFound:
            now = self._clock.read().now
            proposal = await self._open.store.read(lambda tx: queries.proposed(tx, slug, now=now))
            if proposal is None:
                raise
            await self.decide(proposal.proposal_id, "reject", by="removed")

    # --- what people decide -------------------------------------------------------------------------------------------

    async def proposals(self) -> list[dict[str, Any]]:
        """The proposals that wait for a person, in slug order."""
        now = self._clock.read().now

        def look(tx: Tx) -> list[dict[str, Any]]:
            return [
                approvals.proposal_json(
                    row,
                    approvals.base_of(tx, row),
                    terms=self.terms,
                    now=now,
                    estimate=approvals.estimate_of(tx, row, terms=self.terms, now=now),
                )
                for row in tx.proposals.pending(now=now)
            ]

        return await self._open.store.read(look)

    async def decide(self, proposal_id: str, decision: Decision, *, by: str) -> dict[str, Any]:
        """Approve or reject a proposal."""
        conditions, hooks = self._open.conditions, self._open.hooks

        def write(tx: Tx, now: Instant) -> dict[str, Any]:
            proposal = approvals.proposal_by_id(tx, proposal_id)
            done = approvals.decide(tx, proposal, decision, by=by, conditions=conditions, hooks=hooks, now=now)
            return approvals.proposal_json(done.proposal, done.before, terms=self.terms, now=now) | {
                "missed": done.is_missed
            }

        try:
            decided = await self._command(write)
        except (Conflict, NotFound, Invalid) as refused:
            log.warning("%s of %s by %s refused: %s", decision, proposal_id[:40], by, refused)
            raise
        log.info("%s %s by %s: %s", decision, proposal_id, by, decided["slug"])
        return decided

    def apply_chat_decision(self, tx: Tx, answer: ChatDecision, now: Instant) -> None:
        """Handle `approve CODE` from a chat; the sender is always told the result."""
        who = f"{answer.channel}:{answer.sender}"
        conditions, hooks = self._open.conditions, self._open.hooks
        try:
            if who not in self._self_scheduling.value.approvers:
                raise Conflict(f"{who} is not among the approvers; add it to [alerts] approvers in wakeful.toml")
            guessing.refuse_after_many(tx, who, now=now)
            proposal = approvals.proposal_by_code(tx, answer.code, now=now)
            done = approvals.decide(tx, proposal, answer.decision, by=who, conditions=conditions, hooks=hooks, now=now)
            said = f"{done.proposal.slug} was {done.proposal.status}."
            if done.is_missed:
                said += " Its time has passed, so it will not run."
            log.info("%s %s by %s: %s", answer.decision, done.proposal.proposal_id, who, done.proposal.slug)
        except approvals.WrongCode as wrong:
            locked = guessing.count_wrong(tx, who, now=now)
            log.warning("%s by chat from %s refused: %s%s", answer.decision, who, wrong, locked)
            said = f"Nothing was changed: {wrong}{locked}"
        except (Conflict, NotFound, Invalid) as refused:
            log.warning("%s by chat from %s refused: %s", answer.decision, who, refused)
            said = f"Nothing was changed: {refused}"
        self._open.apply(tx, Deliver(said, answer.channel, answer.to, is_note=True), now)


_NOT_YOURS: Final = f"an agent may not set it; leave it out. It may set {', '.join(ALLOWED[1:])}"
_IGNORED: Final = frozenset({
    "status", "statusReason", "lastRun", "lastResult", "lastError", "sessionId", "nextRun", "consecutiveErrors",
    "createdAt", "updatedAt", "version", "next", "description", "health", "lastOutcome", "owner", "lineage", "approval",
})  # fmt: skip


def _refuse_command_run(actor: Actor) -> None:
    if not actor.is_agent_run:
        raise Conflict("a command's run may only report its result, wake the heartbeat, and call wake_me")


def _of_schedule(tx: Tx, run_id: int, slug: str, schedule_id: int, copy: str | None) -> Actor:
    schedule = tx.schedules.by_ids([schedule_id]).get(schedule_id)
    text = copy or (None if schedule is None else schedule.definition)
    definition: Definition | None = None if text is None else decode_definition(text)
    ownership = tx.ownerships.by_ids([schedule_id]).get(schedule_id)
    depth = 0 if ownership is None else ownership.depth
    action = None if definition is None else definition.action
    deliver = None if definition is None else definition.deliver
    if isinstance(action, Prompt):
        return Actor(action.agent, run_id, slug, depth, deliver)
    agent = "default" if ownership is None else ownership.owner
    return Actor(agent, run_id, slug, depth, deliver, is_agent_run=False)


def _leads(run: Run, session: int) -> bool:
    """Whether the run's own process leads this session: each process is started in a separate session."""
    process = json.loads(run.process) if run.process else {}
    return isinstance(process, dict) and process.get("pid") == session


def _deliver_json(actor: Actor, is_possible: bool) -> dict[str, Any]:
    """Where a scheduled turn's reply goes: the same place as the calling turn's, else the last channel."""
    if not is_possible:
        return {}
    if actor.reply_to is None:
        return {} if actor.run_id is not None else {"deliver": {"channel": "last"}}
    recipients = actor.reply_to if isinstance(actor.reply_to, tuple) else (actor.reply_to,)
    written = [
        {"channel": recipient.channel, **({} if recipient.to is None else {"to": recipient.to})}
        for recipient in recipients
    ]
    return {"deliver": written if len(written) > 1 else written[0]}


def _bounded(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse text that is too long for a person to read before they approve."""
    if isinstance(definition.get("prompt"), str) and len(definition["prompt"]) > TEXT_MAX:
        refuse("prompt", f"has {len(definition['prompt'])} characters; write at most {TEXT_MAX}")
    return definition


def _note(note: object) -> str | None:
    if note is None or note == "":
        return None
    if not isinstance(note, str) or len(note) > 1_000 or "\0" in note:
        refuse("note", "is not a short text; write at most 1000 characters")
    return note


def _read_back(tx: Tx, done: Written, now: Instant, terms: Terms) -> AgentWritten:
    view = queries.get(tx, done.slug, now=now, terms=terms) if done.proposal is None else view_proposal(done.proposal)
    definition = decode_definition(view.stored)
    times = next_n(terms.starting(definition.timing, definition), now, TIMES_SHOWN)
    return AgentWritten(done.result, view, done.proposal, done.is_copy, times, definition.timing)


def _from(actor: Actor) -> str:
    return "with its token" if actor.run_id is None else f"during run {actor.run_id}"
