"""Pages of long topics: how a consumer gets to see every pending message, a hundred of each topic at a time. Pure.

Theory of operation
-------------------
A consumer is shown the *heads* of its topics, the oldest pending messages of each. If it declines, and a topic holds
more, the next look shows the next page of that one topic, while the heads of the others stay; then the page after it,
and so on through the topics in the order of the subscription. Behind the last page come the heads again, so the pages
form a ring.

A *lap* begins with the first page that is shown after a publish, a due wakeAt or a resume, and ends before that page
would be shown again: every page is shown once. A publish in the middle of a lap begins another one where the consumer
is, and not at the heads; else topics that get messages all the time would never be shown to their end.

A reservation interrupts the lap: the heads are shown once more, because what is oldest goes first, and then it goes on
with the page it had got to.
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
    """The page its lap has got to; None: the lap is over."""
    if consumer.turn_topic is None:
        return None
    return _known(Page(consumer.turn_topic, consumer.turn_place), subscribe)


def with_page(consumer: Handler, page: Page | None) -> Handler:
    """The consumer, with this page to be shown next."""
    if page is None:
        return consumer._replace(turn_topic=None, turn_place=0)
    return consumer._replace(turn_topic=page.topic, turn_place=page.place)


def lap_of(consumer: Handler, subscribe: Sequence[str]) -> Page:
    """The page its lap began with."""
    return HEADS if consumer.lap_topic is None else _known(Page(consumer.lap_topic, consumer.lap_place), subscribe)


def with_lap(consumer: Handler, page: Page) -> Handler:
    """The consumer, with a lap that began with this page."""
    return consumer._replace(lap_topic=page.topic, lap_place=page.place)


def is_lap_over(began: Page, shown: Page, following: Page, subscribe: Sequence[str]) -> bool:
    """Whether the way from the page that was shown to the following one passes the page the lap began with."""
    began_at, shown_at, following_at = (_place_in_ring(page, subscribe) for page in (began, shown, following))
    if following == HEADS:
        return began == HEADS or began_at > shown_at
    return shown_at < began_at <= following_at


def _place_in_ring(page: Page, subscribe: Sequence[str]) -> tuple[int, int]:
    return (-1, 0) if page == HEADS else (subscribe.index(page.topic), page.place)


def _known(page: Page, subscribe: Sequence[str]) -> Page:
    """A page of a topic that a newer definition does not subscribe to is that of the heads."""
    return page if page.topic in subscribe else HEADS
