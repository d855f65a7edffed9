"""The workflows feature: what it plugs into the engine, its commands and its queries."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import check_plain, shown
from wakeful.core.refusals import Conflict, NotStarted
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.workflow.answers import NewMessage
from wakeful.core.workflow.definition import STATUSES, WorkflowDefinition
from wakeful.core.workflow.definition_json import check_workflow, clamped_workflow, workflow_from_json
from wakeful.core.workflow.rows import MessageStatus, Origin, Status
from wakeful.core.workflow.rows import Workflow as Row
from wakeful.features.workflows import commands, queries
from wakeful.features.workflows.alarms import CONSUMER, PRODUCER, WorkflowAlarms
from wakeful.features.workflows.commands import Guard
from wakeful.features.workflows.compiled import Compilations, Compiled
from wakeful.features.workflows.deployment import Deployed, deploy
from wakeful.features.workflows.dry_run import rehearse
from wakeful.features.workflows.functions import Functions
from wakeful.features.workflows.handler_action import HandlerAction, HandlerSpec
from wakeful.features.workflows.handler_calls import Answers
from wakeful.features.workflows.modules import Fault, load_all
from wakeful.features.workflows.publishing import Put
from wakeful.features.workflows.python import Workflow
from wakeful.features.workflows.runs import HandlerRuns
from wakeful.features.workflows.state import read_flows, save_flows
from wakeful.features.workflows.upcoming import UpcomingHandlers
from wakeful.features.workflows.why import WhyWorkflow
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.store import Store, Tx

log = logging.getLogger("wakeful.workflows")
T = TypeVar("T")

RECOVER_STEP: Final = 200
RESTORED: Final = "the store was restored from a backup; check the pending messages, then resume the workflow"


class Workflows:
    """All workflows of one store. Created before the store is open: `plug` connects it."""

    def __init__(self, *, modules: Sequence[str] = (), folder: Path | None = None) -> None:
        self._modules = modules
        self._folder = folder  # an extra folder to search for modules
        self.faults: Sequence[Fault] = ()  # modules that could not be loaded
        self._functions = Functions()
        self._is_open = False
        self._is_python_only = False

    def declare(self, name: str) -> Workflow:
        """A workflow declared in Python, deployed at the start. The same name returns the same workflow."""
        known = next((workflow for workflow in self._functions.all if workflow.name == name), None)
        if known is None:
            self.add(known := Workflow(name))
        return known

    @contextmanager
    def python_only(self) -> Iterator[None]:
        """Within this context, refuse handlers that are not functions of this program. For tests on a virtual clock."""
        self._is_python_only = True
        try:
            yield
        finally:
            self._is_python_only = False

    def add(self, workflow: Workflow) -> None:
        """Add a workflow declared elsewhere to this app, before it starts."""
        self._functions.add(workflow)
        workflow.attach(self)

    def plug(
        self,
        store: Store,
        clock: Clock,
        *,
        store_id: str,
        default_zone: Callable[[], str],
        every_min: Callable[[], Duration],
        ring_bell: Callable[[], None],
        listener: ExchangeListener | None = None,
    ) -> FeatureHooks:
        """The hooks for the engine."""
        self._store = store
        self._clock = clock
        self._default_zone = default_zone
        self._every_min = every_min
        self._ring_bell = ring_bell
        self.compilations = Compilations()
        self._answers = Answers(clock, self._functions.ask, listener, is_python_only=self._is_python_only)
        self._is_open = True
        return FeatureHooks(
            alarms=[WorkflowAlarms(self.compilations)],
            keepers=[HandlerRuns(kind, self.compilations, store_id=store_id) for kind in (PRODUCER, CONSUMER)],
            actions={HandlerSpec: HandlerAction(store, clock, self._answers)},
            services=[self],
            upcoming=[UpcomingHandlers(self.compilations)],
            whys={"workflow": WhyWorkflow(self.compilations)},
        )

    # --- background service ------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Deploy the Python workflows, and run every consumer with pending messages once."""
        self._load()
        for workflow in self._functions.all:
            if workflow.is_declared:
                await self._deploy_python(workflow)
        await self._look_at_pending()

    async def stop(self) -> None:
        self._functions.close()
        self._is_open = False

    def _load(self) -> None:
        """Load the workflows of the modules in the settings. A module that fails affects no other."""
        loaded = load_all(self._modules, self._folder)
        self.faults = loaded.faults
        for fault in loaded.faults:
            log.error("workflows of '%s' cannot be loaded (%s); correct [workflows] modules", *fault)
        for workflow in loaded.workflows:
            self.add(workflow)

    async def _deploy_python(self, workflow: Workflow) -> None:
        try:
            definition = workflow.definition
            check_workflow(definition)
            await self._deploy(definition, workflow.status, origin="python", force=True)
        except (Invalid, Conflict) as error:
            if not self._modules:
                raise
            log.error("workflow '%s' cannot be deployed; the current version stays: %s", workflow.name, error)

    async def _look_at_pending(self) -> None:
        now = self._clock.read().now
        after_id: int | None = 0
        while after_id is not None:
            start = after_id
            after_id = await self._store.write(lambda tx, start=start: _flag_step(tx, start, now))  # type: ignore[misc]

    def forgo(self, tx: Tx, now: Instant) -> int:
        """The store was restored from a backup: what was consumed since is unknown, so every workflow stops until a
        person has checked it. No instants are given up."""
        commands.stop_all(tx, RESTORED, now=now)
        return 0

    # --- commands ----------------------------------------------------------------------------------------------------

    async def put(
        self, name: str, data: Any, *, force: bool = False, guard: Guard | None = None, is_rehearsal: bool = False
    ) -> Deployed | None:
        """Deploy a workflow from JSON, after checks and a dry run; with `dry` nothing is written."""
        definition, status = workflow_from_json(data, name=name)
        if is_rehearsal:
            await self._rehearse(definition, status, force=force)
            return None
        return await self._deploy(definition, status, origin="rest", force=force, guard=guard)

    async def patch(
        self, name: str, change: Callable[[dict[str, Any]], Any], *, force: bool = False, guard: Guard | None = None
    ) -> Deployed | None:
        """Deploy a changed definition; `change` gets the stored one, including its status."""
        row = await self._read(lambda tx: queries.find(tx, name))
        data = change({**json.loads(row.definition), "status": row.status})
        if row.origin == "python":
            return await self._change_status(row, data, guard, force=force)
        return await self.put(name, data, force=force, guard=guard)

    async def remove(self, name: str, *, guard: Guard | None = None) -> None:
        await self._command(lambda tx, now: commands.remove(tx, name, self.compilations, now=now, guard=guard))

    async def run(self, name: str) -> int:
        """Start a manual session; returns its id."""
        return await self._command(lambda tx, now: commands.run_now(tx, name, now=now))

    async def pause(self, name: str) -> None:
        await self._command(lambda tx, now: commands.pause(tx, name, now=now))

    async def resume(self, name: str, *, force: bool = False) -> None:
        """Resume a workflow. A version that never had a dry run, such as a draft, gets one now."""
        row = await self._read(lambda tx: queries.find(tx, name))
        tried = await self._try_out(row, force=force)
        await self._command(lambda tx, now: commands.resume(tx, name, self.compilations, tried_version=tried, now=now))

    async def skip(self, name: str, topic: str, message_ids: Sequence[str], *, consumer: str | None = None) -> int:
        """Skip pending messages of a topic, for one consumer or for all; returns how many."""
        return await self._command(
            lambda tx, now: commands.skip_messages(tx, name, topic, message_ids, consumer, now=now)
        )

    async def replay(
        self,
        name: str,
        topic: str,
        message_ids: Sequence[str] | None = None,
        *,
        consumer: str | None = None,
        apply: bool = False,
    ) -> int:
        """Make skipped messages pending again: these, or all of the topic; returns how many. Only with `apply` anything
        changes."""
        return await self._command(
            lambda tx, now: commands.replay_messages(
                tx, name, topic, message_ids, consumer, is_rehearsal=not apply, now=now
            )
        )

    async def publish(self, name: str, messages: Sequence[NewMessage]) -> list[Put]:
        return await self._command(lambda tx, now: commands.publish_now(tx, name, messages, now=now))

    async def resolve(self, name: str, run_id: int, choice: str) -> None:
        """Resolve an uncertain side effect: retry, didNotHappen or skip."""
        await self._command(lambda tx, now: commands.resolve(tx, name, run_id, choice, self.compilations, now=now))

    # --- queries -----------------------------------------------------------------------------------------------------

    async def get(self, name: str) -> dict[str, Any]:
        now = self._clock.read().now
        return await self._read(lambda tx: queries.get(tx, name, self.compilations, now=now))

    async def page(self, *, after: str | None = None, limit: int = 100) -> tuple[list[dict[str, Any]], str | None]:
        now = self._clock.read().now
        return await self._read(lambda tx: queries.page(tx, self.compilations, after=after, limit=limit, now=now))

    async def sessions(
        self, name: str, *, before_id: int | None = None, limit: int = 100
    ) -> tuple[list[dict[str, Any]], str | None]:
        return await self._read(lambda tx: queries.sessions(tx, name, before_id=before_id, limit=limit))

    async def messages(
        self,
        name: str,
        topic: str,
        *,
        after_place: int = 0,
        limit: int = 100,
        status: MessageStatus | None = None,
        consumer: str | None = None,
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Messages of a topic, oldest first, optionally of one status or consumer."""
        return await self._read(
            lambda tx: queries.messages(
                tx, name, topic, after_place=after_place, limit=limit, status=status, consumer=consumer
            )
        )

    # --- internals ---------------------------------------------------------------------------------------------------

    async def _deploy(
        self,
        definition: WorkflowDefinition,
        status: Status | None,
        *,
        origin: Origin,
        force: bool,
        guard: Guard | None = None,
    ) -> Deployed:
        definition, warnings = clamped_workflow(definition, self._every_min())
        for warning in warnings:
            log.warning("workflow '%s': %s", definition.name, warning)
        is_tried = await self._rehearse(definition, status, force=force)
        deployed = await self._command(
            lambda tx, now: deploy(
                tx,
                definition,
                status,
                origin=origin,
                default_zone=self._default_zone(),
                is_tried=is_tried,
                now=now,
                guard=guard,
            )
        )
        return deployed._replace(warnings=(*warnings, *deployed.warnings))

    async def _rehearse(self, definition: WorkflowDefinition, status: Status | None, *, force: bool) -> bool:
        """Dry-run a definition, unless it is a draft: that is tried when it is activated."""
        if status == "draft":
            return False
        states = await self._read(lambda tx: _states(tx, definition.name))
        await rehearse(definition, states, self._answers, force=force)
        return True

    async def _try_out(self, row: Row, *, force: bool) -> int | None:
        """Dry-run the current version if that never happened, and return it in that case."""
        known = self.compilations.of(row)
        if row.tried_version == row.version or not isinstance(known, Compiled):
            return None
        await self._rehearse(known.definition, "active", force=force)
        return row.version

    async def _change_status(self, row: Row, data: Any, guard: Guard | None, *, force: bool) -> Deployed | None:
        """For a workflow declared in Python, only the status can be changed from outside."""
        check_plain(data)
        written = {**json.loads(row.definition), "status": data.get("status") if isinstance(data, Mapping) else None}
        if not isinstance(data, Mapping) or dict(data) != written:
            raise Conflict(f"workflow '{row.name}' is defined by its Python module; change it there")
        status = data.get("status")
        if status is not None and status not in STATUSES:
            raise Invalid(FieldError("status", f"{shown(status)} is not one of {', '.join(STATUSES)}"))
        tried = await self._try_out(row, force=force) if status in ("ready", "active") else None

        def change(tx: Tx, now: Instant) -> None:
            flow = commands.held(tx, row.name)
            if guard is not None:
                guard(flow.workflow)
            is_tried = tried == flow.workflow.version
            commands.set_status(tx, flow, status or flow.workflow.status, now, is_tried=is_tried)

        await self._command(change)
        return None

    async def _command(self, command: Callable[[Tx, Instant], T]) -> T:
        if not self._is_open:
            raise NotStarted
        now = self._clock.read().now
        answer = await self._store.write(lambda tx: command(tx, now))
        self._ring_bell()
        return answer

    async def _read(self, question: Callable[[Tx], T]) -> T:
        if not self._is_open:
            raise NotStarted
        return await self._store.read(question)


def _states(tx: Tx, name: str) -> dict[str, Any]:
    """The stored state of a workflow's handlers. Unreadable state is left out: a dry run works without it, and a run
    that needs it stops its own workflow with the error (L9)."""
    row = tx.workflows.by_names([name]).get(name)
    if row is None:
        return {}
    handlers = tx.workflows.handlers([row.workflow_id]).get(row.workflow_id, ())
    states: dict[str, Any] = {}
    for handler in handlers:
        with suppress(ValueError):
            states |= {} if handler.state is None else {handler.name: json.loads(handler.state)}
    return states


def _flag_step(tx: Tx, after_id: int, now: Instant) -> int | None:
    """Flag the consumers with pending messages of some workflows; returns the last id, None at the end."""
    waiting = tx.workflows.with_pending(after_id=after_id, limit=RECOVER_STEP)
    if not waiting:
        return None
    flows = read_flows(tx, tx.workflows.lock(waiting).values())
    save_flows(tx, [(flow, commands.flag_pending(tx, flow)) for flow in flows.values()], now)
    return max(waiting)
