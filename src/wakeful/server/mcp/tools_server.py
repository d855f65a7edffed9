"""An MCP server with the tools of who asks, for any transport."""

import json
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from wakeful.api.operation import Operation
from wakeful.api.tools import Offered, ToolResult, schema_of, text_of

Context: TypeAlias = ServerRequestContext[Any, Any]
Call: TypeAlias = Callable[[Context, str, Mapping[str, Any]], Awaitable[ToolResult]]
"""Performs a tool for who sent this request."""
Offer: TypeAlias = Callable[[Context], Awaitable[Offered]]
"""The tools of who sent this request."""


def tools_server(offer: Offer, call: Call, instructions: str) -> Server[Any]:
    """The server; `offer` and `call` know who is asking."""

    async def list_tools(ctx: Context, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in (await offer(ctx)).values()])

    async def call_one(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        result = await call(ctx, params.name, params.arguments or {})
        text = json.dumps(result.content, ensure_ascii=False, indent=2)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=result.content,
            is_error=result.is_error,
        )

    return Server(
        "wakeful",
        version=version("wakeful"),
        title="Wakeful",
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_one,
    )


_REPEATING: Final = frozenset({"wake_me", "run_now", "replay"})
"""Tools that do something more each time."""


def _described(tool: Operation[..., Any]) -> types.Tool:
    hint = tool.about.get("hint")
    return types.Tool(
        name=tool.verb,
        title=tool.summary,
        description=text_of(tool),
        input_schema=schema_of(tool),
        output_schema={"type": "object"},
        annotations=types.ToolAnnotations(
            title=tool.summary,
            read_only_hint=hint == "reads",
            destructive_hint=hint == "destroys",
            idempotent_hint=tool.verb not in _REPEATING,
            open_world_hint=False,
        ),
    )
