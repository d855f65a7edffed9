"""Random lives of agents and people on a virtual clock; after each step the laws of self-scheduling hold.

1. Nothing an agent owns runs before a person approved it, if it had to be approved.
2. No agent has more schedules, counted with its proposals, than `schedules_max`.
3. Nothing is deeper than `depth_max`, and no agent wakes itself more often than `wakes_per_day`.
4. There is at most one proposal for a slug, and a slug has one owner.
5. Everything an agent owns ends.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from wakeful import Wakeful, every
from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.time.instants import DAY
from wakeful.core.time.timing import Once
from wakeful.features.schedules.owned import Actor
from wakeful.integrations.actions.fire import FireView as Fire
from wakeful.ports.store import Tx
from wakeful.testing import virtual

TERMS = {
    "always": SelfSchedulingTerms(schedules_max=3, depth_max=2, wakes_per_day=4),
    "recurring": SelfSchedulingTerms("recurring", schedules_max=3, depth_max=1, wakes_per_day=4, expires=3 * DAY),
    "never": SelfSchedulingTerms("never", schedules_max=2, depth_max=2, wakes_per_day=3, expires=2 * DAY),
}
AGENTS = ("coder", "other")
SLUGS = ("a", "b", "c", "d", "coder.a", "root")
WHENS = ("every 2h", "every 3h", "in 90m", "daily at 9:00", "every 5m", "20m", "tomorrow at 7:00")
STEPS = 40


class Life:
    """One random life."""

    def __init__(self, app: Wakeful, chance: random.Random, terms: SelfSchedulingTerms) -> None:
        self.app, self.chance, self.terms = app, chance, terms
        self.approved: set[str] = set()
        self.passed: set[str] = set()  # what needed no approval

    async def ask(self, actor: Actor) -> None:
        """One thing that an agent tries; a refusal is fine."""
        slug, when = self.chance.choice(SLUGS), self.chance.choice(WHENS)
        try:
            match self.chance.randrange(6):
                case 0 | 1 | 2:
                    body = {"schedule": when, "prompt": f"do {self.chance.randrange(4)}"}
                    written = await self.app.put_as_agent(actor, slug, body)
                case 3:
                    written = await self.app.wake_me(actor, "in 40m", f"wake {self.chance.randrange(99)}")
                case 4:
                    change = self.chance.choice((self.app.pause_as_agent, self.app.resume_as_agent))
                    await change(actor, slug)
                    return
                case _:
                    await self.app.remove_as_agent(actor, slug)
                    return
        except (Conflict, NotFound, Invalid):
            return
        if written.result in ("created", "updated"):
            is_wake, is_once = ".wake-" in written.view.slug, isinstance(written.timing, Once)
            is_first_link = is_wake and (actor.depth == 0 or self.terms.approval == "recurring")
            may_pass = {"always": False, "recurring": is_once, "never": True}[self.terms.approval]
            assert may_pass or is_first_link, written
            self.passed.add(written.view.slug)

    async def step(self, time: Any) -> None:
        match self.chance.randrange(8):
            case 0 | 1 | 2:
                await self.ask(Actor(self.chance.choice(AGENTS)))
            case 3 | 4:
                await time.advance(self.chance.choice(("30m", "2h", "1d")))
            case 5:
                await self.decide()
            case 6:
                for view in await self.app.list():
                    if view.owner and self.chance.random() < 0.3 and view.status == "idle":
                        await self.app.pause(view.slug)
            case _:
                for proposal in (await self.app.proposals())[:1]:
                    with pytest.raises((Conflict, NotFound)):
                        await self.app.decide(proposal["id"] + "0", "approve", by="agent")

    async def decide(self) -> None:
        for proposal in await self.app.proposals():
            decision = self.chance.choice(("approve", "reject"))
            try:
                await self.app.decide(proposal["id"], decision, by="cli")
            except (Conflict, Invalid):
                continue
            if decision == "approve":
                self.approved.add(proposal["slug"])

    async def check(self) -> None:
        now = self.app.moment().now

        def look(tx: Tx) -> tuple[Any, ...]:
            rows = {row.schedule_id: row for agent in AGENTS for row in tx.ownerships.of_owner(agent)}
            return rows, tx.schedules.by_ids(rows), tx.cadences.lock(sorted(rows)), tx.proposals.pending(now=now)

        rows, schedules, cadences, proposals = await self.app.store.read(look)
        slugs = {schedules[key].slug for key in rows}
        ran = {run.slug for run in await self.app.runs(limit=1_000) if run.outcome not in ("missed", "skipped")}
        assert {slug for slug in ran if slug.startswith(AGENTS)} <= self.approved | self.passed
        assert slugs <= self.approved | self.passed
        for agent in AGENTS:
            live = [
                key
                for key, row in rows.items()
                if row.owner == agent and row.kind == "schedule" and cadences[key].state != "done"
            ]
            new = [
                one for one in proposals if one.owner == agent and one.kind == "schedule" and one.schedule_id is None
            ]
            assert len(live) + len(new) <= self.terms.schedules_max
            made = await self.app.store.read(lambda tx, agent=agent: tx.ownerships.made_since(agent, now - DAY))
            assert len([row for row in made if row.kind == "wake"]) <= self.terms.wakes_per_day
        assert all(row.depth <= self.terms.depth_max for row in (*rows.values(), *proposals))
        assert len({one.slug for one in proposals}) == len(proposals)
        assert all(schedules[key].slug.startswith(f"{row.owner}.") for key, row in rows.items())
        for view in await self.app.list():
            assert view.owner is None or (view.definition is not None and view.definition.expires_at is not None)


@pytest.mark.parametrize("approval", TERMS)
@pytest.mark.parametrize("seed", range(2))
async def test_the_laws_hold_in_random_lives(tmp_path: Path, approval: str, seed: int) -> None:
    chance = random.Random(f"{approval}-{seed}")
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC", self_scheduling=TERMS[approval])
    life = Life(app, chance, TERMS[approval])

    async def turn(fire: Fire, prompt: str) -> str:
        await life.ask(await app.actor_of_run(fire.run_id))
        return "done"

    for name in AGENTS:
        app.agent(name)(turn)
    async with virtual(app, start="2026-11-16T12:00Z") as time:
        await app.add("root", every("4h"), prompt="schedule yourself", agent="coder")
        for _ in range(STEPS):
            await life.step(time)
            await life.check()
