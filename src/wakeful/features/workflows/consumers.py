"""Which messages a `prepare` gets, and which remain for the next one."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.answers import PAGE_BYTES_MAX, PEEK_MAX
from wakeful.core.workflow.pages import HEADS, Page, is_lap_over, lap_of, page_due, page_left, with_lap, with_page
from wakeful.core.workflow.rows import FOLLOWING, Handler
from wakeful.features.workflows.message_rows import Message, Messages
from wakeful.features.workflows.state_rows import Handlers, Subscriptions
from wakeful.ports.store import Tx

STEP: Final = 25


class ConsumerView(NamedTuple):
    """The messages a consumer gets, with its state and subscriptions at that time."""

    consumer: Handler | None  # None if a newer definition removed it
    subscribe: Sequence[str]
    page: Page
    messages: Mapping[str, Sequence[Message]]
    cut: frozenset[str]  # the topics of which there may be more
    published: Mapping[str, int]  # of its subscriptions
    has_news: bool  # something was published for it since its last run

    @property
    def state(self) -> str | None:
        return None if self.consumer is None else self.consumer.state

    @property
    def ends(self) -> dict[str, int]:
        """The position of the last message shown, for each topic with a full page."""
        return {topic: shown[-1].place for topic, shown in self.messages.items() if topic in self.cut}


def look(tx: Tx, workflow_id: int, name: str, subscribe: Sequence[str]) -> ConsumerView:
    """The due page and the state, from one consistent read."""
    rows = tx[Handlers].of([workflow_id]).get(workflow_id, ())
    consumer = next((row for row in rows if row.name == name), None)
    page = HEADS if consumer is None else page_due(consumer, subscribe)
    shown = {
        topic: _page(tx, workflow_id, topic, name, page.place if topic == page.topic else 0, _share(subscribe))
        for topic in subscribe
    }
    messages, cut = {topic: rows for topic, (rows, _) in shown.items()}, {topic for topic in shown if shown[topic][1]}
    own = [row for row in tx[Subscriptions].of([workflow_id]).get(workflow_id, ()) if row.consumer == name]
    has_news = any(row.published > row.seen for row in own if row.is_active)
    published = {row.topic: row.published for row in own}
    return ConsumerView(consumer, subscribe, page, messages, frozenset(cut), published, has_news)


def pick(
    tx: Tx, workflow_id: int, name: str, subscribe: Sequence[str], wanted: Mapping[str, Sequence[str]]
) -> dict[str, list[Message]]:
    """The pending messages among those that a `prepare` requested."""
    messages = tx[Messages].by_ids(workflow_id, [(topic, key) for topic, ids in wanted.items() for key in ids])
    rows = [by_consumer[name] for by_consumer in messages.values() if name in by_consumer]
    pending = sorted((row for row in rows if row.status == "pending"), key=lambda row: row.place)
    share = _share(subscribe)
    return {topic: _within([row for row in pending if row.topic == topic], share) for topic in subscribe}


def _share(subscribe: Sequence[str]) -> int:
    """How many bytes of a page one topic may have."""
    return PAGE_BYTES_MAX // max(1, len(subscribe))


def _page(
    tx: Tx, workflow_id: int, topic: str, name: str, after_place: int, bytes_max: int
) -> tuple[list[Message], bool]:
    """Pending messages after a place, and whether the page is full. They are read in steps, because together they may
    be much larger than what is shown."""
    rows: list[Message] = []
    while len(rows) < PEEK_MAX:
        step = tx[Messages].pending(workflow_id, topic, name, after_place=after_place, limit=STEP)
        fits = _within([*rows, *step], bytes_max)
        if len(fits) < len(rows) + len(step):
            return fits, True
        rows = fits
        if len(step) < STEP:
            return rows, False
        after_place = rows[-1].place
    return rows, True


def _within(rows: Sequence[Message], bytes_max: int) -> list[Message]:
    """The first of the messages, as many as fit, at least one."""
    sizes = accumulate(len(row.payload.encode()) for row in rows)
    return [row for n, (row, size) in enumerate(zip(rows, sizes, strict=True)) if n == 0 or size <= bytes_max]


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
    return bool(tx[Messages].pending(workflow_id, topic, name, after_place=place, limit=1))


def is_woken(consumer: Handler | None, planned_at: Instant) -> bool:
    """Whether a run planned for `planned_at` started because of the consumer's wakeAt."""
    return consumer is not None and consumer.wake_at is not None and consumer.wake_at <= planned_at
