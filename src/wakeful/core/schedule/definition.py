"""The definition of a schedule: what happens, and when, as its owner wrote it."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias

from wakeful.core.delivery.alert_rules import ALERT, AlertChoice
from wakeful.core.description import COMPONENTS, Field, Kind, Object, described
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import Fields, shown
from wakeful.core.kinds import CHANNEL, FLAG, NAME, TEXT, choice, duration, nested, whole
from wakeful.core.money.schedule_budget import BUDGET_KIND, ScheduleBudget
from wakeful.core.run.runs import RungName
from wakeful.core.run.settlement import Policy
from wakeful.core.schedule.actions import OBJECTS, PROMPT, ActionSpec, Prompt
from wakeful.core.schedule.cadence import Rules
from wakeful.core.schedule.exclude import EXCLUDE_KIND, Exclude
from wakeful.core.schedule.labels import RUN_ON, RunOn
from wakeful.core.schedule.policies import (
    AGENT_RETRY,
    CATCH_UP_LIMIT,
    CATCH_UP_MAX,
    ERRORS_MAX,
    NO_RETRY,
    ONE_SHOT_TRIES,
    RETRY,
    TIMEOUT,
    CatchUp,
    OnCrash,
    Overlap,
    Retry,
    stagger_offset,
)
from wakeful.core.schedule.pre_check import PRE_CHECK_KIND, PreCheck
from wakeful.core.slug import SLUG_PATTERN
from wakeful.core.time.active_hours import ACTIVE_HOURS, ActiveHours
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.time.spacing import shortest_gap
from wakeful.core.time.timing import Cron, Every, Once, Times, Timing
from wakeful.core.time.timing_json import INSTANT, timing_kind

RULES_KEPT: Final = 4096
RESERVED_SLUGS: Final = frozenset({"heartbeat"})
ADDRESSEES_MAX: Final = 20
"""The maximum number of recipients of one schedule."""


@dataclass(frozen=True, slots=True)
class DeliverTo:
    """Where a run's reply goes."""

    channel: Annotated[
        str, Field(replace(CHANNEL, control="recipients"), "a channel, or `last`", "Deliver the reply to")
    ]
    to: Annotated[str | None, Field(TEXT, "recipient on that channel", "Recipient")] = None


Deliver: TypeAlias = DeliverTo | tuple[DeliverTo, ...] | None
"""One recipient, or several, as written."""

DELIVER_TO: Final = described(DeliverTo, name="Deliver", says="Where the reply goes.")


def _read_deliver(fields: Fields, name: str) -> Deliver:
    if not isinstance(fields.raw(name), list):
        return fields.nested(name, DELIVER_TO.read)
    cure = 'name one or more, like [{"channel": "phone"}, {"channel": "mail"}], or leave it out'
    addressees = fields.items(name, DELIVER_TO.read, most=ADDRESSEES_MAX, cure=cure)
    for number, addressee in enumerate(addressees):
        if addressee in addressees[:number]:
            fields.fail(f"{name}[{number}]", f"{addressee.channel!r} is named twice; remove one of them")
    return addressees


def _write_deliver(deliver: DeliverTo | tuple[DeliverTo, ...]) -> dict[str, Any] | list[dict[str, Any]]:
    return DELIVER_TO.write(deliver) if isinstance(deliver, DeliverTo) else list(map(DELIVER_TO.write, deliver))


def _read_slug(fields: Fields, name: str) -> str:
    slug = fields.text(name)
    if isinstance(fields.raw(name), str):
        fields.read(name, lambda _: check_slug(slug))
    return slug


