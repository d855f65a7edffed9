"""Compiled workflow definitions, cached by version: a stored text is parsed once and not at every run."""

from typing import Final, NamedTuple, TypeAlias

from wakeful.core.workflow.definition import Handling, WorkflowDefinition
from wakeful.core.workflow.definition_json import decode_workflow
from wakeful.core.workflow.rows import Workflow
from wakeful.core.workflow.rules import looping

KEPT_MAX: Final = 16_384


class Compiled(NamedTuple):
    """One version of one workflow."""

    version: int
    definition: WorkflowDefinition
    handlers: dict[str, Handling]
    looping: frozenset[str]  # consumers whose messages may lead back to them


class Broken(NamedTuple):
    """A stored definition that can no longer be read (e.g. its zone was removed)."""

    version: int
    reason: str


Known: TypeAlias = Compiled | Broken


class Compilations:
    """A bounded cache of compiled definitions, keyed by workflow and valid for one version."""

    def __init__(self, *, kept_max: int = KEPT_MAX) -> None:
        # Two generations: a full one becomes the old one, and entries still in use move over.
        self._kept: dict[int, Known] = {}
        self._older: dict[int, Known] = {}
        self._kept_max = kept_max // 2
        self.read = 0  # how many texts were parsed; tests check that none is parsed twice

    def of(self, workflow: Workflow) -> Known:
        """The definition of this workflow in this version."""
        workflow_id = workflow.workflow_id
        known = self._kept.get(workflow_id) or self._older.get(workflow_id)
        if known is None or known.version != workflow.version:
            known = self._read(workflow)
        if workflow_id not in self._kept or self._kept[workflow_id] is not known:
            if len(self._kept) >= self._kept_max:
                self._older, self._kept = self._kept, {}
            self._kept[workflow_id] = known
        return known

    def _read(self, workflow: Workflow) -> Known:
        self.read += 1
        try:
            return compiled(workflow.version, decode_workflow(workflow.definition))
        except Exception as error:  # a bad stored text affects only this workflow (L9)
            return Broken(workflow.version, str(error) or type(error).__name__)


def compiled(version: int, definition: WorkflowDefinition) -> Compiled:
    """Compile a definition."""
    handlers = {handler.name: handler for handler in definition.handlers}
    return Compiled(version, definition, handlers, looping(definition.consumers))
