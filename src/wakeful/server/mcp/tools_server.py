"""An MCP server with agents' tools, for any transport."""

import json
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from wakeful.api.agent_tools import INSTRUCTIONS
from wakeful.api.operation import Operation
from wakeful.api.tools import TOOLS, ToolResult, schema_of, text_of

Context: TypeAlias = ServerRequestContext[Any, Any]
Call: TypeAlias = Callable[[Context, str, Mapping[str, Any]], Awaitable[ToolResult]]
"""Performs a tool for the agent of this request."""


def tools_server(call: Call) -> Server[Any]:
    """The server; `call` knows who is asking."""

    async def list_tools(_ctx: Context, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS.values()])

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
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_one,
    )


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
            idempotent_hint=tool.verb != "wake_me",
            open_world_hint=False,
        ),
    )
