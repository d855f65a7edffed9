"""The rules of workflows: who is dirty, who is queued, who runs next, and when to look again. Pure.

Theory of operation
-------------------
A consumer is *dirty* when the newest publish sequence of one of its topics is greater than the one it had seen when its
last run looked, or when it was flagged: after a run that reserved something, at deploy, resume and start. Both are
stored facts, so nothing is lost in a crash, a message that arrives during a run always leads to another one, and a
message that was looked at and declined does not.

A producer is *queued* when its due time has come and the workflow is busy. Its due time moves only when a run of it
commits, so however often it would have fired meanwhile, one run follows.

The alarm of a workflow is derived from these facts (`rings_at`). While a run is open there is none: whoever closes the
run derives it anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from wakeful.core.instants import DAY, MINUTE, SECOND, Duration, Instant
from wakeful.core.workflow_rows import Handler, HandlerRun, Phase, Topic, Workflow

WAKE_MIN: Final[Duration] = 30 * SECOND
WAKE_MAX: Final[Duration] = DAY
CONSUMERS_MAX: Final = 100
"""How many consumer runs one session holds."""

TRIES_MAX: Final = 5
BACKOFF_FIRST: Final[Duration] = 10 * SECOND
BACKOFF_MAX: Final[Duration] = 10 * MINUTE
CRASHES_MAX: Final = 2

# From each phase, those it may move to. `preparing` again is a retry that starts fresh; from `mutating` it is allowed
# only when it is known that nothing happened, `prepared` only on a person's word.
PHASES: Final[dict[Phase, frozenset[Phase]]] = {
    "executing": frozenset({"executing", "committed", "abandoned"}),
    "preparing": frozenset({"preparing", "prepared", "abandoned"}),
    "prepared": frozenset({"preparing", "mutating", "mutated", "committed", "abandoned"}),
    "mutating": frozenset({"preparing", "prepared", "mutated", "abandoned"}),
    "mutated": frozenset({"mutated", "committed", "abandoned"}),
    "committed": frozenset(),
    "abandoned": frozenset(),
}


class Flow(NamedTuple):
    """A workflow with all that decides what it does next."""

    workflow: Workflow
    handlers: Mapping[str, Handler]  # in the order of the definition
    topics: Mapping[str, Topic]

    @property
    def producers(self) -> list[Handler]:
        return [one for one in self.handlers.values() if one.kind == "producer"]

    @property
    def consumers(self) -> list[Handler]:
        return [one for one in self.handlers.values() if one.kind == "consumer"]


def may_follow(phase: Phase, target: Phase) -> bool:
    """Whether the phase table allows it."""
    return target in PHASES[phase]


def moved(run: HandlerRun, phase: Phase) -> HandlerRun:
    """The run in another phase; a step that the table does not know is a mistake of ours."""
    if not may_follow(run.phase, phase):
        raise AssertionError(f"run {run.run_id} cannot go from {run.phase} to {phase}")
    return run._replace(phase=phase)


def is_startable(workflow: Workflow) -> bool:
    """Whether a run of it may begin: persons let it, no error stops it, nothing of it is open."""
    return (
        workflow.status == "active"
        and workflow.error is None
        and workflow.deleted_at is None
        and workflow.open_run_id is None
    )


def is_dirty(consumer: Handler, topics: Iterable[Topic]) -> bool:
    """Whether there is something it has not looked at."""
    return bool(consumer.is_flagged) or any(
        topic.consumer == consumer.name and topic.published > topic.seen for topic in topics
    )


def is_due(at: Instant | None, now: Instant) -> bool:
    """Whether a time has come."""
    return at is not None and at <= now


def is_queued(workflow: Workflow, producer: Handler, now: Instant) -> bool:
    """Whether it is due and has to wait, because another handler of its workflow is at work."""
    return workflow.open_run_id not in (None, producer.last_run_id) and is_due(producer.next_at, now)


def rings_at(flow: Flow, now: Instant) -> Instant | None:
    """When its alarm is due; None: when somebody touches it."""
    if not is_startable(flow.workflow):
        return None
    if flow.workflow.session_id is not None:
        return now
    if any(is_dirty(consumer, flow.topics.values()) for consumer in flow.consumers):
        return now
    times = [one.next_at for one in flow.producers] + [one.wake_at for one in flow.consumers]
    return min((at for at in times if at is not None), default=None)


def due_producers(flow: Flow, now: Instant) -> list[str]:
    """The producers whose time has come, in the order of the definition."""
    return [one.name for one in flow.producers if is_due(one.next_at, now)]


def next_consumer(flow: Flow, oldest: Mapping[str, Instant], now: Instant) -> str | None:
    """Who runs next: the smallest of its oldest pending message and its due wakeAt; the definition's order on ties.

    `oldest` tells for each topic since when its oldest pending message has been there. One that is to be looked at
    although nothing is pending comes last."""
    best: tuple[Instant, str] | None = None
    for consumer in flow.consumers:
        since = _waits_since(consumer, flow.topics.values(), oldest, now)
        if since is not None and (best is None or since < best[0]):
            best = (since, consumer.name)
    return None if best is None else best[1]


def _waits_since(
    consumer: Handler, topics: Iterable[Topic], oldest: Mapping[str, Instant], now: Instant
) -> Instant | None:
    """Since when there has been something for it to do; None: there is nothing."""
    own = [topic for topic in topics if topic.consumer == consumer.name]
    since: list[Instant] = []
    if is_dirty(consumer, own):
        since += [min((oldest[topic.name] for topic in own if topic.name in oldest), default=now)]
    if consumer.wake_at is not None and consumer.wake_at <= now:
        since.append(consumer.wake_at)
    return min(since, default=None)


def clamp_wake(at: Instant, now: Instant) -> Instant:
    """When a consumer that asked to be woken at `at` will be: not sooner than 30 s from now, not later than 24 h."""
    return max(now + WAKE_MIN, min(at, now + WAKE_MAX))


def backoff(tries: int) -> Duration:
    """How long to wait after this many transient failures in a row."""
    return min(BACKOFF_FIRST << max(0, tries - 1), BACKOFF_MAX)


def is_given_up(tries: int) -> bool:
    """Whether this many transient failures in a row are enough."""
    return tries >= TRIES_MAX


def unsubscribed(published: Sequence[str], subscribed: Iterable[str]) -> list[str]:
    """Topics that would be published to and that nobody reads."""
    known = set(subscribed)
    return [topic for topic in published if topic not in known]
