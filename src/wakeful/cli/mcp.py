"""`wakeful mcp`: agents' tools over MCP on stdin and stdout, for programs that start their own servers.

It is a client of the daemon. Inside a run the run's token says who calls; elsewhere it acts as the agent named by
`--agent`, over the Unix socket, and can do no more than that agent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import click

from wakeful.cli.client import RUN_TOKEN_VARIABLE, Daemon, Refused
from wakeful.cli.errors import Ended
from wakeful.cli.invocation import Invocation, command

NO_DAEMON = "the Wakeful daemon is not running; ask the person to start it with: wakeful up"


@command("mcp")
@click.option(
    "--agent",
    default="default",
    metavar="NAME",
    help="The agent that uses the tools; default: the agent named default.",
)
def mcp_command(invocation: Invocation, agent: str) -> None:
    """Serve the agent tools over MCP on stdin and stdout.

    To register it with an agent program, use: wakeful agents connect NAME. Inside a run, --agent is ignored, and
    the run's agent is used.
    """
    import importlib.util

    if importlib.util.find_spec("mcp") is None:
        raise Ended("MCP needs the package mcp", hint="install it: pip install 'wakeful[mcp]'")
    asyncio.run(_serve(invocation, agent))


async def _serve(invocation: Invocation, agent: str) -> None:
    from mcp.server.stdio import stdio_server

    from wakeful.api.agent_tools import INSTRUCTIONS
    from wakeful.api.tools import TOOLS, Offered, ToolResult
    from wakeful.server.mcp.tools_server import tools_server

    async def offer(_ctx: Any) -> Offered:
        return TOOLS

    async def call(_ctx: Any, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            answer = await asyncio.to_thread(_ask, invocation, agent, name, arguments)
        except Refused as refused:
            return ToolResult({"error": str(refused)}, is_error=True)
        except Ended as ended:  # no daemon: the next call may find one
            return ToolResult({"error": f"{ended}; {NO_DAEMON}"}, is_error=True)
        return ToolResult(answer["content"], answer["isError"])

    server = tools_server(offer, call, INSTRUCTIONS)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _ask(invocation: Invocation, agent: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a tool of the daemon; it is looked up each time, because it may have been restarted."""
    daemon: Daemon = invocation.daemon()
    headers = {} if os.environ.get(RUN_TOKEN_VARIABLE) else {"X-Wakeful-Agent": agent}
    if headers and not daemon.is_on_socket:
        raise Ended("`--agent` needs the daemon's Unix socket, which cannot be used from here")
    path = f"/api/tools/{name}" if name.isidentifier() else "/api/tools/unknown"
    body: dict[str, Any] = daemon.ask("POST", path, body=dict(arguments), headers=headers).body
    return body
