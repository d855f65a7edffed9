"""The rules of workflows: which consumer has work, which handler runs next, and when to check again. Pure.

Theory of operation
-------------------
A consumer is *dirty* when a message was published or released for it since its last run (`Subscription`), when a page
of a long topic is left to be shown (`pages`), or when it was flagged: after a run that reserved something and left
messages pending, at deploy, resume and start. These are stored facts, so nothing is lost in a crash, a message that
arrives during a run always leads to another run, and a message that was shown and declined does not.

A producer is *queued* when it is due and the workflow is busy. Its due time moves only when one of its runs commits, so
however many times it would have fired in the meantime, one run follows.

A handler that cannot be reached is delayed (`held_until`), with growing delays; the others continue. A consumer whose
messages lead back to itself runs at most `LOOP_RUNS_MAX` times per minute; then the consumers of its workflow wait. A
loop through several workflows (`features.workflows.feeding`) has one limit, in equal shares.

The alarm of a workflow is derived from these facts (`rings_at`). While a run is open there is none: closing the run
derives it again.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from wakeful.core.time.instants import DAY, MINUTE, SECOND, Duration, Instant
from wakeful.core.workflow.definition import Consumer
from wakeful.core.workflow.rows import Handler, HandlerRun, Phase, Subscription, Topic, Workflow

Key = TypeVar("Key", bound=Hashable)

WAKE_MIN: Final[Duration] = 30 * SECOND
WAKE_MAX: Final[Duration] = DAY
CONSUMERS_MAX: Final = 100
"""The maximum number of consumer runs in one session."""

BACKOFF_FIRST: Final[Duration] = 10 * SECOND
BACKOFF_MAX: Final[Duration] = 10 * MINUTE
HELD_MAX: Final[Duration] = DAY
"""The maximum delay a handler may request (`Retry-After`)."""


CRASHES_MAX: Final = 2
FAULTS_MAX: Final = 5
"""How often in a row a handler whose server failed (500) is tried again."""

LOOP_RUNS_MAX: Final = 300
"""Runs per minute of consumers whose messages lead back to themselves."""

LOOP_WINDOW: Final[Duration] = MINUTE

# From each phase, those it may move to. `preparing` again is a retry from the start; from `mutating` it is allowed only
# when it is known that nothing happened, `prepared` only when a person says so.
PHASES: Final[dict[Phase, frozenset[Phase]]] = {
    "executing": frozenset({"executing", "committed", "abandoned"}),
    "preparing": frozenset({"preparing", "prepared", "abandoned"}),
    "prepared": frozenset({"preparing", "mutating", "mutated", "committed", "abandoned"}),
    "mutating": frozenset({"preparing", "prepared", "mutated", "abandoned"}),
    "mutated": frozenset({"mutated", "committed", "abandoned"}),
    "committed": frozenset(),
    "abandoned": frozenset(),
}


class WorkflowState(NamedTuple):
    """A workflow with everything that decides what it does next."""

    workflow: Workflow
    handlers: Mapping[str, Handler]  # in the order of the definition
    topics: Mapping[str, Topic]
    subscriptions: Mapping[tuple[str, str], Subscription]  # by topic and consumer

    def subscribed_by(self, consumer: str) -> list[Subscription]:
        return [
            subscription
            for subscription in self.subscriptions.values()
            if subscription.consumer == consumer and subscription.is_active
        ]

    def readers_of(self, topic: str) -> list[Subscription]:
        return [
            subscription
            for subscription in self.subscriptions.values()
            if subscription.topic == topic and subscription.is_active
        ]

    @property
    def producers(self) -> list[Handler]:
        return [handler for handler in self.handlers.values() if handler.kind == "producer"]

    @property
    def consumers(self) -> list[Handler]:
        return [handler for handler in self.handlers.values() if handler.kind == "consumer"]


def may_follow(phase: Phase, target: Phase) -> bool:
    """Whether the phase table allows this step."""
    return target in PHASES[phase]


def moved(run: HandlerRun, phase: Phase) -> HandlerRun:
    """The run in another phase; a step that the table does not allow is a bug."""
    if not may_follow(run.phase, phase):
        raise AssertionError(f"run {run.run_id} cannot go from {run.phase} to {phase}")
    return run._replace(phase=phase)


def is_startable(workflow: Workflow) -> bool:
    """Whether a run of it may start: enabled, not stopped by an error, and no run open."""
    return (
        workflow.status == "active"
        and workflow.error is None
        and workflow.deleted_at is None
        and workflow.open_run_id is None
    )


def is_dirty(flow: WorkflowState, consumer: Handler) -> bool:
    """Whether it has messages it has not been shown."""
    return (
        bool(consumer.is_flagged)
        or consumer.turn_topic is not None
        or any(subscription.published > subscription.seen for subscription in flow.subscribed_by(consumer.name))
    )


def is_due(at: Instant | None, now: Instant) -> bool:
    """Whether `at` has passed."""
    return at is not None and at <= now


def is_queued(workflow: Workflow, producer: Handler, now: Instant) -> bool:
    """Whether it is due and has to wait, because another handler of its workflow is running."""
    return workflow.open_run_id not in (None, producer.last_run_id) and is_due(producer.next_at, now)


def is_held(handler: Handler, now: Instant) -> bool:
    """Whether it is delayed, because it could not be reached."""
    return handler.held_until is not None and handler.held_until > now


def is_limited(workflow: Workflow, now: Instant) -> bool:
    """Whether the rate limit delays its consumers."""
    return workflow.limited_until is not None and workflow.limited_until > now


def rings_at(flow: WorkflowState, now: Instant) -> Instant | None:
    """When its alarm is due; None: when something changes it."""
    if not is_startable(flow.workflow):
        return None
    if flow.workflow.session_id is not None:
        return now
    times = [_ready_at(flow, handler, now) for handler in flow.handlers.values()]
    return min((at for at in times if at is not None), default=None)


def _ready_at(flow: WorkflowState, handler: Handler, now: Instant) -> Instant | None:
    """When a handler may run next; None if it has nothing to do."""
    if handler.kind == "producer":
        at, limited_until = handler.next_at, None
    else:
        at = now if is_dirty(flow, handler) else handler.wake_at
        limited_until = flow.workflow.limited_until
    return None if at is None else max(at, handler.held_until or 0, limited_until or 0)


def due_producers(flow: WorkflowState, now: Instant) -> list[str]:
    """The producers that are due, in the order of the definition."""
    return [
        producer.name for producer in flow.producers if is_due(producer.next_at, now) and not is_held(producer, now)
    ]


def next_consumer(flow: WorkflowState, oldest: Mapping[tuple[str, str], Instant], now: Instant) -> str | None:
    """The consumer that runs next: the one with the smallest of its oldest pending message and its due wakeAt; the
    order of the definition breaks ties.

    `oldest` has, for each topic and consumer, the time of its oldest pending message. A consumer that is flagged while
    nothing is pending comes last."""
    if is_limited(flow.workflow, now):
        return None
    best: tuple[Instant, str] | None = None
    for consumer in flow.consumers:
        since = None if is_held(consumer, now) else _waits_since(flow, consumer, oldest, now)
        if since is not None and (best is None or since < best[0]):
            best = (since, consumer.name)
    return None if best is None else best[1]


def _waits_since(
    flow: WorkflowState, consumer: Handler, oldest: Mapping[tuple[str, str], Instant], now: Instant
) -> Instant | None:
    """Since when it has had something to do; None if it has nothing."""
    own = flow.subscribed_by(consumer.name)
    since: list[Instant] = []
    if consumer.is_flagged or any(subscription.published > subscription.seen for subscription in own):
        pending = (oldest.get((subscription.topic, subscription.consumer)) for subscription in own)
        since.append(min((at for at in pending if at is not None), default=now))
    elif consumer.turn_topic is not None:
        since.append(consumer.last_run_at or now)  # a consumer that pages alternates with the others
    if consumer.wake_at is not None and consumer.wake_at <= now:
        since.append(consumer.wake_at)
    return min(since, default=None)


def counted(workflow: Workflow, now: Instant, *, shares: int = 1) -> Workflow:
    """The workflow after one more run that counts towards its rate limit, which `shares` workflows have in common."""
    began = workflow.window_at
    if began is None or not began <= now < began + LOOP_WINDOW:
        workflow = workflow._replace(window_at=now, window_runs=0)
    runs = workflow.window_runs + 1
    ends_at = (workflow.window_at or now) + LOOP_WINDOW
    return workflow._replace(window_runs=runs, limited_until=ends_at if runs >= LOOP_RUNS_MAX // shares else None)


def looping(consumers: Sequence[Consumer]) -> frozenset[str]:
    """The consumers whose messages may lead back to them: they publish to one of their own topics, or to a topic of
    another consumer that leads back."""
    follow = following(consumers)
    return frozenset(name for name in follow if name in reached(follow, name))


def following(consumers: Sequence[Consumer]) -> dict[str, set[str]]:
    """The consumers that read what each of them publishes."""
    return {
        consumer.name: {other.name for other in consumers if set(consumer.publishes) & set(other.subscribe)}
        for consumer in consumers
    }


def reached(follow: Mapping[Key, Collection[Key]], start: Key) -> set[Key]:
    """What is reached from `start` in one or more steps."""
    found: set[Key] = set()
    ahead = list(follow.get(start, ()))
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += follow.get(name, ())
    return found


def clamp_wake(at: Instant, now: Instant) -> Instant:
    """When a consumer that requested `at` will be woken: not sooner than 30 s from now, not later than 24 h."""
    return max(now + WAKE_MIN, min(at, now + WAKE_MAX))


def backoff(tries: int) -> Duration:
    """The delay after this many transient failures in a row."""
    return min(BACKOFF_FIRST << max(0, tries - 1), BACKOFF_MAX)


def unsubscribed(published: Sequence[str], subscribed: Iterable[str]) -> list[str]:
    """Topics with a publisher but no consumer."""
    known = set(subscribed)
    return [topic for topic in published if topic not in known]
