"""The workflows feature: what it plugs into the engine, and the commands that call handlers first."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import check_plain, shown
from wakeful.core.refusals import Conflict, NotStarted
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.workflow.definition import STATUSES, STOPPED, WorkflowDefinition
from wakeful.core.workflow.definition_json import check_workflow, clamped_workflow, workflow_from_json
from wakeful.core.workflow.rows import Origin, Status
from wakeful.core.workflow.rows import Workflow as Row
from wakeful.engine.membership import Identity
from wakeful.features.workflows import commands, queries
from wakeful.features.workflows.alarms import CONSUMER, PRODUCER, WorkflowAlarms
from wakeful.features.workflows.commands import Guard
from wakeful.features.workflows.compiled import Compilations, Compiled
from wakeful.features.workflows.deployment import Deployed, deploy
from wakeful.features.workflows.dry_run import rehearse
from wakeful.features.workflows.functions import Functions
from wakeful.features.workflows.handler_action import HandlerAction, HandlerSpec
from wakeful.features.workflows.handler_calls import Answers
from wakeful.features.workflows.loading import LEFT_FOR, note_ended, note_loaded
from wakeful.features.workflows.message_rows import Messages
from wakeful.features.workflows.modules import Fault, load_all
from wakeful.features.workflows.pruning import prune
from wakeful.features.workflows.python import Workflow, WorkflowCommands
from wakeful.features.workflows.runs import HandlerRuns
from wakeful.features.workflows.state import read_flows, save_flows
from wakeful.features.workflows.state_rows import Handlers
from wakeful.features.workflows.upcoming import UpcomingHandlers
from wakeful.features.workflows.why import WhyWorkflow
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.store import Store, StoreUnavailable, Tx
from wakeful.ports.workflows import StoredWorkflows

log = logging.getLogger("wakeful.workflows")
T = TypeVar("T")
Then: TypeAlias = Callable[[Tx, Instant, Deployed], T]
"""Makes the result of a deployment, in its transaction."""

RECOVER_STEP: Final = 200
RESTORED: Final = "the store was restored from a backup; check the pending messages, then resume the workflow"


class Workflows:
    """All workflows of one store. Created before the store is open: `plug` connects it."""

    def __init__(
        self,
        *,
        modules: Sequence[str] = (),
        folder: Path | None = None,
        operations: Callable[[], WorkflowCommands] | None = None,
    ) -> None:
        self._modules = modules
        self._folder = folder  # an extra folder to search for modules
        self._operations = operations  # what workflows declared in Python ask
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
        if self._operations is not None:
            workflow.attach(self._operations())

    def plug(
        self,
        store: Store,
        clock: Clock,
        *,
        store_id: str,
        default_zone: Callable[[], str],
        every_min: Callable[[], Duration],
        ring_bell: Callable[[], None],
        process: Identity,
        listener: ExchangeListener | None = None,
    ) -> FeatureHooks:
        """The hooks for the engine."""
        self._store = store
        self._clock = clock
        self._default_zone = default_zone
        self._every_min = every_min
        self._ring_bell = ring_bell
        self._process = process
        self.compilations = Compilations()
        self._answers = Answers(clock, self._functions.ask, listener, is_python_only=self._is_python_only)
        self._is_open = True
        left_for = 0 if store.is_exclusive else LEFT_FOR
        return FeatureHooks(
            alarms=[WorkflowAlarms(self.compilations, self._loaded, left_for=left_for)],
            keepers=[
                HandlerRuns(kind, self.compilations, self._functions.has, left_for=left_for, store_id=store_id)
                for kind in (PRODUCER, CONSUMER)
            ],
            actions={HandlerSpec: HandlerAction(store, clock, self._answers)},
            services=[self],
            upcoming=[UpcomingHandlers(self.compilations)],
            whys={"workflow": WhyWorkflow(self.compilations)},
            forgo=[self._forgo],
            prunes=[prune],
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
        if self._is_open and self._functions.names:
            now = self._clock.read().now
            try:
                await self._store.write(lambda tx: note_ended(tx, self._process, now=now))
            except StoreUnavailable as error:
                log.warning("cannot record that the Python workflows of this process are gone: %s", error)
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
            await self._deploy(definition, workflow.status, origin="python", force=True, then=lambda *_: None)
        except (Invalid, Conflict) as error:
            if not self._modules:
                raise
            log.error("workflow '%s' cannot be deployed; the current version stays: %s", workflow.name, error)

    async def _look_at_pending(self) -> None:
        """Run every consumer with pending messages once. The first step also registers what this process loaded."""
        now, names = self._clock.read().now, self._functions.names

        def step(tx: Tx, after_id: int) -> int | None:
            if not after_id:
                note_loaded(tx, names, self._process, now=now)
            return _flag_step(tx, after_id, now)

        after_id: int | None = 0
        while after_id is not None:
            after_id = await self._store.write(partial(step, after_id=after_id))

    def _forgo(self, tx: Tx, now: Instant) -> int:
        """The store was restored from a backup: what was consumed since is unknown, so every workflow stops until a
        person has checked it. No instants are given up."""
        commands.stop_all(tx, RESTORED, now=now)
        return 0

    # --- commands that call handlers first ---------------------------------------------------------------------------

    async def check(self, name: str, data: Any, *, force: bool = False) -> None:
        """Check a workflow and dry-run it; nothing is written."""
        definition, status = workflow_from_json(data, name=name)
        await self._rehearse(definition, status, force=force)

    async def put(self, name: str, data: Any, *, then: Then[T], force: bool = False, guard: Guard | None = None) -> T:
        """Deploy a workflow from JSON, after checks and a dry run; `then` is called in the same transaction."""
        definition, status = workflow_from_json(data, name=name)
        return await self._deploy(definition, status, origin="rest", force=force, guard=guard, then=then)

    async def patch(
        self,
        name: str,
        change: Callable[[dict[str, Any]], Any],
        *,
        then: Then[T],
        force: bool = False,
        guard: Guard | None = None,
    ) -> T:
        """Deploy a changed definition; `change` gets the stored one, including its status."""
        row = await self._read(lambda tx: queries.find(tx, name))
        data = change({**json.loads(row.definition), "status": row.status})
        if row.origin == "python":
            return await self._change_status(row, data, guard, force=force, then=then)
        return await self.put(name, data, force=force, guard=guard, then=then)

    async def try_out(self, name: str, *, force: bool = False) -> int | None:
        """Dry-run the current version if that never happened, such as for a draft, and return it in that case."""
        row = await self._read(lambda tx: queries.find(tx, name))
        known = self.compilations.of(row)
        if row.tried_version == row.version or not isinstance(known, Compiled):
            return None
        if not all(self._functions.has(name, handler) for handler in known.definition.handlers):
            return None  # the process that has the functions tries them when it starts
        await self._rehearse(known.definition, "active", force=force)
        return row.version

    def _loaded(self) -> list[str]:
        return self._functions.names

    # --- internals ---------------------------------------------------------------------------------------------------

    async def _deploy(
        self,
        definition: WorkflowDefinition,
        status: Status | None,
        *,
        origin: Origin,
        force: bool,
        then: Then[T],
        guard: Guard | None = None,
    ) -> T:
        definition, warnings = clamped_workflow(definition, self._every_min())
        for warning in warnings:
            log.warning("workflow '%s': %s", definition.name, warning)
        is_tried = await self._rehearse(definition, status, force=force)

        def write(tx: Tx, now: Instant) -> T:
            zone = self._default_zone()
            deployed = deploy(
                tx, definition, status, origin=origin, default_zone=zone, is_tried=is_tried, now=now, guard=guard
            )
            return then(tx, now, deployed._replace(warnings=(*warnings, *deployed.warnings)))

        return await self._command(write)

    async def _rehearse(self, definition: WorkflowDefinition, status: Status | None, *, force: bool) -> bool:
        """Dry-run a definition, unless it is a draft: that is tried when it is activated."""
        if status == "draft":
            return False
        states = await self._read(lambda tx: _states(tx, definition.name))
        await rehearse(definition, states, self._answers, force=force)
        return True

    async def _change_status(self, row: Row, data: Any, guard: Guard | None, *, force: bool, then: Then[T]) -> T:
        """For a workflow declared in Python, only the status can be changed from outside."""
        check_plain(data)
        written = {**json.loads(row.definition), "status": data.get("status") if isinstance(data, Mapping) else None}
        if not isinstance(data, Mapping) or dict(data) != written:
            raise Conflict(f"workflow '{row.name}' is defined by its Python module; change it there")
        status = None if data.get("status") == STOPPED else data.get("status")
        if status is not None and status not in STATUSES:
            raise Invalid(FieldError("status", f"{shown(status)} is not one of {', '.join(STATUSES)}"))
        tried = await self.try_out(row.name, force=force) if status in ("ready", "active") else None

        def change(tx: Tx, now: Instant) -> T:
            flow = commands.held(tx, row.name)
            if guard is not None:
                guard(flow.workflow)
            is_tried = tried == flow.workflow.version
            commands.set_status(tx, flow, status or flow.workflow.status, now, is_tried=is_tried)
            return then(tx, now, Deployed(row.name, False))

        return await self._command(change)

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
    row = tx[StoredWorkflows].by_names([name]).get(name)
    if row is None:
        return {}
    handlers = tx[Handlers].of([row.workflow_id]).get(row.workflow_id, ())
    states: dict[str, Any] = {}
    for handler in handlers:
        with suppress(ValueError):
            states |= {} if handler.state is None else {handler.name: json.loads(handler.state)}
    return states


def _flag_step(tx: Tx, after_id: int, now: Instant) -> int | None:
    """Flag the consumers with pending messages of some workflows; returns the last id, None at the end."""
    waiting = tx[Messages].with_pending(after_id=after_id, limit=RECOVER_STEP)
    if not waiting:
        return None
    flows = read_flows(tx, tx[StoredWorkflows].lock(waiting).values())
    save_flows(tx, [(flow, commands.flag_pending(tx, flow)) for flow in flows.values()], now)
    return max(waiting)
