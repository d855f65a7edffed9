"""Agents that schedule themselves as an inhabitant: they propose, change, remove and wake themselves, from outside with
their token and from inside their runs; people approve, reject, stop and remove.

Everything goes through `features.schedules.owned` and `approvals`, where every way in ends. The witness remembers what
people decided, and holds what is planned for an agent against it.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from wakeful.app.bootstrap import FeatureContext, Parts
from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.results import Result
from wakeful.core.run.runs import Run, RungName
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition import Definition, ending
from wakeful.core.schedule.definition_json import decode_definition, definition_from_json
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.self_scheduling.proposals import Decision, OwnedKind, Ownership
from wakeful.core.self_scheduling.slugs import owned_slug
from wakeful.core.time.instants import DAY, HOUR, Duration, Instant, format_duration, format_instant, parse_duration
from wakeful.features.schedules import approvals, commands, owned, owned_stops
from wakeful.features.schedules.calling_runs import actor_of
from wakeful.features.schedules.checks import Checked, check
from wakeful.features.schedules.owned import Actor
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.ports.action import Action, Fire, Ladder
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import Tx
from worlds import scheduling_laws as laws
from worlds.inhabitants import Act, Boot, Surroundings, Touch, draw_times
from worlds.system import ZONE, Shipped

NAME: Final = "agents"
AGENTS: Final = ("ada", "bob")
NAMES: Final = ("a", "b", "c", "d")
PROPOSAL, OWNERSHIP = "proposal", "ownership"
REFUSED: Final = (Conflict, NotFound, Invalid)
REMEMBERED: Final[Duration] = 80 * DAY


def roots() -> list[str]:
    """The schedules of people that ask each agent."""
    return [f"root-{agent}" for agent in AGENTS]


class Turns:
    """Prompts on one boot. A turn of ours may schedule something; others are taken as they were."""

    is_local = False

    def __init__(self, agents: "Agents", boot: Boot, requests: Action, others: Action | None) -> None:
        self._agents = agents
        self._boot = boot
        self._requests = requests
        self._others = others

    def proves(self, spec: Prompt) -> RungName:
        return "finished"

    def check(self, spec: Prompt) -> str | None:
        return None

    async def perform(self, spec: Prompt, fire: Fire, ladder: Ladder) -> Result:
        if not fire.slug.startswith((*(f"{agent}." for agent in AGENTS), "root-")):
            return await (self._others or self._requests).perform(spec, fire, ladder)
        tenant = self._agents.tenants.get(self._boot.name)
        if tenant is not None and self._agents.rng.random() < 0.6:
            await tenant.turn(fire)
        return await self._requests.perform(spec, fire, ladder)

    async def close(self) -> None:
        """Nothing is held."""


class Agents:
    """The agents of a world, and the people they belong to."""

    name = NAME
    touches: Sequence[Touch] = (
        Touch("proposals", PROPOSAL, "asked_at"),
        Touch("ownerships", OWNERSHIP, "schedule_id"),
    )

    def __init__(self, rng: random.Random, world: Surroundings, *, days: float, per_day: float, pace: Duration) -> None:
        self.rng = rng
        self._world = world
        self._days = days
        self._per_day = per_day
        self._pace = max(HOUR, pace)
        self.terms = SelfSchedulingTerms(
            rng.choice(("always", "recurring", "never")), schedules_max=3, interval_min=HOUR,
            expires=rng.choice((2 * DAY, 20 * DAY)), depth_max=rng.choice((1, 2, 3)), wakes_per_day=4,
        )  # fmt: skip
        self.tenants: dict[str, AgentsTenant] = {}
        self._decided: set[str] = set()  # proposals that a person was about to approve
        self._agreed: dict[str, dict[str, Definition]] = {}  # by slug: what they approved, by proposal
        self._removed: dict[str, tuple[int, Instant]] = {}  # by slug: true time and wall
        self._known: dict[int, int] = {}  # how deep each schedule of an agent was at first
        self._ran: set[int] = set()
        self._said = {"proposals": 0, "agents' schedules": 0, "turns of agents that schedule": 0}

    def move_in(self, boot: Boot) -> "AgentsTenant":
        self.tenants[boot.name] = tenant = AgentsTenant(self, boot)
        return tenant

    def actions(self, boot: Boot, requests: Action) -> Mapping[type[Any], Action]:
        return {}

    def wrap(self, boot: Boot, actions: Mapping[type[Any], Action], requests: Action) -> Mapping[type[Any], Action]:
        """The actions of a boot with our turns among them."""
        return {Prompt: Turns(self, boot, requests, actions.get(Prompt))}

    def draw_acts(self, near: Sequence[int]) -> list[Act]:
        acts = [Act(2_000 + index, NAME, f"root {index}", 0.0) for index in range(len(AGENTS))]
        for at in draw_times(self.rng, per_day=max(self._per_day, 0.5), days=self._days, near=near):
            (what,) = self.rng.choices(("agent", "approve", "reject", "pause", "resume", "remove"), (8, 4, 1, 1, 1, 2))
            acts.append(Act(at, NAME, what, self.rng.random()))
        return acts

    def figures(self) -> Mapping[str, int]:
        return self._said

    def count(self, what: str) -> None:
        self._said[what] += 1

    # -- what people do -----------------------------------------------------------------------------------------------

    def will_approve(self, proposal_id: str) -> None:
        self._decided.add(proposal_id)

    def was_removed(self, slug: str) -> None:
        self._removed[slug] = (self._world.loop.now_ms, self._world.wall.read())

    def report(self, found: Iterator[str]) -> None:
        self._world.report(list(found))

    def attend(self, slug: str) -> None:
        """Somebody changes, pauses or resumes it: what was wrong with it before is no longer owed to anyone."""
        self._world.attended_at[slug] = self._world.loop.now_ms

    def say(self, text: str) -> None:
        self._world.say(lambda: text)

    # -- what the store says ------------------------------------------------------------------------------------------

    def look(
        self, touched: Mapping[str, frozenset[int]], runs: Mapping[int, Run], *, now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        is_run = any(run.kind == "schedule" and run.schedule_id in self._known for run in runs.values())
        if not is_run and PROPOSAL not in touched and OWNERSHIP not in touched:
            return
        tx = self._world.seen_tx
        for agent in AGENTS:
            yield from self._judge(tx, agent, now)
        yield from laws.is_asked_once(tx[AgentProposals].pending(now=now))
        self._ran |= {run.run_id for run in runs.values() if run.schedule_id in self._known and run.attempt}

    def _judge(self, tx: Tx, agent: str, now: Instant) -> Iterator[str]:
        rows = {row.schedule_id: row for row in tx[Ownerships].of_owner(agent)}
        schedules, cadences = tx.schedules.by_ids(rows), tx.cadences.lock(sorted(rows))
        waiting = tx[AgentProposals].pending(now=now, owner=agent)
        live = {key for key, row in rows.items() if row.kind == "schedule" and cadences[key].state != "done"}
        new = [one for one in waiting if one.kind == "schedule" and one.schedule_id not in live]
        if self._world.stepped_at < 0:  # a clock that goes back brings back proposals that had expired
            yield from laws.are_few(agent, len(live), len(new), self.terms)
            yield from laws.wakes_are_few(agent, tx[Ownerships].made_since(agent, now - DAY), self.terms, now)
        for key, row in rows.items():
            slug, definition = schedules[key].slug, decode_definition(schedules[key].definition)
            yield from laws.is_in_its_namespace(slug, agent)
            yield from laws.ends(slug, definition)
            yield from laws.is_approved(slug, row, definition, self._approved(tx, slug), self.terms)
            if key not in self._known:
                yield from self._judge_birth(tx, slug, row, now)
                self._known[key] = row.depth
            yield from laws.is_not_deep(slug, row.depth, None, self.terms)
        for proposal in waiting:
            yield from laws.is_not_deep(proposal.slug, proposal.depth, None, self.terms)

    def _judge_birth(self, tx: Tx, slug: str, row: Ownership, now: Instant) -> Iterator[str]:
        removed = self._removed.get(slug)
        is_kept = removed is not None and self._world.stepped_at < removed[0] and now - removed[1] < REMEMBERED
        is_wanted = removed is not None and any(
            one.status == "approved" and (one.decided_at or 0) >= removed[1]
            for one in tx[AgentProposals].of_slug(slug, limit=50)
        )
        yield from laws.is_not_back(slug, row, removed[1] if removed and is_kept and not is_wanted else None)
        parent = None if row.run_id is None else tx.runs.lock([row.run_id]).get(row.run_id)
        depth = None if parent is None else self._known.get(parent.schedule_id)
        yield from laws.is_not_deep(slug, row.depth, depth, self.terms)
        self.count("agents' schedules")

    def _approved(self, tx: Tx, slug: str) -> list[Definition]:
        """What people approved under a slug. It is remembered: a clock that is far ahead forgets proposals."""
        known = self._agreed.setdefault(slug, {})
        for one in tx[AgentProposals].of_slug(slug, limit=50):
            if one.status == "approved" and one.proposal_id in self._decided:
                known[one.proposal_id] = decode_definition(one.definition)
        return list(known.values())

    def ticked(self, *, now: Instant, is_asleep: bool, ahead_max: Duration) -> Iterator[str]:
        yield from ()

    def last_look(self) -> Iterator[str]:
        yield from ()


class AgentsTenant:
    """Agents and people at one boot."""

    def __init__(self, agents: Agents, boot: Boot) -> None:
        self._agents = agents
        self._boot = boot
        self._system: Shipped | None = None

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        return FeatureHooks()

    def arrive(self, system: Shipped) -> None:
        self._system = system

    @property
    def _parts(self) -> Parts:
        assert self._system is not None
        return self._system.parts

    async def turn(self, fire: Fire) -> None:
        """An agent does something during its run."""

        def look(tx: Tx) -> Actor:
            run = tx.runs.lock([fire.run_id])[fire.run_id]
            return actor_of(tx, run, self._parts.hooks.keepers, default="default")

        actor = await self._parts.store.read(look)
        self._agents.count("turns of agents that schedule")
        await self._try(actor)

    async def act(self, act: Act) -> None:
        match act.what.split():
            case ["root", index]:
                agent = AGENTS[int(index)]
                written = {"schedule": {"type": "every", "every": format_duration(2 * self._agents._pace)}}
                await self._system_put(f"root-{agent}", {**written, "prompt": "schedule yourself", "agent": agent})
            case ["agent"]:
                await self._try(Actor(AGENTS[int(act.draw * 997) % 2]))
            case ["approve" | "reject" as decision]:
                await self._decide(decision, act.draw)
            case [what]:
                await self._stop(what, act.draw)

    async def _system_put(self, slug: str, written: Mapping[str, Any]) -> None:
        parts, now = self._parts, self._parts.clock.read().now
        checked = check(definition_from_json(written, default_zone=ZONE, slug=slug), parts.conditions, now=now)
        await parts.store.write(lambda tx: commands.put_many(tx, [checked], hooks=parts.hooks, now=now))
        parts.engine.ring_bell()

    # -- agents -------------------------------------------------------------------------------------------------------

    async def _try(self, actor: Actor) -> None:
        """One thing that an agent tries, on its own names, those of others and those of people; a refusal is fine."""
        rng, now = self._agents.rng, self._parts.clock.read().now
        name = rng.choice((*NAMES, "ada.a", "bob.b", "root-ada", "s1"))
        what = rng.choice(("put", "put", "put", "wake", "pause", "resume", "remove"))
        try:
            slug = owned_slug(actor.agent, name)
            self._agents.attend(slug)
            await self._write(actor, what, self._command(actor, what, slug, now))
            self._agents.attend(slug)
        except REFUSED as refused:
            self._agents.say(f"{self._boot.name}: {actor.agent}: {what} {name} is refused: {refused}")

    def _command(self, actor: Actor, what: str, slug: str, now: Instant) -> Callable[[Tx], object]:
        hooks, agent, rng = self._parts.hooks, actor.agent, self._agents.rng
        match what:
            case "put":
                when = rng.choice(("2h", "3h", "1d", "10m"))
                timing = {"type": "every", "every": when}
                if rng.random() < 0.4:
                    timing = {"type": "once", "in": rng.choice(("2m", "90m", "1d"))}
                text = rng.choice(("look at the build", "water all the plants", "count the sheep again"))
                return self._put(actor, slug, {"schedule": timing, "prompt": text, "agent": agent}, "schedule", now)
            case "wake":
                number = rng.randrange(10**6)
                slug = owned_slug(agent, f"wake-{number:x}")
                written = {"schedule": {"type": "once", "in": rng.choice(("1m", "40m"))}, "prompt": f"wake {number}"}
                return self._put(actor, slug, {**written, "agent": agent}, "wake", now)
            case "pause":
                return lambda tx: owned.pause(tx, agent, slug, hooks=hooks, now=now)
            case "resume":
                return lambda tx: owned.resume(tx, agent, slug, now=now)
            case _:
                return lambda tx: owned.remove(tx, agent, slug, hooks=hooks, now=now)

    def _put(
        self, actor: Actor, slug: str, written: dict[str, Any], kind: OwnedKind, now: Instant
    ) -> Callable[[Tx], object]:
        parts, terms = self._parts, self._agents.terms
        timing = written["schedule"]
        if "in" in timing:
            written = {
                **written,
                "schedule": {"type": "once", "at": format_instant(now + parse_duration(timing["in"]))},
            }
        definition = definition_from_json(written, default_zone=ZONE, slug=slug)
        checked: Checked = check(ending(definition, now + terms.expires), parts.conditions, now=now)

        def put(tx: Tx) -> object:
            return owned.put(
                tx, actor, checked, kind=kind, note=None, given=("schedule", "prompt"), terms=terms,
                hooks=parts.hooks, ask=lambda *_: None, now=now,
            )  # fmt: skip

        return put

    async def _write(self, actor: Actor, what: str, command: Callable[[Tx], object]) -> None:
        """Do it, and see in the same transaction that nothing else was touched."""

        def watched(tx: Tx) -> tuple[object, list[str]]:
            before = _others(tx, actor.agent)
            done = command(tx)
            return done, list(laws.leaves_others_alone(actor.agent, what, before, _others(tx, actor.agent)))

        done, found = await self._parts.store.write(watched)
        self._parts.engine.ring_bell()
        self._agents.report(iter(found))
        if getattr(done, "result", None) == "pending":
            self._agents.count("proposals")
        self._agents.say(f"{self._boot.name}: {actor.agent} ({actor.run_id}): {what}: {done}")

    # -- people -------------------------------------------------------------------------------------------------------

    async def _decide(self, decision: Decision, draw: float) -> None:
        parts, now = self._parts, self._parts.clock.read().now
        pending = await parts.store.read(lambda tx: tx[AgentProposals].pending(now=now))
        if not pending:
            return
        proposal = pending[int(draw * 997) % len(pending)]
        if decision == "approve":
            self._agents.will_approve(proposal.proposal_id)
        self._agents.say(f"{self._boot.name}: a person: {decision} {proposal.slug}")
        self._agents.attend(proposal.slug)
        await parts.store.write(
            lambda tx: approvals.decide(
                tx,
                approvals.proposal_by_id(tx, proposal.proposal_id),
                decision,
                by="cli",
                conditions=parts.conditions,
                hooks=parts.hooks,
                now=now,
            )
        )
        parts.engine.ring_bell()

    async def _stop(self, what: str, draw: float) -> None:
        """A person pauses, resumes or removes something that an agent has."""
        parts, now = self._parts, self._parts.clock.read().now

        def look(tx: Tx) -> list[str]:
            rows = [row.schedule_id for agent in AGENTS for row in tx[Ownerships].of_owner(agent)]
            found = tx.schedules.by_ids(rows)
            states = tx.cadences.lock(sorted(rows))
            return sorted(one.slug for key, one in found.items() if states[key].state != "done")

        slugs = await parts.store.read(look)
        if not slugs:
            return
        slug = slugs[int(draw * 997) % len(slugs)]
        self._agents.say(f"{self._boot.name}: a person: {what} {slug}")
        self._agents.attend(slug)
        if what == "pause":
            await self._do(lambda tx: commands.pause(tx, slug, hooks=parts.hooks, now=now))
        elif what == "resume":
            await self._do(lambda tx: commands.resume_schedule(tx, slug, now=now))
        elif await self._do(lambda tx: _remove(tx, slug, parts, now)):
            self._agents.was_removed(slug)

    async def _do(self, command: Callable[[Tx], Any]) -> Any:
        done = await self._parts.store.write(command)
        self._parts.engine.ring_bell()
        return done


def _remove(tx: Tx, slug: str, parts: Parts, now: Instant) -> bool:
    """As a person does; returns whether it was not over."""
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    is_over = schedule is None or tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id].state == "done"
    owned_stops.remember_removal(tx, slug, now=now)
    commands.remove(tx, slug, hooks=parts.hooks, now=now)
    return not is_over


def _others(tx: Tx, agent: str) -> dict[str, object]:
    """Everything that this agent does not own: definitions, and whether they are on."""
    slugs = [*roots(), *(f"s{number}" for number in range(1, 40))]
    slugs += [
        f"{other}.{name}" for other in AGENTS if other != agent for name in (*NAMES, "ada.a", "bob.b", "root-ada")
    ]
    found = tx.schedules.by_slugs(slugs)
    states = tx.cadences.lock(sorted(one.schedule_id for one in found.values()))
    return {slug: (one.version, one.definition, states[one.schedule_id].state) for slug, one in found.items()}