_TO: Final = {"$ref": f"{COMPONENTS}Deliver"}
_DELIVER: Final = Kind(
    "[Deliver](#deliver), or a list of them",
    _read_deliver,
    {"anyOf": [_TO, {"type": "array", "items": _TO, "minItems": 1, "maxItems": ADDRESSEES_MAX}]},
    _write_deliver,
    control="object",
    inner=(DELIVER_TO,),
)
_SUCCESS: Final = choice(Literal["accepted", "started", "finished"], None)
_CATCH_UPS: Final = (
    ("once", "one run, for the latest of them"),
    ("skip", "no run"),
    ("all", "a run for each, up to the maximum"),
)
_OVERLAPS: Final = (("skip", "the time is skipped"), ("queue", "it runs when the last run has ended"))
_CRASHES: Final = (("retry", "it runs again"), ("unknown", "it does not run again, and its outcome is unknown"))
_SUCCESSES: Final = (
    ("accepted", "the target has accepted the request"),
    ("started", "the work has begun"),
    ("finished", "the work has ended without an error"),
)
_NO_TIMING: Final = 'missing; say when, for example {"type": "every", "every": "2h"}'
_ERRORS_MAX: Final = "maxConsecutiveErrors"
SLUG: Final = Kind(
    "slug",
    _read_slug,
    {"type": "string", "pattern": f"^{SLUG_PATTERN.pattern}$", "examples": ["daily-standup"]},
)


@dataclass(frozen=True, slots=True)
class Definition:
    """Everything its owner decides about a schedule."""

    slug: Annotated[str, Field(SLUG, "its name", default="", usual="the one in the path")]
    timing: Annotated[Timing, Field(timing_kind(is_text=True), "when it runs", name="schedule", missing=_NO_TIMING)]
    action: ActionSpec
    enabled: Annotated[bool | None, Field(FLAG, "whether it runs", usual="true, or unchanged")] = None
    deliver: Annotated[Deliver, Field(_DELIVER, "one recipient or several; each gets its own delivery")] = None
    catch_up: Annotated[
        CatchUp,
        Field(choice(CatchUp), "what happens to times missed during an outage", "After an outage", means=_CATCH_UPS),
    ] = "once"
    catch_up_max: Annotated[
        int, Field(whole(1, CATCH_UP_LIMIT), "maximum number of times that `all` catches up", "Catch up at most")
    ] = CATCH_UP_MAX
    lateness_max: Annotated[
        Duration | None,
        Field(
            duration(),
            "a run that would begin later than this, for whatever it waited, counts as missed; at least 1m",
            "Maximum delay",
            "10m",
            name="maxLateness",
            usual="no limit",
        ),
    ] = None
    overlap: Annotated[
        Overlap,
        Field(
            choice(Overlap),
            "what happens if it is due while its last run is in progress",
            "If it is still running",
            means=_OVERLAPS,
        ),
    ] = "skip"
    timeout: Annotated[Duration, Field(duration(1), "how long a run may take")] = TIMEOUT
    on_crash: Annotated[
        OnCrash, Field(choice(OnCrash), "what happens to a run whose node died", "After a crash", means=_CRASHES)
    ] = "retry"
    errors_max: Annotated[
        int, Field(whole(0), "errors in a row after which it is disabled; 0: never", "Disable after", name=_ERRORS_MAX)
    ] = ERRORS_MAX
    active_hours: Annotated[
        ActiveHours | None,
        Field(ACTIVE_HOURS, "hours in which it can start; other times are skipped", usual="always"),
    ] = None
    stagger: Annotated[Duration, Field(duration(), "shift it by a fixed fraction of this, to spread the load")] = 0
    success: Annotated[
        RungName | None,
        Field(
            _SUCCESS,
            "how far a run must get to succeed",
            "Success means",
            usual="the highest its action can prove",
            means=_SUCCESSES,
        ),
    ] = None
    slot: Annotated[
        str | None,
        Field(replace(NAME, control="slot"), "wait while this slot's quota is used up", "Wait for slot"),
    ] = None
    lane: Annotated[str | None, Field(NAME, "schedules in the same lane run one at a time")] = None
    alert: Annotated[AlertChoice, Field(ALERT, "when to send alerts; false: never", usual="as in `[alerts]`")] = None
    expires_at: Annotated[
        Instant | None,
        Field(
            INSTANT,
            "end of the schedule: it does not run after this time",
            example="2027-01-01T00:00:00Z",
            usual="never",
        ),
    ] = None
    retry: Annotated[
        Retry | None,
        Field(
            nested(RETRY), "retries of the same instant", usual="for a prompt: until the next instant; otherwise none"
        ),
    ] = None
    budget: Annotated[ScheduleBudget | None, Field(BUDGET_KIND, "what a prompt may cost", usual="no limit")] = None
    check: Annotated[
        PreCheck | None,
        Field(
            PRE_CHECK_KIND,
            "runs before the prompt; without output, the agent is not prompted",
            "Check first",
            usual="none",
        ),
    ] = None
    exclude: Annotated[
        Exclude | None, Field(EXCLUDE_KIND, "days on which it does not run; their times are skipped", usual="none")
    ] = None
    run_on: Annotated[
        RunOn,
        Field(
            RUN_ON, "only nodes with this label run it; with several labels, a node needs one of them", usual="any node"
        ),
    ] = None


