"""Which messages a `prepare` gets, and which remain for the next one."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.answers import PEEK_MAX
from wakeful.core.workflow.pages import HEADS, Page, is_lap_over, lap_of, page_due, page_left, with_lap, with_page
from wakeful.core.workflow.rows import FOLLOWING, Handler, Message
from wakeful.ports.store import Tx


class ConsumerView(NamedTuple):
    """The messages a consumer gets, with its state and subscriptions at that time."""

    consumer: Handler | None  # None if a newer definition removed it
    subscribe: Sequence[str]
    page: Page
    messages: Mapping[str, Sequence[Message]]
    published: Mapping[str, int]  # of its subscriptions
    has_news: bool  # something was published for it since its last run

    @property
    def state(self) -> str | None:
        return None if self.consumer is None else self.consumer.state

    @property
    def ends(self) -> dict[str, int]:
        """The position of the last message shown, for each topic with a full page."""
        return {topic: shown[-1].place for topic, shown in self.messages.items() if len(shown) >= PEEK_MAX}


def look(tx: Tx, workflow_id: int, name: str, subscribe: Sequence[str]) -> ConsumerView:
    """The due page and the state, from one consistent read."""
    rows = tx.workflows.handlers([workflow_id]).get(workflow_id, ())
    consumer = next((row for row in rows if row.name == name), None)
    page = HEADS if consumer is None else page_due(consumer, subscribe)
    messages = {
        topic: tx.messages.pending(
            workflow_id, topic, name, after_place=page.place if topic == page.topic else 0, limit=PEEK_MAX
        )
        for topic in subscribe
    }
    own = [row for row in tx.workflows.subscriptions([workflow_id]).get(workflow_id, ()) if row.consumer == name]
    has_news = any(row.published > row.seen for row in own if row.is_active)
    return ConsumerView(consumer, subscribe, page, messages, {row.topic: row.published for row in own}, has_news)


def pick(
    tx: Tx, workflow_id: int, name: str, subscribe: Sequence[str], wanted: Mapping[str, Sequence[str]]
) -> dict[str, list[Message]]:
    """The pending messages among those that a `prepare` requested."""
    messages = tx.messages.by_ids(workflow_id, [(topic, key) for topic, ids in wanted.items() for key in ids])
    rows = [by_consumer[name] for by_consumer in messages.values() if name in by_consumer]
    pending = sorted((row for row in rows if row.status == "pending"), key=lambda row: row.place)
    return {topic: [row for row in pending if row.topic == topic] for topic in subscribe}


def looked(tx: Tx, workflow_id: int, consumer: Handler, seen: ConsumerView, *, woke: bool) -> Handler:
    """The consumer after it was shown a page, with the next page if there is one. `woke`: its wakeAt was due."""
    was = consumer if seen.consumer is None else seen.consumer
    is_new_lap = seen.has_news or woke or was.is_flagged not in (0, FOLLOWING)
    left = page_left(was, seen.subscribe)
    if is_new_lap:
        consumer = with_lap(consumer, seen.page)
        shown = seen.page
    elif was.is_flagged:  # start from the first page again
        shown = left if left is not None else HEADS
        if left is None:
            return with_page(consumer, None)
        if left != HEADS and _has_more(tx, workflow_id, consumer.name, left.topic, left.place):
            return with_page(consumer, left)
    else:
        shown = seen.page
    following = _following(tx, workflow_id, consumer.name, seen, shown)
    is_over = is_lap_over(lap_of(consumer, seen.subscribe), shown, following, seen.subscribe)
    return with_page(consumer, None if is_over else following)


def _following(tx: Tx, workflow_id: int, name: str, seen: ConsumerView, shown: Page) -> Page:
    """The page after the one shown; after the last one the first again."""
    ends = seen.ends
    topics = list(seen.subscribe) if shown == HEADS else list(seen.subscribe)[seen.subscribe.index(shown.topic) :]
    for topic in topics:
        end = shown.place if topic == shown.topic != seen.page.topic else ends.get(topic)
        if end is not None and _has_more(tx, workflow_id, name, topic, end):
            return Page(topic, end)
    return HEADS


def _has_more(tx: Tx, workflow_id: int, name: str, topic: str, place: int) -> bool:
    return bool(tx.messages.pending(workflow_id, topic, name, after_place=place, limit=1))


def is_woken(consumer: Handler | None, planned_at: Instant) -> bool:
    """Whether a run planned for `planned_at` started because of the consumer's wakeAt."""
    return consumer is not None and consumer.wake_at is not None and consumer.wake_at <= planned_at
