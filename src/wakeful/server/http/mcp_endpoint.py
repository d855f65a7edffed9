"""`/mcp`: streamable HTTP on the daemon, for callers with an agent's or a run's token. Every request is independent:
there are no sessions, and each request's token identifies the caller."""

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.api.python import Wakeful
from wakeful.api.tools import ToolResult, call_tool
from wakeful.integrations.system.threads import in_thread
from wakeful.server.http.actors import actor_of
from wakeful.server.http.problems import Problem
from wakeful.server.http.serving import Api

NOT_INSTALLED: Final = "MCP needs the package mcp; install it with: pip install 'wakeful[mcp]', and restart the daemon"
NOT_AN_AGENT: Final = (
    '/mcp needs the token of an agent ([tokens.NAME] with role = "agent") or of a run; otherwise use '
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
        self._server: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_installed():
            await Problem(501, NOT_INSTALLED)(scope, receive, send)
            return
        if (await actor_of(self._app, scope)).agent is None:
            await Problem(403, NOT_AN_AGENT)(scope, receive, send)
            return
        if self._server is None:
            await in_thread(_load, name="mcp")  # the import takes a second, and must not hold up the clock
            from wakeful.server.mcp.tools_server import tools_server

            self._server = self._server or tools_server(self._call)
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        # Host and Origin were checked by the middleware in front of every route.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, security_settings=security
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    async def _call(self, ctx: Any, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        agent = (await actor_of(self._app, ctx.request.scope)).agent
        if agent is None:
            return ToolResult({"error": NOT_AN_AGENT}, is_error=True)
        return await call_tool(self._app, agent, name, arguments)
