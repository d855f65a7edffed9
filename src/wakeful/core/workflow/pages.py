"""Pages of long topics: how a consumer gets every pending message, a hundred per topic at a time. Pure.

Theory of operation
-------------------
A consumer is shown the *heads* of its topics, the oldest pending messages of each. If it declines, and a topic has
more, the next look shows the next page of that one topic, together with the heads of the others; then the page after
it, and so on through the topics in the order of the subscription. After the last page come the heads again, so the
pages form a ring.

A *lap* starts with the first page shown after a publish, a due wakeAt or a resume, and ends before that page would be
shown again: every page is shown once. A publish during a lap starts another one at the current page, not at the heads;
otherwise topics that get messages all the time would never be shown to their end.

A reservation interrupts the lap: the heads are shown once more, because the oldest messages go first, and then the lap
continues with the page it had reached.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from wakeful.core.workflow.rows import Handler


class Page(NamedTuple):
    """What a consumer is shown: the messages of a topic after a place, and the heads of its other topics."""

    topic: str  # empty: all heads
    place: int


HEADS: Final = Page("", 0)


def page_due(consumer: Handler, subscribe: Sequence[str]) -> Page:
    """The page it is shown next."""
    return HEADS if consumer.is_flagged else page_left(consumer, subscribe) or HEADS


def page_left(consumer: Handler, subscribe: Sequence[str]) -> Page | None:
    """The next page of its lap; None if the lap is over."""
    if consumer.turn_topic is None:
        return None
    return _known(Page(consumer.turn_topic, consumer.turn_place), subscribe)


def with_page(consumer: Handler, page: Page | None) -> Handler:
    """The consumer, with this page as the next one."""
    if page is None:
        return consumer._replace(turn_topic=None, turn_place=0)
    return consumer._replace(turn_topic=page.topic, turn_place=page.place)


def lap_of(consumer: Handler, subscribe: Sequence[str]) -> Page:
    """The page its lap started with."""
    return HEADS if consumer.lap_topic is None else _known(Page(consumer.lap_topic, consumer.lap_place), subscribe)


def with_lap(consumer: Handler, page: Page) -> Handler:
    """The consumer, with a lap that started with this page."""
    return consumer._replace(lap_topic=page.topic, lap_place=page.place)


def is_lap_over(began: Page, shown: Page, following: Page, subscribe: Sequence[str]) -> bool:
    """Whether going from the shown page to the following one passes the page the lap started with."""
    began_at, shown_at, following_at = (_place_in_ring(page, subscribe) for page in (began, shown, following))
    if following == HEADS:
        return began == HEADS or began_at > shown_at
    return shown_at < began_at <= following_at


def _place_in_ring(page: Page, subscribe: Sequence[str]) -> tuple[int, int]:
    return (-1, 0) if page == HEADS else (subscribe.index(page.topic), page.place)


def _known(page: Page, subscribe: Sequence[str]) -> Page:
    """A page of a topic that the new definition does not subscribe to becomes the heads."""
    return page if page.topic in subscribe else HEADS
