"""Dry run: tries the handlers of a workflow before its definition is written."""

from collections.abc import Mapping
from typing import Any

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.run.runs import RungName
from wakeful.core.workflow.answers import WrongAnswer, read_prepared
from wakeful.core.workflow.definition import Consumer, Producer, WorkflowDefinition
from wakeful.features.workflows.handler_calls import Answers, HandlerFailure, HandlerRequest
from wakeful.ports.action import Fire, Process


class _Unrecorded:
    """A ladder for calls without a ledger row."""

    async def climb(self, rung: RungName, *, process: Process | None = None) -> None: ...


async def rehearse(definition: WorkflowDefinition, states: Mapping[str, Any], answers: Answers, *, force: bool) -> None:
    """Call each `prepare` once, dry and without messages. Raises `Invalid` naming every handler that fails.

    `force` accepts a handler that cannot be reached; one that returns the wrong shape is always refused."""
    errors: list[FieldError] = []
    for handler in definition.handlers:
        kind = "producers" if isinstance(handler, Producer) else "consumers"
        place = f"{kind}.{handler.name}.handler"
        wrong = answers.check(handler.answerer)
        if wrong is None and isinstance(handler, Consumer):
            wrong = await _try_prepare(definition.name, handler, states.get(handler.name), answers, force=force)
        if wrong is not None:
            errors.append(FieldError(place, wrong))
    if errors:
        raise Invalid(*errors)


async def _try_prepare(workflow: str, consumer: Consumer, state: Any, answers: Answers, *, force: bool) -> str | None:
    question = HandlerRequest(
        workflow, consumer.name, "0", "prepare", state, True, {"messages": {topic: [] for topic in consumer.subscribe}}
    )  # fmt: skip
    fire = Fire(0, 0, f"workflow:{workflow}", 0, 0, "manual", 1, f"dry-{workflow}-{consumer.name}")
    try:
        answer = await answers.ask(consumer, question, fire, _Unrecorded())
        if isinstance(answer, dict):
            answer.pop("usage", None)  # there is no run to charge it to
        prepared = read_prepared(answer, subscribe=consumer.subscribe)
    except HandlerFailure as trouble:
        if force and trouble.is_transient:
            return None
        cure = "; deploy with force to skip this check" if trouble.is_transient else ""
        return f"the dry run of its prepare failed: {trouble}{cure}"
    except WrongAnswer as wrong:
        return f"the dry run of its prepare {wrong}"
    if prepared.size:
        return "the dry run of its prepare reserved messages although it got none; reserve only messages you were given"
    return None
