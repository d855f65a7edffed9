"""The messages of workflows: what can be asked of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Annotated, Any, Final, TypeAlias

from wakeful.api.operation import Noun, Returns, perform, read, write
from wakeful.api.parameters import Param
from wakeful.api.reading import run_id_of
from wakeful.api.replies import Reply
from wakeful.api.shared_parameters import IdCursor, Limit
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.core.returned import returned
from wakeful.core.slug import SLUG_PATTERN
from wakeful.core.time.instants import Instant
from wakeful.core.workflow.answers import read_message
from wakeful.features.schedules.views import encode
from wakeful.features.workflows import commands, queries
from wakeful.features.workflows.feeding import CURRENT_RUN
from wakeful.features.workflows.message_rows import MessageStatus
from wakeful.features.workflows.publishing import Put
from wakeful.features.workflows.views import NAME_SCHEMA, MessagesPage, ReplayedMessages, Skipped
from wakeful.ports.store import Tx

IDS_MAX: Final = 1_000
NOT_IDS: Final = 'is not a list of message ids; write for example ["17"]'
ID_SCHEMA: Final = {"type": "string", "examples": ["inbox"], "pattern": f"^{SLUG_PATTERN.pattern}$"}
_IDS_SCHEMA: Final = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": IDS_MAX}
PUT: Final = returned(Put, name="MessagePut")


def known_workflow(name: str) -> str:
    """A valid name; 404 for any other text."""
    if not SLUG_PATTERN.fullmatch(name):
        raise NotFound(f"there is no workflow {shown(name)}")
    return name


def ids_to(verb: str) -> Callable[[Any], list[str]]:
    """Reads message ids."""

    def read(ids: Any) -> list[str]:
        if not isinstance(ids, list) or not ids or not all(isinstance(message_id, str) for message_id in ids):
            refuse("ids", NOT_IDS)
        if len(ids) > IDS_MAX:
            refuse("ids", f"has {len(ids)} ids; {verb} at most {IDS_MAX} at a time")
        return ids

    return read


def published(put: Put) -> Reply:
    """201 for a new message."""
    return Reply(encode(PUT.write(put)), 201 if put.fate == "published" else 200)


IdPath: TypeAlias = Annotated[str, Param(name="id", schema=ID_SCHEMA, read=known_workflow)]
TopicPath: TypeAlias = Annotated[str, Param(schema=NAME_SCHEMA)]
OfConsumer: TypeAlias = Annotated[
    str | None, Param("only for this consumer; default: all consumers of the topic", schema=NAME_SCHEMA)
]


class WorkflowMessages(Noun):
    """The messages of workflows: list, publish, skip, and show skipped ones again."""

    @read(
        "GET /api/workflows/{id}/topics/{topic}/messages",
        "List the messages of a topic",
        Returns(returned(MessagesPage, name="Messages"), "In the order they were first published."),
        refuses=(404,),
        id="list_messages",
    )
    def messages(
        self,
        tx: Tx,
        now: Instant,
        name: IdPath,
        topic: TopicPath,
        *,
        limit: Limit = 100,
        cursor: IdCursor = None,
        status: Annotated[MessageStatus | None, Param("only messages with this status")] = None,
        consumer: Annotated[str | None, Param("only messages for this consumer")] = None,
    ) -> MessagesPage:
        """A message is listed once for each consumer of the topic."""
        return queries.messages(tx, name, topic, after_place=cursor or 0, limit=limit, status=status, consumer=consumer)

    @perform(
        "POST /api/workflows/{id}/topics/{topic}/messages",
        "Publish a message",
        Returns(PUT, "Published."),
        Returns(PUT, "It existed: updated while pending, otherwise a duplicate that changed nothing."),
        statuses=(201, 200),
        refuses=(404,),
        least="admin",
        id="publish_message",
        reply=published,
        body_name="NewMessage",
        body_says="A message to publish; without an id it gets one.",
        body_required=True,
    )
    async def publish(
        self,
        name: IdPath,
        topic: TopicPath,
        id: Annotated[
            str | None,
            Param(where="body", schema={"type": "string", "minLength": 1, "maxLength": 500}, unchecked=True),
        ] = None,
        payload: Annotated[Any, Param(schema={})] = None,
        *,
        by_run: Annotated[
            int | None,
            Param(
                "the handler's run that publishes", "X-Wakeful-Run", "header", schema={"type": "string"}, read=run_id_of
            ),
        ] = None,
    ) -> Put:
        """An id is unique in its topic: publishing it again does not create a second message. A handler that publishes
        passes on the `X-Wakeful-Run` it got, so that a loop through several workflows is noticed."""
        message = read_message({"id": token_hex(8) if id is None else id, "payload": payload}, topic)
        run_id = CURRENT_RUN.get() if by_run is None else by_run  # read here: the transaction is in another thread
        (put,) = await self._app._command(
            lambda tx, now: commands.publish_now(tx, name, [message], now=now, run_id=run_id)
        )
        return put

    @write(
        "POST /api/workflows/{id}/topics/{topic}/skip",
        "Skip messages",
        Returns(returned(Skipped), "Consumers no longer see them."),
        refuses=(404, 409),
        id="skip_messages",
        body_name="Skip",
        body_says="Messages to skip.",
    )
    def skip(
        self,
        tx: Tx,
        now: Instant,
        name: IdPath,
        topic: TopicPath,
        ids: Annotated[Sequence[str], Param(schema=_IDS_SCHEMA, read=ids_to("skip"), refusal=NOT_IDS)],
        *,
        consumer: OfConsumer = None,
    ) -> Skipped:
        """All of them or none: 404 if one is unknown, 409 if one is reserved or consumed."""
        return Skipped(topic, commands.skip_messages(tx, name, topic, ids, consumer, now=now))

    @write(
        "POST /api/workflows/{id}/topics/{topic}/replay",
        "Make skipped messages pending again",
        Returns(returned(ReplayedMessages), "Consumers see them again."),
        statuses=(202,),
        refuses=(404, 409),
        id="replay_messages",
        body_name="ReplayMessages",
        body_says="Skipped messages to make pending again.",
    )
    def replay_skipped(
        self,
        tx: Tx,
        now: Instant,
        name: IdPath,
        topic: TopicPath,
        ids: Annotated[
            Sequence[str] | None,
            Param("default: all that are skipped", schema=_IDS_SCHEMA, read=ids_to("replay")),
        ] = None,
        *,
        consumer: OfConsumer = None,
        dry_run: Annotated[bool, Param("only count; nothing changes", where="query")] = False,
    ) -> ReplayedMessages:
        """All of them or none: 404 if one is unknown, 409 if one is not skipped."""
        count = commands.replay_messages(tx, name, topic, ids, consumer, is_rehearsal=dry_run, now=now)
        return ReplayedMessages(topic, count)