def ending(definition: Definition, at: Instant) -> Definition:
    """The same definition with an end."""
    return replace(definition, expires_at=at)


def addressees_of(definition: Definition) -> tuple[DeliverTo, ...]:
    """All recipients of a run's reply."""
    deliver = definition.deliver
    if deliver is None:
        return ()
    return (deliver,) if isinstance(deliver, DeliverTo) else deliver


def retry_of(definition: Definition) -> Retry:
    """Agents are retried until the next instant, everything else not at all, unless the definition says otherwise."""
    return usual_retry(definition.action) if definition.retry is None else definition.retry


def bounded_retry(definition: Definition) -> Retry:
    """The effective retry: a one-shot has no next instant, so "until the next instant" becomes a count."""
    retry = retry_of(definition)
    if retry.times is None and isinstance(definition.timing, Once) and isinstance(definition.action, Prompt):
        return replace(retry, times=ONE_SHOT_TRIES - 1)
    return retry


def usual_retry(action: ActionSpec) -> Retry:
    """The default of `retry`."""
    return AGENT_RETRY if isinstance(action, Prompt) else NO_RETRY


def rules_of(definition: Definition, schedule_id: int) -> Rules:
    """The part that is used for planning."""
    stagger = definition.stagger
    offset = stagger_offset(schedule_id, stagger, shortest_gap(definition.timing)) if stagger else 0
    late = (definition.catch_up, definition.catch_up_max, definition.lateness_max)
    timing = definition.timing
    if definition.expires_at is not None and isinstance(timing, Every | Cron | Times):
        timing = replace(timing, until=definition.expires_at)
    return _rules(timing, offset, *late, definition.overlap)


# Schedules with equal rules share one object: it is built once, and schedules that are due together share decisions.
_rules: Final = lru_cache(maxsize=RULES_KEPT)(Rules)


def policy_of(definition: Definition) -> Policy:
    """The part that is used for settling."""
    return Policy(
        bounded_retry(definition), definition.on_crash, definition.errors_max, definition.success, definition.alert
    )


def check_slug(slug: str) -> None:
    """Refuse an invalid or a reserved slug."""
    if not isinstance(slug, str) or not SLUG_PATTERN.fullmatch(slug):
        cure = "use 1 to 64 of a-z 0-9 . _ - beginning with a letter or digit"
        raise Invalid(FieldError("slug", f"{shown(slug)} is not a slug; {cure}"))
    if slug in RESERVED_SLUGS:
        raise Invalid(FieldError("slug", f"{slug!r} is reserved; choose another name"))


def _actions() -> list[Field]:
    """The action fields, of which a definition has exactly one, and those that belong to a prompt."""
    prompt, *more = PROMPT
    objects = [
        Field(nested(action), action.says[0].lower() + action.says[1:-1], name=name, default=None)
        for name, action in OBJECTS.items()
    ]
    return [replace(prompt, default=None), *objects, *more]


_FIELDS: Final = described(Definition)
OPTIONS: Final = _FIELDS.only(without=("slug", "schedule"))
"""The fields of a definition other than its name, its timing and its action."""
SCHEDULE: Final[Object[Definition]] = Object(
    "Definition",
    "A definition: a schedule, and exactly one of prompt, command, http, call, dispatch and event.",
    [*_FIELDS.only("slug", "schedule"), *_actions(), *OPTIONS],
    Definition,
    read_back=(
        "status", "statusReason", "lastRun", "lastResult", "lastError", "sessionId", "nextRun", "consecutiveErrors",
        "createdAt", "updatedAt", "version", "next", "description", "health", "lastOutcome",
        "owner", "lineage", "approval", "cost", "node",
    ),
)  # fmt: skip
"""A whole definition, as users write it."""
