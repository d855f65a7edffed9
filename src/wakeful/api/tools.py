"""Calling tools: who is offered which, the parameters' schema, reading what a model sends, and refusals as results."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from wakeful.api.actors import Actor, Refused
from wakeful.api.agent_tools import Tools
from wakeful.api.operation import Noun, Operation, Returns, operations_of, perform
from wakeful.api.operator_tools import OperatorTools
from wakeful.api.parameters import Param
from wakeful.app.calling import actor_of_run
from wakeful.core.errors import Invalid, refuse
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.returned import returned
from wakeful.features.schedules.why_owned import without_figures
from wakeful.ports.action import Fire
from wakeful.ports.agent import Toolbox, ToolSpec

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful

Offered: TypeAlias = Mapping[str, Operation[..., Any]]
TOOLS: Final[Offered] = {one.verb: one for one in operations_of(Tools)}
"""Agents' tools by name, in their fixed order."""
_OPERATORS: Final = operations_of(OperatorTools)
_WORDS: Final = {"string": "a text", "integer": "a whole number", "object": "an object", "boolean": "true or false"}
_TYPES: Final[Mapping[str, Any]] = {"string": str, "integer": int, "object": Mapping, "boolean": bool}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's result."""

    content: dict[str, Any]
    is_error: Annotated[bool, "whether it was refused; `content.error` says why"]


class ToolCalls(Noun):
    """Calls of tools by name."""

    @perform(
        "POST /api/tools/{name}",
        "Call an agent tool",
        Returns(returned(ToolResult, name="ToolAnswer"), "What the tool returned, or its refusal."),
        refuses=(404,),
        id="call",
        tag="agents",
        agents=True,
        commands=True,
        body_name="ToolArguments",
        body_says="The arguments of a tool, by name.",
    )
    async def call_tool(self, name: str, arguments: Annotated[Any, Param(where="document")]) -> ToolResult:
        """The tools of `/mcp`, without MCP; only with an agent's or a run's token."""
        agent = self._actor.agent
        if agent is None:
            raise NotFound("there is nothing here")
        return await call_tool(self._app, Actor("agent", agent=agent), name, arguments)


def toolbox(app: "Wakeful") -> Toolbox:
    """The tools for models that are called through a chat endpoint."""

    async def call(fire: Fire, name: str, arguments: Any) -> str:
        agent = await actor_of_run(app, fire.run_id)
        result = await call_tool(app, Actor("agent", agent=agent), name, arguments)
        return json.dumps(result.content, ensure_ascii=False)

    return Toolbox(lambda: [ToolSpec(name, text_of(one), schema_of(one)) for name, one in TOOLS.items()], call)


def offered_to(actor: Actor) -> Offered:
    """The tools of who asks: an agent has its own, and a person's assistant those that its role permits."""
    if actor.role == "agent":
        return TOOLS
    return {one.verb: one for one in _OPERATORS if one.may(actor)}


async def call_tool(app: "Wakeful", actor: Actor, name: str, arguments: Any) -> ToolResult:
    """Perform a tool; a refusal is returned as an error for the model to read."""
    offered = offered_to(actor)
    operation = offered.get(name)
    try:
        if operation is None:
            raise NotFound(f"there is no tool {name[:80]!r}; the tools are {', '.join(offered)}")
        if not isinstance(arguments, Mapping):
            refuse("arguments", "are not a JSON object; write {…}")
        values = values_of(operation, name, arguments)
        result = await operation.awaited(operation.noun(app, actor))(**values)
        content = returned(type(result)).write(result)
        return ToolResult(content if actor.agent is None else without_figures(content), is_error=False)
    except Invalid as invalid:
        errors = [{"field": error.field, "message": error.message} for error in invalid.errors]
        return ToolResult({"error": str(invalid), "errors": errors}, is_error=True)
    except (Conflict, NotFound, Refused) as refused:
        content = {"error": str(refused)}
        limit = getattr(refused, "limit", None)
        return ToolResult(content | ({} if limit is None else {"limit": limit}), is_error=True)


def text_of(operation: Operation[..., Any]) -> str:
    """What a model is told about a tool."""
    return " ".join(operation.says.split())


def schema_of(operation: Operation[..., Any]) -> dict[str, Any]:
    """The JSON Schema of its parameters."""
    return {
        "type": "object",
        "properties": {
            one.name: {**_one(one.schema), **({"description": one.about.says} if one.about.says else {})}
            for one in operation.parameters
        },
        "required": [one.name for one in operation.parameters if one.is_required],
        "additionalProperties": False,
    }


def values_of(operation: Operation[..., Any], tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operation from what an agent sends; refused by name."""
    known = {one.name: one for one in operation.parameters}
    values = {}
    for name, value in given.items():
        if name not in known:
            refuse(str(name)[:80], f"is not a parameter of {tool}; it has {', '.join(known) or 'none'}")
        one = known[name]
        if value is None and not one.is_required:
            continue
        schema = _one(one.schema)
        kind, allowed = schema["type"], schema.get("enum")
        if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
            refuse(name, f"is not {_WORDS[kind]}")
        if allowed and value not in allowed:
            refuse(name, f"{value!r} is not one of {', '.join(allowed)}")
        values[one.attribute] = one.checked(value)
    for name, one in known.items():
        if one.is_required and one.attribute not in values:
            refuse(name, f"is missing; {tool} needs it")
    return values


def _one(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Without null, and without what agents need not know."""
    one = schema["anyOf"][0] if "anyOf" in schema else schema
    return {key: value for key, value in one.items() if key not in ("examples", "pattern", "title", "format")}
