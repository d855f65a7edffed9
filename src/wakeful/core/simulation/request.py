"""What to simulate: a period, changed definitions, and faults."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Annotated, Any, Final, NamedTuple

from wakeful.core.fields import Fields, check_plain, shown
from wakeful.core.returned import At, Named, returned
from wakeful.core.time.instants import DAY, Duration, Instant, format_instant, parse_instant

DAYS: Final = 7
DAYS_MAX: Final = 366
ROWS_MAX: Final = 200_000
DRAFTS_MAX: Final = 1_000
SPANS_MAX: Final = 100
SEED_MAX: Final = 2**53

KNOWN: Final = (
    "days", "from", "until", "with", "without", "outages", "failing", "slow", "quota", "budgets", "seed",
)  # fmt: skip


class Span(NamedTuple):
    """A period of time."""

    starts_at: Annotated[At, Named("from")]
    ends_at: Annotated[At, Named("until")]  # which is not part of it


class UsedUpSlot(NamedTuple):
    """A slot's quota is used up."""

    starts_at: Annotated[At, Named("from")]
    ends_at: Annotated[At, Named("until")]
    slot: str


class UsedUpBudget(NamedTuple):
    """A budget is used up."""

    starts_at: Annotated[At, Named("from")]
    ends_at: Annotated[At, Named("until")]
    scope: Annotated[str, "all, agent:NAME or schedule:SLUG"] = "all"


PERIOD: Final = returned(Span, name="Period")
USED_UP_SLOT: Final = returned(UsedUpSlot)
USED_UP_BUDGET: Final = returned(UsedUpBudget)


class Troubles(NamedTuple):
    """The faults in a simulation."""

    without: tuple[str, ...] = ()
    outages: tuple[Span, ...] = ()
    failing: Mapping[str, float] = {}
    slow: Mapping[str, Duration] = {}
    quota: tuple[UsedUpSlot, ...] = ()
    budgets: tuple[UsedUpBudget, ...] = ()


class SimulationRequest(NamedTuple):
    """What to simulate."""

    starts_at: Instant
    ends_at: Instant
    seed: int
    troubles: Troubles
    drafts: tuple[Mapping[str, Any], ...] = ()  # definitions as written, each with its slug

    @property
    def changes_plan(self) -> bool:
        """Whether anything differs from the present plan."""
        return bool(self.drafts) or any(self.troubles)


def request_from_json(data: Mapping[str, Any], *, now: Instant, zone: str) -> SimulationRequest:
    """Read a request; raises `Invalid` with every error. `zone` applies to times without an offset."""
    check_plain(data)
    fields = Fields(data, zone=zone)
    fields.refuse_unknown(KNOWN)
    starts_at, ends_at = _period(fields, now)
    troubles = Troubles(
        without=_slugs(fields),
        outages=tuple(sorted(_list(fields, "outages", _span))),
        failing=_by_slug(fields, "failing", _share),
        slow=_by_slug(fields, "slow", _slow),
        quota=tuple(sorted(_list(fields, "quota", _of_slot), key=lambda span: span.starts_at)),
        budgets=tuple(sorted(_list(fields, "budgets", _of_budget), key=lambda span: span.starts_at)),
    )
    _refuse_overlap(fields, troubles.outages)
    drafts = _drafts(fields)
    seed = fields.integer("seed", 0, least=0, most=SEED_MAX)
    for slug in {draft["slug"] for draft in drafts} & set(troubles.without):
        fields.fail("without", f"{slug!r} is also in `with`; remove it from one of them")
    fields.finish()
    return SimulationRequest(starts_at, ends_at, seed, troubles, drafts)


def _period(fields: Fields, now: Instant) -> tuple[Instant, Instant]:
    starts_at = _instant(fields, "from", now)
    days = fields.integer("days", DAYS, least=1, most=DAYS_MAX)
    ends_at = _instant(fields, "until", starts_at + days * DAY)
    if fields.has("days") and fields.has("until"):
        fields.fail("until", "`days` is given too; write one of the two")
    elif ends_at <= starts_at:
        fields.fail("until", f"is not after `from` ({format_instant(starts_at)}); give a later time")
    elif ends_at - starts_at > DAYS_MAX * DAY:
        fields.fail("until", f"is more than {DAYS_MAX} days after `from`; give an earlier time")
    return starts_at, ends_at


