"""Loops through several workflows: which consumers publish to topics of other workflows, and who is in a loop.

A definition names only the topics of its own workflow. What a handler publishes through the API is known when it
happens: the call names the run it was made in (`CURRENT_RUN` for functions, the header `X-Wakeful-Run` over REST). Each
such pair of a consumer and a topic is a `Feed`. Together with the definitions, the feeds of the last hour show which
consumers lead back to themselves.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Final, TypeAlias

from wakeful.core.time.instants import HOUR, MINUTE, Duration, Instant
from wakeful.core.workflow.rows import Workflow
from wakeful.core.workflow.rules import following, reached
from wakeful.features.workflows.compiled import Compilations, Compiled
from wakeful.features.workflows.feed_rows import Feed, Feeds
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.store import Tx
from wakeful.ports.workflows import StoredWorkflows

CURRENT_RUN: Final[ContextVar[int | None]] = ContextVar("wakeful_handler_run", default=None)
"""The run whose function is being called."""

FEED_KEPT: Final[Duration] = HOUR
NOTED_AGAIN: Final[Duration] = 10 * MINUTE

Place: TypeAlias = tuple[int, str]
"""A consumer: the id of its workflow, and its name."""


def note_feeds(tx: Tx, target: Workflow, topics: Sequence[str], run_id: int | None, *, now: Instant) -> int | None:
    """Record that a handler's run publishes through the API; returns the run, None if it is no handler's."""
    own = None if run_id is None else tx[HandlerRunDetails].among([run_id]).get(run_id)
    if own is None:
        return None
    if own.kind == "consumer":
        feeds = [Feed(own.workflow_id, own.handler, target.workflow_id, topic, now) for topic in sorted(set(topics))]
        recent = {feed._replace(seen_at=now) for feed in tx[Feeds].seen(since=now - NOTED_AGAIN)}
        tx[Feeds].put_many([feed for feed in feeds if feed not in recent])
    return own.run_id


class Loops:
    """Finds loops through the API."""

    def __init__(self, compilations: Compilations) -> None:
        self._compilations = compilations

    def through(self, tx: Tx, workflow: Workflow, *, now: Instant) -> Mapping[str, int]:
        """The consumers of a workflow that lead back to themselves through the API, and how many workflows take part
        in each of their loops."""
        feeds = tx[Feeds].seen(since=now - FEED_KEPT)
        if not feeds:
            return {}
        ids = {workflow_id for feed in feeds for workflow_id in (feed.source_id, feed.target_id)}
        if workflow.workflow_id not in ids:
            return {}
        follow = self._follow(tx, ids, feeds)
        ahead = {place: reached(follow, place) for place in follow}
        return {
            name: len({of for of, other in ahead[of_this, name] if (of_this, name) in ahead.get((of, other), ())})
            for of_this, name in follow
            if of_this == workflow.workflow_id and (of_this, name) in ahead[of_this, name]
        }

    def _follow(self, tx: Tx, ids: set[int], feeds: Sequence[Feed]) -> dict[Place, set[Place]]:
        """Who reads what each consumer publishes."""
        follow: dict[Place, set[Place]] = {}
        readers: dict[tuple[int, str], list[Place]] = {}
        for workflow_id, workflow in tx[StoredWorkflows].among(ids).items():
            known = self._compilations.of(workflow)
            if not isinstance(known, Compiled) or workflow.deleted_at is not None:
                continue
            for name, names in following(known.definition.consumers).items():
                follow[workflow_id, name] = {(workflow_id, other) for other in names}
            for topic, consumers in known.definition.topics.items():
                readers[workflow_id, topic] = [(workflow_id, name) for name in consumers]
        for feed in feeds:
            if (feed.source_id, feed.consumer) in follow:
                follow[feed.source_id, feed.consumer].update(readers.get((feed.target_id, feed.topic), ()))
        return follow
