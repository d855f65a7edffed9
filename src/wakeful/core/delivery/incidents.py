"""Incidents: when trouble is reported, how often, and when it ends.

Theory of operation
-------------------
A *subject* is something with instants: a schedule, the heartbeat, a handler of a workflow, a quota slot. Whenever one
of its attempts or instants ends, its keeper returns an `Observed` effect. An instant is *bad* if it ended as failed,
timedOut, unknown or unconfirmed, or if its run is open and the last attempt failed. Skipped, cancelled, manual and
waiting runs are neither bad nor good. A healthy subject has no incident row, and its keeper returns no `Observed` for a
good instant, so a run that succeeds costs nothing.

The stage of an incident, by what happens next:

| stage    | bad                       | `errors` in a row, or urgent | `look_at` reached | good     | enough good  |
|----------|---------------------------|------------------------------|-------------------|----------|--------------|
| (none)   | watched, `look_at` is set | opened                       |                   |          |              |
| watched  | watched                   | opened                       | reported          | removed  | removed      |
| opened   | opened                    | opened                       | reported          | opened   | closed       |
| reported | reported                  | reported                     |                   | reported | closed, sent |
| muted    | muted                     | muted                        | reported          | muted    | closed       |
| resumed  | resumed, `look_at` is set | opened                       | reported          | resumed  | closed, sent |

* `look_at` is the bad instant's own time plus `alerts.within` and a minute: the next instant of an hourly schedule
  may end well before anyone is alerted. It is the alarm of the row, set by the first failed attempt.
* *opened* means that it is reported in the next tick (`look_at` is now), with the `why` sentence of that moment.
* An incident that opens within `within` of the end of the previous one is *muted*: counted, not reported. If it is
  still open `within` later, it is reported after all, because the last message people got said it works again.
* *resumed*: a person resumed the schedule, so the next time it opens it is reported.
* *closed, sent*: people are told that it is over.
* Enough good instants are two in a row, or one for a subject that runs daily or less often.

A person ends an incident by acknowledging it or by removing its subject; neither is reported.

`trouble` of a cadence holds the same in one number, so that settling knows without a query whether a good instant has
to be observed: BAD after a bad instant, RECOVERING after the first good one, WELL after enough of them. A manual run is
no instant: if one fails while the instants are not bad, its schedule is failing as well (BY_HAND), until the next
success or an acknowledgement, but there is no incident.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.delivery.alert_rules import AlertRule
from wakeful.core.run.effects import Counts
from wakeful.core.time.instants import DAY, HOUR, MINUTE, Duration, Instant
from wakeful.core.time.spacing import shortest_gap
from wakeful.core.time.timing import AfterReset, Timing

Stage: TypeAlias = Literal["watched", "opened", "reported", "muted", "resumed"]
Saying: TypeAlias = Literal["end"] | None

WELL: Final = 0
RECOVERING: Final = 1
BAD: Final = 2
BY_HAND: Final = 3
"""The last manual run failed, and the instants are WELL."""
BY_HAND_RECOVERING: Final = 4
"""The last manual run failed, and the instants are RECOVERING."""

GRACE: Final[Duration] = MINUTE
GOOD_USUAL: Final = 2
GOOD_RARE: Final = 1
DAILY: Final[Duration] = DAY - HOUR
"""The shortest possible day, when clocks are set forward."""

FAILING: Final = "failing"
OUTAGE: Final = "outage"


class Incident(NamedTuple):
    """One row of `incidents`, in the order of its columns."""

    incident_id: int  # 0: not written yet
    name: str  # "failing:12", "handler:inbox/fetch", "delivery:phone"
    text: str  # the reported text, or the last error while it is watched
    opened_at: Instant  # when the first bad instant ended
    last_at: Instant  # when it was last raised
    times: int  # how often it was raised
    closed_at: Instant | None
    stage: Stage = "reported"
    owner_id: int | None = None  # the owner of the runs
    run_id: int | None = None  # the last bad run
    bad: int = 0  # bad instants in a row
    good: int = 0  # good instants in a row since
    look_at: Instant | None = None
    told_at: Instant | None = None
    quiet_until: Instant | None = None  # closed: muted if it opens again before this
    channel: str | None = None
    reopened: int = 0  # how many times in a row it opened again within `within` of its end


class Step(NamedTuple):
    """An incident and its next state. None: its row is removed."""

    incident: Incident | None
    saying: Saying = None


def failing(owner_id: int) -> str:
    """The name of the incident for a schedule, or for another owner of runs."""
    return f"{FAILING}:{owner_id}"


def handler_incident(workflow: str, handler: str) -> str:
    """The name of the incident for a workflow's handler."""
    return f"handler:{workflow}/{handler}"


