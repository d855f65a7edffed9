"""The system: its nodes, its health, its settings, and who is logged in."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from wakeful.api.forms import Forms
from wakeful.api.health import health_of
from wakeful.api.login_rows import Login, Logins, digest_of
from wakeful.api.moving import Moving
from wakeful.api.operation import Blocking, Returns, perform, read, write
from wakeful.api.replies import Reply
from wakeful.core.refusals import Conflict
from wakeful.core.returned import At, kind, returned
from wakeful.core.time.instants import MINUTE, Duration, Instant
from wakeful.features.schedules.health_view import HEALTH, HealthView
from wakeful.features.schedules.nodes import NODES, Nodes, nodes_of
from wakeful.features.schedules.views import encode
from wakeful.ports.store import Tx

CODE_FOR: Final[Duration] = 15 * MINUTE
_SETTINGS: Final = {"application/json": {"schema": {"type": "object", "required": ["settings", "sources"]}}}


@dataclass(frozen=True, slots=True)
class LoginCode:
    """A one-time code. The page exchanges it for a session at `path`."""

    code: Annotated[str, kind({"type": "string", "minLength": 1})]
    url: Annotated[str, kind({"type": "string", "examples": ["http://127.0.0.1:8377"]})]
    path: Annotated[str, kind({"type": "string", "examples": ["/#code=…"]})]
    expires_at: At


@dataclass(frozen=True, slots=True)
class Ended:
    """How many sessions and codes were ended."""

    ended: int


@dataclass(frozen=True, slots=True)
class SettingsView:
    """The settings in effect; secrets are masked."""

    file: str
    settings: Mapping[str, Any]
    sources: Mapping[str, Any]  # of each setting
    warnings: Sequence[Mapping[str, Any]]
    refused: Sequence[str]  # errors of a changed file that is invalid
    restart: Sequence[Mapping[str, Any]]  # settings that take effect after a restart
    failed: Sequence[str]  # what could not be applied


SETTINGS: Final = returned(SettingsView)


class System(Moving, Forms):
    """The process and its store."""

    @read("GET /api/nodes", "List nodes", Returns(NODES, "With leases and lag."), id="get_nodes")
    def nodes(self, tx: Tx, now: Instant) -> Nodes:
        return nodes_of(tx, now=now)

    @perform(
        "GET /healthz", "Liveness: is the clock running?", Returns(HEALTH, "It is."), least="read", id="get_health"
    )
    async def health(self) -> HealthView:
        """Last tick, lag, stuck runs, and whether the store is writable."""
        return await health_of(self._app)

    @perform(
        "GET /api/config",
        "The settings in effect",
        Returns(None, "Secrets are masked.", content=_SETTINGS),
        least="read",
        id="get_config",
        reply=lambda view: Reply(encode(SETTINGS.write(view))),
    )
    async def settings(self) -> SettingsView:
        """`refused` lists the errors of a changed file that is invalid; `restart` the settings that take effect after a
        restart; `failed` what could not be applied."""
        if self._app._host.settings is None:
            raise Conflict("this process has no settings file")
        from wakeful.config import to_json  # programs that embed Wakeful have no settings

        status = self._app._host.settings()
        refused = () if status.refused is None else status.refused.errors
        restart = [{"name": one.name, "now": one.now, "written": one.written} for one in status.held_back]
        return SettingsView(
            **to_json(status.loaded),
            refused=[str(error) for error in refused],
            restart=restart,
            failed=list(status.failed),
        )

    @write(
        "POST /api/login-codes",
        "Create a one-time code for a link to the page",
        Returns(returned(LoginCode), "The code can be used once."),
        statuses=(201,),
        least="admin",
        id="make_code",
        tag="access",
    )
    def login_code(self, tx: Tx, now: Instant) -> LoginCode:
        code = secrets.token_urlsafe(16)
        login = Login(digest_of(code), "code", "admin", "link", "", now, now + CODE_FOR)
        tx[Logins].add_and_prune(login, now=now)
        return LoginCode(code, self._app._host.page_at(), f"/#code={code}", login.expires_at)

    @write(
        "DELETE /api/logins",
        "End every page session",
        Returns(returned(Ended), "How many sessions and unused codes there were."),
        least="admin",
        id="end_all",
        tag="access",
    )
    def end_logins(self, tx: Tx, now: Instant) -> Ended:
        """Everyone who is logged in to the page has to log in again; unused links are void."""
        return Ended(tx[Logins].clear())


class BlockingSystem(System, Blocking):
    """The process and its store, for programs without an event loop."""
