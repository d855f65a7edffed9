"""`/api/workflows`: workflows, their sessions, runs, topics and messages."""

import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.app.merging import changed
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.core.slug import SLUG_PATTERN
from wakeful.core.time.instants import parse_instant
from wakeful.core.workflow.answers import read_message
from wakeful.core.workflow.definition import NAME_PATTERN, WORKFLOW
from wakeful.features.schedules.ledger import Search
from wakeful.server.http import workflow_shapes as shapes
from wakeful.server.http.etags import if_match, if_match_existing, if_none_match, tag_of
from wakeful.server.http.requests import new_router, read_json, read_object, run_cursor, run_id_of, slug_cursor, text_of
from wakeful.server.http.runs import runs_page
from wakeful.server.http.schedules import ETAG, LIMIT, WARNING, Cursor, IfMatch, IfNoneMatch, Limit, warning_header
from wakeful.server.http.shapes import Outcome, WorkflowRuns, answer, body, problems

WHAT: Final = "workflow"
SKIP_MAX: Final = 1_000
IdPath = Annotated[
    str, Path(alias="id", json_schema_extra={"pattern": f"^{SLUG_PATTERN.pattern}$"}, examples=["inbox"])
]
TopicPath = Annotated[
    str, Path(alias="topic", json_schema_extra={"pattern": f"^{NAME_PATTERN.pattern}$"}, examples=["mail"])
]
RunPath = Annotated[str, Path(alias="run", json_schema_extra={"pattern": "^[0-9]{1,18}$"}, examples=["42"])]
Force = Annotated[bool, Query(description="deploy even if a handler cannot be reached")]
DryRun = Annotated[bool, Query(alias="dryRun", description="check the workflow and call its handlers; change nothing")]
PATCH_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {
            name: {"schema": {"type": "object"}, "example": {"status": "paused"}}
            for name in ("application/json", "application/merge-patch+json")
        },
    }
}


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api/workflows", tags=["workflows"])
    for add in (_add_reads, _add_writes, _add_commands, _add_messages):
        add(router, app)
    return router


def _add_reads(router: APIRouter, app: Wakeful) -> None:
    @router.get("", summary="List workflows", responses={200: answer(shapes.Workflows, "A page."), **problems()})
    async def list_workflows(limit: Limit = LIMIT, cursor: Cursor = None) -> Response:
        """Ordered by name."""
        workflows, following = await app.workflows.page(after=slug_cursor(cursor), limit=limit)
        return JSONResponse({"workflows": workflows, "next": following})

    @router.get(
        "/{id}",
        summary="One workflow",
        responses={200: answer(shapes.Workflow, "The current state.", ETag=ETAG), **problems(404)},
    )
    async def get_workflow(name: IdPath) -> Response:
        return await _shown(app, known_name(name))

    @router.get(
        "/{id}/sessions",
        summary="List the sessions of a workflow",
        responses={200: answer(shapes.Sessions, "Newest first, with their runs and phases."), **problems(404)},
    )
    async def list_sessions(name: IdPath, limit: Limit = LIMIT, cursor: Cursor = None) -> Response:
        sessions, following = await app.workflows.sessions(known_name(name), before_id=run_cursor(cursor), limit=limit)
        return JSONResponse({"sessions": sessions, "next": following})

    @router.get(
        "/{id}/runs",
        summary="List the runs of a workflow",
        responses={200: answer(WorkflowRuns, "Newest first."), **problems(404)},
    )
    async def list_runs(
        name: IdPath,
        limit: Limit = LIMIT,
        cursor: Cursor = None,
        outcome: Annotated[Outcome | None, Query(description="only runs with this outcome")] = None,
    ) -> Response:
        """Runs of its handlers, each with `handler`, and instants at which a producer did not run; also for a removed
        workflow."""
        before_id, known = run_cursor(cursor), known_name(name)
        try:
            wanted = Search(f"workflow:{known}", outcome)
            return await runs_page(app, wanted, limit=limit, before_id=before_id, with_handlers=True)
        except NotFound:
            await _shown(app, known)  # nothing has run yet, or the workflow never existed
            return JSONResponse({"runs": [], "next": None})