def stop_incident(workflow: str) -> str:
    """The name of the incident raised when a workflow stops and waits for a person."""
    return f"workflow:{workflow}"


def slot_incident(slot: str) -> str:
    """The name of the incident for a quota slot, for failed reads and failed wakes."""
    return f"slot:{slot}"


def watched(name: str, owner_id: int | None, now: Instant) -> Incident:
    """The row of a subject that was healthy until now."""
    return Incident(0, name, "", now, now, 0, None, "watched", owner_id)


def after_bad(
    incident: Incident,
    rule: AlertRule,
    *,
    instant: Instant,
    error: str,
    run_id: int | None,
    is_urgent: bool,
    before: Incident | None,
    now: Instant,
    counts: Counts = "run",
) -> Step:
    """The incident after a bad attempt or instant; `before` is the last closed incident of this name."""
    moved = incident._replace(
        bad=incident.bad + _is_another(incident, counts, instant, run_id),
        good=0,
        times=incident.times + 1,
        last_at=now,
        run_id=run_id,
        channel=rule.channel,
    )
    if incident.stage in ("opened", "reported", "muted"):
        return Step(moved)
    moved = moved._replace(text=error)
    if is_urgent or moved.bad >= rule.errors:
        return Step(_opened(moved, rule, before, now))
    if moved.look_at is None:
        # An instant in the future was claimed before the clock went back.
        moved = moved._replace(look_at=min(instant, now) + rule.within + GRACE)
    return Step(moved)


def after_good(incident: Incident, rule: AlertRule, *, needed: int, now: Instant) -> Step:
    if incident.stage == "watched":
        return Step(None)
    moved = incident._replace(bad=0, good=incident.good + 1)
    if incident.stage == "resumed":
        moved = moved._replace(look_at=None)
    if moved.good < needed:
        return Step(moved)
    closed = moved._replace(closed_at=now, look_at=None, quiet_until=now + rule.within)
    return Step(closed, "end" if incident.stage in ("reported", "resumed") else None)


def is_to_be_reported(incident: Incident, now: Instant) -> bool:
    """Whether it is time to report it."""
    is_due = incident.look_at is not None and incident.look_at <= now
    return is_due and incident.closed_at is None and incident.stage != "reported"


def reported(incident: Incident, text: str, now: Instant) -> Incident:
    """The incident after it was reported."""
    return incident._replace(stage="reported", text=text, told_at=now, look_at=None)


def after_resume(incident: Incident) -> Incident | None:
    """After a person resumed the subject: a watched incident is removed, a reported one counts as new if it reopens."""
    if incident.stage == "watched":
        return None
    return incident._replace(stage="resumed", bad=0, good=0, look_at=None, run_id=None)


def acknowledged(incident: Incident, now: Instant) -> Incident | None:
    """After a person acknowledged it: it is closed, and closing it is not reported."""
    return None if incident.stage == "watched" else incident._replace(closed_at=now, look_at=None)


def good_needed(timing: Timing) -> int:
    """How many good instants in a row end the incident of a subject with this timing."""
    gap = shortest_gap(timing)
    if gap is None:
        return GOOD_USUAL if isinstance(timing, AfterReset) else GOOD_RARE
    return GOOD_RARE if gap >= DAILY else GOOD_USUAL


def trouble_after(trouble: int, *, is_good: bool, needed: int) -> int:
    """A cadence's `trouble` after an instant."""
    if not is_good:
        return BAD
    return RECOVERING if trouble == BAD and needed > GOOD_RARE else WELL


def trouble_after_manual(trouble: int, *, is_good: bool) -> int:
    """A cadence's `trouble` after a manual run. What its instants say stays."""
    if is_good:
        return {BY_HAND: WELL, BY_HAND_RECOVERING: RECOVERING}.get(trouble, trouble)
    return {WELL: BY_HAND, RECOVERING: BY_HAND_RECOVERING}.get(trouble, trouble)


def _is_another(incident: Incident, counts: Counts, instant: Instant, run_id: int | None) -> bool:
    if incident.bad == 0:
        return True
    if counts == "run":
        return run_id is None or run_id != incident.run_id
    return counts == "time" and instant > incident.last_at


def _opened(incident: Incident, rule: AlertRule, before: Incident | None, now: Instant) -> Incident:
    if before is not None and before.quiet_until is not None and now < before.quiet_until:
        look_at = now + rule.within + GRACE
        return incident._replace(stage="muted", look_at=look_at, reopened=before.reopened + 1)
    return incident._replace(stage="opened", look_at=now)
