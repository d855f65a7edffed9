"""Workflows: what can be asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from wakeful.api.etags import if_match as stored
from wakeful.api.etags import if_match_existing as existing
from wakeful.api.etags import if_none_match as absent
from wakeful.api.etags import tag_of
from wakeful.api.operation import Blocking, Returns, perform, read, write
from wakeful.api.parameters import Param
from wakeful.api.patches import patch_body
from wakeful.api.reading import is_mapping, run_id_of
from wakeful.api.replies import Reply
from wakeful.api.run_pages import WORKFLOW_RUNS, WorkflowRunsPage, workflow_runs
from wakeful.api.shared_parameters import IdCursor, IfMatch, IfNoneMatch, Limit, OfOutcome, SlugCursor
from wakeful.api.workflow_messages import ID_SCHEMA, IdPath, WorkflowMessages
from wakeful.app.merging import changed
from wakeful.core.refusals import NotFound
from wakeful.core.returned import RUN_ID, returned
from wakeful.core.time.instants import Instant
from wakeful.core.workflow.definition import WORKFLOW as DEFINITION
from wakeful.features.schedules.views import encode
from wakeful.features.workflows import commands, queries
from wakeful.features.workflows.commands import Choice
from wakeful.features.workflows.compiled import Compilations
from wakeful.features.workflows.deployment import Deployed
from wakeful.features.workflows.python import Workflow
from wakeful.features.workflows.views import WORKFLOW, SessionsPage, SessionStarted, WorkflowsPage, WorkflowView
from wakeful.ports.store import Tx

WHAT: Final = "workflow"
ETAG: Final = {"ETag": "version of the definition"}
WARNED: Final = {**ETAG, "Wakeful-Warning": "a warning about the definition, if any"}
NEW_STATE: Final = Returns(WORKFLOW, "The new state.")
Force: TypeAlias = Annotated[bool, Param("deploy even if a handler cannot be reached", where="query")]


@dataclass(frozen=True, slots=True)
class WrittenWorkflow:
    """A workflow that was deployed."""

    view: WorkflowView
    is_created: bool
    warnings: tuple[str, ...] = ()  # for its author


def shown(view: WorkflowView) -> Reply:
    return Reply(encode(WORKFLOW.write(view)), 200, {"ETag": tag_of(view.version, view.created_at)})


def written(done: WrittenWorkflow | None) -> Reply:
    """A deployed workflow; 204 if it was only checked."""
    if done is None:
        return Reply("", 204)
    reply = shown(done.view)
    headers = {**reply.headers, **({"Wakeful-Warning": "; ".join(done.warnings)} if done.warnings else {})}
    if done.is_created:
        return Reply(reply.text, 201, {**headers, "Location": f"/api/workflows/{done.view.id}"})
    return Reply(reply.text, 200, headers)


class Workflows(WorkflowMessages):
    """Workflows: deploy, list, run, pause, resolve; and their messages."""

    def add(self, workflow: Workflow) -> None:
        """Add a workflow that was declared elsewhere, before the app starts."""
        self._app._workflows.add(workflow)

    @read(
        "GET /api/workflows",
        "List workflows",
        Returns(returned(WorkflowsPage, name="Workflows"), "A page."),
        id="list_workflows",
    )
    def list(self, tx: Tx, now: Instant, *, limit: Limit = 100, cursor: SlugCursor = None) -> WorkflowsPage:
        """Ordered by name."""
        return queries.page(tx, self._app._workflows.compilations, after=cursor, limit=limit, now=now)

    @read(
        "GET /api/workflows/{id}",
        "One workflow",
        Returns(WORKFLOW, "The current state.", ETAG),
        refuses=(404,),
        id="get_workflow",
        reply=shown,
    )
    def get(self, tx: Tx, now: Instant, name: IdPath) -> WorkflowView:
        return self._seen(tx, name, now)

    @read(
        "GET /api/workflows/{id}/sessions",
        "List the sessions of a workflow",
        Returns(returned(SessionsPage, name="Sessions"), "Newest first, with their runs and phases."),
        refuses=(404,),
        id="list_sessions",
    )
    def sessions(
        self, tx: Tx, now: Instant, name: IdPath, *, limit: Limit = 100, cursor: IdCursor = None
    ) -> SessionsPage:
        return queries.sessions(tx, name, before_id=cursor, limit=limit)

    @read("GET /api/workflows/{id}/runs", "List the runs of a workflow", WORKFLOW_RUNS, refuses=(404,), id="list_runs")
    def runs(
        self,
        tx: Tx,
        now: Instant,
        name: IdPath,
        *,
        limit: Limit = 100,
        cursor: IdCursor = None,
        outcome: OfOutcome = None,
    ) -> WorkflowRunsPage:
        """Runs of its handlers, each with `handler`, and instants at which a producer did not run; also for a removed
        workflow."""
        try:
            return workflow_runs(tx, name, outcome, limit=limit, before_id=cursor)
        except NotFound:
            queries.find(tx, name)  # nothing has run yet, or the workflow never existed
            return WorkflowRunsPage([], None)

    @perform(
        "PUT /api/workflows/{id}",
        "Deploy a workflow",
        Returns(WORKFLOW, "Deployed again.", WARNED),
        Returns(WORKFLOW, "Created.", {**WARNED, "Location": "its URL"}),
        Returns(None, "With `dryRun`: it would be accepted."),
        statuses=(200, 201, 204),
        refuses=(409, 412),
        least="admin",
        id="put_workflow",
        reply=written,
    )
    async def put(
        self,
        name: Annotated[str, Param(name="id", schema=ID_SCHEMA)],
        definition: Annotated[Mapping[str, Any], Param(where="document", schema=DEFINITION)],
        *,
        force: Force = False,
        dry_run: Annotated[
            bool, Param("check the workflow and call its handlers; change nothing", where="query")
        ] = False,
        if_match: IfMatch = None,
        if_none_match: IfNoneMatch = None,
    ) -> WrittenWorkflow | None:
        """The whole definition is checked first (each `prepare` is called once as a dry run); if it is refused, the
        deployed version stays."""
        guard = stored(if_match, WHAT) or absent(if_none_match)
        if dry_run:
            await self._app._workflows.check(name, definition, force=force)
            return None
        return await self._app._workflows.put(name, definition, force=force, guard=guard, then=_deployed)

    @perform(
        "PATCH /api/workflows/{id}",
        "Change fields of a workflow (RFC 7396)",
        Returns(WORKFLOW, "The new state.", ETAG),
        refuses=(404, 409, 412),
        least="admin",
        id="patch_workflow",
        reply=written,
        body=patch_body({"status": "paused"}),
    )
    async def patch(
        self,
        name: IdPath,
        changes: Annotated[Mapping[str, Any], Param(where="document", read=is_mapping)],
        *,
        force: Force = False,
        if_match: IfMatch = None,
    ) -> WrittenWorkflow:
        """Objects merge, null removes, everything else replaces. The result is deployed like any other definition."""
        guard = existing(if_match, WHAT)
        return await self._app._workflows.patch(
            name, lambda definition: changed(definition, changes), force=force, guard=guard, then=_deployed
        )

    @write(
        "DELETE /api/workflows/{id}",
        "Remove a workflow",
        Returns(None, "Removed; a run in progress may finish, and past runs are kept."),
        statuses=(204,),
        refuses=(404, 409, 412),
        least="admin",
        id="delete_workflow",
    )
    def remove(self, tx: Tx, now: Instant, name: IdPath, *, if_match: IfMatch = None) -> None:
        commands.remove(tx, name, self._app._workflows.compilations, now=now, guard=existing(if_match, WHAT))

    @write(
        "POST /api/workflows/{id}/run",
        "Start a manual session",
        Returns(returned(SessionStarted), "All producers run, then their consumers."),
        statuses=(202,),
        refuses=(404, 409),
        id="run_workflow",
    )
    def run(self, tx: Tx, now: Instant, name: IdPath) -> SessionStarted:
        """409 while it is running, paused, or stopped by an error."""
        return SessionStarted(commands.run_now(tx, name, now=now))

    @write(
        "POST /api/workflows/{id}/pause",
        "Pause a workflow",
        NEW_STATE,
        refuses=(404,),
        id="pause_workflow",
        reply=shown,
    )
    def pause(self, tx: Tx, now: Instant, name: IdPath) -> WorkflowView:
        """No handler starts until the workflow is resumed; a running one finishes."""
        commands.pause(tx, name, now=now)
        return self._seen(tx, name, now)

    @perform(
        "POST /api/workflows/{id}/resume",
        "Resume a workflow",
        NEW_STATE,
        refuses=(404, 409),
        id="resume_workflow",
        reply=shown,
    )
    async def resume(self, name: IdPath, *, force: Force = False) -> WorkflowView:
        """Makes the workflow active and clears its error. An uncertain side effect must be resolved instead."""
        flows = self._app._workflows
        tried = await flows.try_out(name, force=force)

        def resumed(tx: Tx, now: Instant) -> WorkflowView:
            commands.resume(tx, name, flows.compilations, tried_version=tried, now=now)
            return self._seen(tx, name, now)

        return await self._app._command(resumed)

    @write(
        "POST /api/workflows/{id}/runs/{run}/resolve",
        "Resolve an uncertain side effect",
        NEW_STATE,
        refuses=(404, 409),
        id="resolve_run",
        reply=shown,
        body_name="Resolve",
        body_says="A person's decision about an uncertain side effect.",
    )
    def resolve(
        self,
        tx: Tx,
        now: Instant,
        name: IdPath,
        run_id: Annotated[int, Param(name="run", schema=RUN_ID.schema, read=run_id_of)],
        choice: Annotated[Choice, Param(read=str, missing="write retry, didNotHappen or skip")],
    ) -> WorkflowView:
        """`retry` runs it again, `didNotHappen` returns its messages to the topic, `skip` drops them."""
        commands.resolve(tx, name, run_id, choice, self._app._workflows.compilations, now=now)
        return self._seen(tx, name, now)

    def _seen(self, tx: Tx, name: str, now: Instant) -> WorkflowView:
        return queries.get(tx, name, self._app._workflows.compilations, now=now)


def _deployed(tx: Tx, now: Instant, deployed: Deployed) -> WrittenWorkflow:
    # The definition is not cached: this transaction may be rolled back, and its version used for another text.
    view = queries.get(tx, deployed.name, Compilations(), now=now)
    return WrittenWorkflow(view, deployed.is_created, deployed.warnings)


class BlockingWorkflows(Workflows, Blocking):
    """Workflows, for programs without an event loop."""
