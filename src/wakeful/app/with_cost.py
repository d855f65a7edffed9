"""What schedules cost, and runs of them may cost."""

from collections.abc import Mapping
from dataclasses import replace

from wakeful.core.money.prices import dollars
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition_json import decode_definition
from wakeful.core.time.instants import Instant
from wakeful.features.money.queries import cost_of_schedule, expected_cost
from wakeful.features.money.terms import MoneyTerms
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.views import ScheduleView
from wakeful.ports.store import Tx


def with_cost(tx: Tx, view: ScheduleView, *, terms: Terms, money: MoneyTerms, now: Instant) -> ScheduleView:
    """The view with its whole cost, if it has a prompt."""
    definition = view.definition
    if definition is None or not isinstance(definition.action, Prompt):
        return view
    schedule = tx.schedules.by_slugs([view.slug]).get(view.slug)
    timing = terms.starting(definition.timing, definition)
    cost = cost_of_schedule(tx, money, None if schedule is None else schedule.schedule_id, definition, timing, now=now)
    return replace(view, cost=cost)


def estimated_cost(tx: Tx, by_slug: Mapping[str, int], money: MoneyTerms, *, now: Instant) -> float | None:
    """The estimated cost of this many runs of these schedules, in US dollars; None: unknown.

    Each costs the mean of the last known costs of its schedule, else of its agent. Only prompts cost something."""
    total = 0.0
    for slug, schedule in tx.schedules.by_slugs(sorted(by_slug)).items():
        each = expected_cost(tx, money, schedule.schedule_id, decode_definition(schedule.definition), now=now)
        if each is None:
            return None
        total += each * by_slug[slug]
    return dollars(round(total))