def _add_writes(router: APIRouter, app: Wakeful) -> None:
    @router.put(
        "/{id}",
        summary="Deploy a workflow",
        openapi_extra=body(WORKFLOW),
        responses={
            200: answer(shapes.Workflow, "Deployed again.", ETag=ETAG, **{"Wakeful-Warning": WARNING}),
            201: answer(shapes.Workflow, "Created.", ETag=ETAG, Location="its URL", **{"Wakeful-Warning": WARNING}),
            204: {"description": "With `dryRun`: it would be accepted."},
            **problems(409, 412),
        },
    )
    async def put_workflow(
        name: IdPath,
        request: Request,
        force: Force = False,
        dry_run: DryRun = False,
        if_match_header: Annotated[IfMatch, Header(alias="If-Match")] = None,
        if_none_match_header: Annotated[IfNoneMatch, Header(alias="If-None-Match")] = None,
    ) -> Response:
        """The whole definition is checked first (each `prepare` is called once as a dry run); if it is refused, the
        deployed version stays."""
        guard = if_match(if_match_header, WHAT) or if_none_match(if_none_match_header)
        data = await read_json(request)
        deployed = await app.workflows.put(name, data, force=force, guard=guard, is_rehearsal=dry_run)
        if deployed is None:
            return Response(status_code=204)
        created = deployed.is_created
        headers = {"Location": f"/api/workflows/{name}"} if created else {}
        headers |= warning_header(deployed.warnings)
        return await _shown(app, name, status=201 if created else 200, headers=headers)

    @router.patch(
        "/{id}",
        summary="Change fields of a workflow (RFC 7396)",
        openapi_extra=PATCH_BODY,
        responses={200: answer(shapes.Workflow, "The new state.", ETag=ETAG), **problems(404, 409, 412)},
    )
    async def patch_workflow(
        name: IdPath,
        request: Request,
        force: Force = False,
        if_match_header: Annotated[IfMatch, Header(alias="If-Match")] = None,
    ) -> Response:
        """Objects merge, null removes, everything else replaces. The result is deployed like any other definition."""
        changes = await read_json(request)
        if not isinstance(changes, Mapping):
            refuse("", "a patch is a JSON object; write {…}")
        guard = if_match_existing(if_match_header, WHAT)
        deployed = await app.workflows.patch(
            known_name(name), lambda written: changed(written, changes), force=force, guard=guard
        )
        return await _shown(app, name, headers=warning_header(() if deployed is None else deployed.warnings))

    @router.delete(
        "/{id}",
        summary="Remove a workflow",
        status_code=204,
        response_class=Response,
        responses={
            204: {"description": "Removed; a run in progress may finish, and past runs are kept."},
            **problems(404, 409, 412),
        },
    )
    async def delete_workflow(
        name: IdPath, if_match_header: Annotated[IfMatch, Header(alias="If-Match")] = None
    ) -> Response:
        await app.workflows.remove(known_name(name), guard=if_match_existing(if_match_header, WHAT))
        return Response(status_code=204)


def _add_commands(router: APIRouter, app: Wakeful) -> None:
    @router.post(
        "/{id}/run",
        summary="Start a manual session",
        status_code=202,
        responses={
            202: answer(shapes.SessionStarted, "All producers run, then their consumers."),
            **problems(404, 409),
        },
    )
    async def run_workflow(name: IdPath, request: Request) -> Response:
        """409 while it is running, paused, or stopped by an error."""
        await read_object(request, known=())
        return JSONResponse({"sessionId": str(await app.workflows.run(known_name(name)))}, 202)

    @router.post(
        "/{id}/pause",
        summary="Pause a workflow",
        responses={200: answer(shapes.Workflow, "The new state."), **problems(404)},
    )
    async def pause_workflow(name: IdPath, request: Request) -> Response:
        """No handler starts until the workflow is resumed; a running one finishes."""
        await read_object(request, known=())
        await app.workflows.pause(known_name(name))
        return await _shown(app, name)

    @router.post(
        "/{id}/resume",
        summary="Resume a workflow",
        responses={200: answer(shapes.Workflow, "The new state."), **problems(404, 409)},
    )
    async def resume_workflow(name: IdPath, request: Request, force: Force = False) -> Response:
        """Makes the workflow active and clears its error. An uncertain side effect must be resolved instead."""
        await read_object(request, known=())
        await app.workflows.resume(known_name(name), force=force)
        return await _shown(app, name)

    @router.post(
        "/{id}/runs/{run}/resolve",
        summary="Resolve an uncertain side effect",
        openapi_extra=body(shapes.Resolve),
        responses={200: answer(shapes.Workflow, "The new state."), **problems(404, 409)},
    )
    async def resolve_run(name: IdPath, run: RunPath, request: Request) -> Response:
        """`retry` runs it again, `didNotHappen` returns its messages to the topic, `skip` drops them."""
        data = await read_object(request, known=("choice",))
        choice = text_of(data, "choice")
        if choice is None:
            refuse("choice", "is missing; write retry, didNotHappen or skip")
        await app.workflows.resolve(known_name(name), run_id_of(run), choice)
        return await _shown(app, name)


