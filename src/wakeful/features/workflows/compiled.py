"""Compiled workflow definitions, cached by version: stored text is parsed once, not at every run."""

from typing import NamedTuple, TypeAlias

from wakeful.core.workflow.definition import Handling, WorkflowDefinition
from wakeful.core.workflow.definition_json import decode_workflow
from wakeful.core.workflow.rows import Workflow
from wakeful.core.workflow.rules import looping
from wakeful.ports.version_cache import VersionCache


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
    """Compiled definitions, cached by workflow."""

    def __init__(self) -> None:
        self._cache: VersionCache[Known] = VersionCache()

    def of(self, workflow: Workflow) -> Known:
        """The definition of this workflow in this version."""
        known = self._cache.get(workflow.workflow_id, workflow.version)
        if known is None:
            known = _read(workflow)
            self._cache.keep(workflow.workflow_id, known)
        return known


def _read(workflow: Workflow) -> Known:
    try:
        return compiled(workflow.version, decode_workflow(workflow.definition))
    except Exception as error:  # a bad stored text affects only this workflow (L9)
        return Broken(workflow.version, str(error) or type(error).__name__)


def compiled(version: int, definition: WorkflowDefinition) -> Compiled:
    handlers = {handler.name: handler for handler in definition.handlers}
    return Compiled(version, definition, handlers, looping(definition.consumers))