def _instant(fields: Fields, name: str, default: Instant) -> Instant:
    if not fields.has(name):
        return default
    text = fields.text(name)
    read = fields.read(name, lambda _: parse_instant(text, fields.zone, fields.place(name))) if text else None
    return default if read is None else read


def _list(fields: Fields, name: str, reader: Callable[[Fields], Any]) -> tuple[Any, ...]:
    if not fields.has(name):
        return ()
    return fields.items(name, reader, least=0, most=SPANS_MAX, cure='write [{"from": …, "until": …}]')


def _span(fields: Fields, *besides: str) -> Span:
    fields.refuse_unknown(("from", "until", *besides))
    for name in ("from", "until"):
        if not fields.has(name):
            fields.fail(name, "is missing; give a time such as 2026-01-30T09:00:00Z")
    span = Span(_instant(fields, "from", 0), _instant(fields, "until", 1))
    if not fields.errors and span.ends_at <= span.starts_at:
        fields.fail("until", "is not after `from`; give a later time")
    return span


def _of_slot(fields: Fields) -> UsedUpSlot:
    slot = fields.filled("slot", "give the name of a slot")
    return UsedUpSlot(*_span(fields, "slot"), slot)


def _of_budget(fields: Fields) -> UsedUpBudget:
    scope = fields.text("scope", "all")
    if scope != "all" and not scope.startswith(("agent:", "schedule:")):
        fields.fail("scope", f"{shown(scope)} is not a budget; write all, agent:NAME or schedule:SLUG")
    return UsedUpBudget(*_span(fields, "scope"), scope)


def _refuse_overlap(fields: Fields, outages: tuple[Span, ...]) -> None:
    for before, after in pairwise(outages):
        if after.starts_at <= before.ends_at:
            fields.fail("outages", f"two of them overlap at {format_instant(after.starts_at)}; make them one")


def _slugs(fields: Fields) -> tuple[str, ...]:
    given = fields.take("without", list, [], 'a list of slugs; write ["report"]')
    for number, slug in enumerate(given):
        if not isinstance(slug, str):
            fields.fail(f"without[{number}]", f"{shown(slug)} is not a slug; put it in quotes")
    return tuple(dict.fromkeys(slug for slug in given if isinstance(slug, str)))


def _by_slug(fields: Fields, name: str, reader: Callable[[Fields, str], Any]) -> dict[str, Any]:
    inner = Fields(fields.mapping(name), f"{fields.place(name)}.")
    read = {slug: reader(inner, slug) for slug in inner.data}
    fields.errors.extend(inner.errors)
    return read


def _share(fields: Fields, slug: str) -> float:
    value = fields.raw(slug)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        fields.fail(slug, f"{shown(value)} is not a share; give a number from 0 to 1, such as 0.5")
        return 0.0
    return float(value)


def _slow(fields: Fields, slug: str) -> Duration:
    if not fields.has(slug):
        fields.fail(slug, "null is not a duration; write it in quotes, like 90s")
    return fields.duration(slug, 0) or 0


def _drafts(fields: Fields) -> tuple[Mapping[str, Any], ...]:
    given = fields.take("with", list, [], "a list of definitions; write [{…}]")
    if len(given) > DRAFTS_MAX:
        fields.fail("with", f"has {len(given)} items; give at most {DRAFTS_MAX}")
    drafts: dict[str, Mapping[str, Any]] = {}
    for number, draft in enumerate(given[:DRAFTS_MAX]):
        slug = draft.get("slug") if isinstance(draft, Mapping) else None
        if not isinstance(slug, str):
            fields.fail(f"with[{number}].slug", "is missing; each definition needs its slug")
        elif slug in drafts:
            fields.fail(f"with[{number}].slug", f"{slug!r} is given twice; remove one of them")
        else:
            drafts[slug] = draft
    return tuple(drafts.values())
