"""`/mcp`: streamable HTTP on the daemon. An agent's or a run's token has agents' tools; a token of the role `read` or
`operate`, which a person gives to an assistant, has operator tools. Every request is independent: there are no
sessions, and each request's token identifies the caller."""

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.api import agent_tools, operator_tools
from wakeful.api.actors import Actor
from wakeful.api.python import Wakeful
from wakeful.api.tools import Offered, ToolResult, call_tool, offered_to
from wakeful.integrations.system.threads import in_thread
from wakeful.server.http.access import caller_of
from wakeful.server.http.actors import actor_of
from wakeful.server.http.problems import Problem
from wakeful.server.http.serving import Api

NOT_INSTALLED: Final = "MCP needs the package mcp; install it with: pip install 'wakeful[mcp]', and restart the daemon"
NOT_OFFERED: Final = (
    '/mcp needs the token of an agent ([tokens.NAME] with role = "agent") or of a run, or for an assistant of yours a '
    'token with role = "operate" or "read"; what needs the role admin is not offered over MCP. To act as an agent, use '
    "`wakeful mcp --agent NAME`"
)


def is_installed() -> bool:
    """Whether the SDK is installed."""
    return importlib.util.find_spec("mcp") is not None


def _load() -> None:
    importlib.import_module("wakeful.server.mcp.tools_server")


async def respond_to_mcp(api: Api, _request: Request) -> ASGIApp:
    """The transport reads the request itself."""
    return api.mcp


class McpEndpoint:
    """The ASGI application at `/mcp`."""

    def __init__(self, app: Wakeful) -> None:
        self._app = app
        self._servers: dict[bool, Any] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_installed():
            await Problem(501, NOT_INSTALLED)(scope, receive, send)
            return
        actor = await self._actor(scope)
        if actor is None:
            await Problem(403, NOT_OFFERED)(scope, receive, send)
            return
        server = await self._server(is_agent=actor.agent is not None)
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        # Host and Origin were checked by the middleware in front of every route.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True, security_settings=security)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    async def _server(self, *, is_agent: bool) -> Any:
        """The server for agents, or for people's assistants: they differ in what a model is told about them."""
        if is_agent not in self._servers:
            await in_thread(_load, name="mcp")  # the import takes a second, and must not hold up the clock
            from wakeful.server.mcp.tools_server import tools_server

            instructions = agent_tools.INSTRUCTIONS if is_agent else operator_tools.INSTRUCTIONS
            self._servers[is_agent] = tools_server(self._offer, self._call, instructions)
        return self._servers[is_agent]

    async def _actor(self, scope: Scope) -> Actor | None:
        """Who is offered tools; None for who has rights that no model should have, and for an agent that is gone."""
        caller, actor = caller_of(scope), await actor_of(self._app, scope)
        is_operator = caller is not None and caller.role in ("read", "operate")
        return actor if is_operator or actor.agent is not None else None

    async def _offer(self, ctx: Any) -> Offered:
        actor = await self._actor(ctx.request.scope)
        return {} if actor is None else offered_to(actor)

    async def _call(self, ctx: Any, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        actor = await self._actor(ctx.request.scope)
        if actor is None:
            return ToolResult({"error": NOT_OFFERED}, is_error=True)
        return await call_tool(self._app, actor, name, arguments)