def _add_messages(router: APIRouter, app: Wakeful) -> None:
    @router.get(
        "/{id}/topics/{topic}/messages",
        summary="List the messages of a topic",
        responses={200: answer(shapes.Messages, "In the order they were first published."), **problems(404)},
    )
    async def list_messages(
        name: IdPath,
        topic: TopicPath,
        limit: Limit = LIMIT,
        cursor: Cursor = None,
        status: Annotated[shapes.MessageStatus | None, Query(description="only messages with this status")] = None,
        consumer: Annotated[str | None, Query(description="only messages for this consumer")] = None,
    ) -> Response:
        """A message is listed once for each consumer of the topic."""
        messages, following = await app.workflows.messages(
            known_name(name),
            topic,
            after_place=run_cursor(cursor) or 0,
            limit=limit,
            status=status,
            consumer=consumer,
        )
        return JSONResponse({"messages": messages, "next": following})

    @router.post(
        "/{id}/topics/{topic}/skip",
        summary="Skip messages",
        openapi_extra=body(shapes.Skip),
        responses={200: answer(shapes.Skipped, "Consumers no longer see them."), **problems(404, 409)},
    )
    async def skip_messages(name: IdPath, topic: TopicPath, request: Request) -> Response:
        """All of them or none: 404 if one is unknown, 409 if one is reserved or consumed."""
        data = await read_object(request, known=("ids", "consumer"))
        ids = _ids(data.get("ids"), "skip")
        skipped = await app.workflows.skip(known_name(name), topic, ids, consumer=text_of(data, "consumer"))
        return JSONResponse({"topic": topic, "skipped": skipped})

    @router.post(
        "/{id}/topics/{topic}/replay",
        summary="Make skipped messages pending again",
        status_code=202,
        openapi_extra=body(shapes.ReplayMessages, is_required=False),
        responses={202: answer(shapes.ReplayedMessages, "Consumers see them again."), **problems(404, 409)},
    )
    async def replay_messages(
        name: IdPath,
        topic: TopicPath,
        request: Request,
        dry_run: Annotated[bool, Query(alias="dryRun", description="only count; nothing changes")] = False,
    ) -> Response:
        """All of them or none: 404 if one is unknown, 409 if one is not skipped."""
        data = await read_object(request, known=("ids", "consumer"))
        ids = None if data.get("ids") is None else _ids(data["ids"], "replay")
        consumer = text_of(data, "consumer")
        count = await app.workflows.replay(known_name(name), topic, ids, consumer=consumer, apply=not dry_run)
        return JSONResponse({"topic": topic, "messages": count}, status_code=202)

    @router.post(
        "/{id}/topics/{topic}/messages",
        summary="Publish a message",
        status_code=201,
        openapi_extra=body(shapes.NewMessage),
        responses={
            200: answer(
                shapes.MessagePut, "It existed: updated while pending, otherwise a duplicate that changed nothing."
            ),
            201: answer(shapes.MessagePut, "Published."),
            **problems(404),
        },
    )
    async def publish_message(name: IdPath, topic: TopicPath, request: Request) -> Response:
        """An id is unique in its topic: publishing it again does not create a second message."""
        data = await read_object(request, known=("id", "payload"))
        written = {
            "id": secrets.token_hex(8),
            **{key: value for key, value in data.items() if key != "id" or value is not None},
        }
        (put,) = await app.workflows.publish(known_name(name), [read_message(written, topic)])
        result = {"topic": put.topic, "id": put.message_id, "result": put.fate, "seq": put.seq}
        return JSONResponse(result, 201 if put.fate == "published" else 200)


def _ids(ids: Any, verb: str) -> list[str]:
    if not isinstance(ids, list) or not ids or not all(isinstance(message_id, str) for message_id in ids):
        refuse("ids", 'is not a list of message ids; write for example ["17"]')
    if len(ids) > SKIP_MAX:
        refuse("ids", f"has {len(ids)} ids; {verb} at most {SKIP_MAX} at a time")
    return ids


def known_name(name: str) -> str:
    """A valid workflow name; 404 for any other text."""
    if not SLUG_PATTERN.fullmatch(name):
        raise NotFound(f"there is no workflow {shown(name)}")
    return name


async def _shown(app: Wakeful, name: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    view: dict[str, Any] = await app.workflows.get(name)
    tag = tag_of(view["version"], parse_instant(view["createdAt"]))
    return JSONResponse(view, status, {"ETag": tag, **(headers or {})})
