"""One run of the daemon over a home folder.

Start: the home is made and held, the settings are read, the store is opened (and refused if it is damaged, or lies
where files cannot be locked), the clock begins to tick, and only then the door is opened and its address written into
the lock file. Stop, in the opposite order of what needs what: claiming ends at once; while runs get their grace, the
door stays open for the receipts they may be waiting for; then it is closed and the home let go.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.core.instants import format_duration
from wakeful.daemon.door import Listening, access, asked_at, bound, bracketed, until_open
from wakeful.daemon.home import held, make_home, write_holder
from wakeful.daemon.refusal import DaemonRefused
from wakeful.daemon.signals import signals_heard
from wakeful.daemon.storing import is_embedded, start, store_of

if TYPE_CHECKING:
    import uvicorn

    from wakeful.app import Wakeful
    from wakeful.bootstrap import Parts
    from wakeful.http.stream import Watchers
    from wakeful.mirror import Mirror
    from wakeful.ports.clock import Clock
    from wakeful.ports.sink import Sink
    from wakeful.ports.store import Store
    from wakeful.settings import Loaded, SettingsWatch
    from wakeful.telemetry.telemetry import Telemetry

log = logging.getLogger("wakeful.daemon")

OnReady = Callable[[Listening], None]


async def serve(
    home: Path,
    *,
    host: str | None = None,
    port: int | None = None,
    store: str | None = None,
    on_ready: OnReady | None = None,
) -> None:
    """Run the daemon of this home until SIGINT or SIGTERM; raises `DaemonRefused` if it cannot start.

    A second signal ends it by force. `host`, `port` and `store` count more than the settings file."""
    make_home(home)
    with held(home) as lock:
        read = _reader(home, {"server.host": host, "server.port": port, "store.url": store})
        await _Daemon(home, lock, read).run(on_ready)


def run(
    home: Path,
    *,
    host: str | None = None,
    port: int | None = None,
    store: str | None = None,
    on_ready: OnReady | None = None,
) -> None:
    """`serve` on a loop of its own, the fast one."""
    import uvloop

    logging.getLogger("wakeful").setLevel(logging.INFO)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(home, host=host, port=port, store=store, on_ready=on_ready))


class _Daemon:
    """One run of the daemon over a home that is held."""

    def __init__(self, home: Path, lock: int, read: Callable[[], Loaded]) -> None:
        self._home = home
        self._lock = lock
        self._read = read
        self._loaded = _first(read)
        self._is_stopping = False
        self._watch: SettingsWatch | None = None
        self._watchers: Watchers | None = None
        self._telemetry: Telemetry | None = None

    async def run(self, on_ready: OnReady | None) -> None:
        with bound(self._loaded) as door, signals_heard() as signal:
            app = self._app(receipts_at=f"http://{asked_at(self._host)}:{door.getsockname()[1]}")
            try:
                await start(app)
                await self._serve(app, door, signal, on_ready)
            finally:
                await app.stop()
                if self._telemetry is not None:
                    await self._telemetry.close()

    async def _serve(
        self, app: Wakeful, door: socket.socket, signal: asyncio.Future[None], on_ready: OnReady | None
    ) -> None:
        from wakeful.settings import SettingsWatch

        server = self._server(app)
        serving = asyncio.create_task(server.serve(sockets=[door]), name="wakeful-door")
        watch = SettingsWatch(self._loaded, self._read, on_change=_changed, on_error=_complained)
        async with watch as self._watch:
            try:
                await until_open(server, serving)
                self._announce(door, on_ready)
                await asyncio.wait([serving, signal], return_when=asyncio.FIRST_COMPLETED)
                self._is_stopping = True
                log.info("stopping: runs under way may end")
                await app.stop()
            finally:
                if self._watchers is not None:
                    self._watchers.close()
                server.should_exit = True
                await serving

    @property
    def _host(self) -> str:
        return self._loaded.settings.server.host

    def _app(self, *, receipts_at: str) -> Wakeful:
        from wakeful.agents.from_settings import make_agents
        from wakeful.app import Wakeful

        settings = self._loaded.settings
        limits, schedules = settings.limits, settings.schedules
        return Wakeful(
            store_of(self._home, self._loaded),
            timezone=schedules.timezone,
            concurrency_max=limits.concurrency_max,
            shutdown_grace=format_duration(limits.shutdown_grace),
            every_min=format_duration(limits.every_min),
            agent_interval_min=format_duration(limits.agent_interval_min),
            ledger_days=limits.ledger_days,
            agents=lambda clock, registry: make_agents(
                settings.agents, clock=clock, registry=registry, home=self._home
            ),
            receipts_at=receipts_at,
            sink=self._sink,
            beside=self._mirror if schedules.mirror != "off" and is_embedded(self._loaded) else None,
        )

    def _mirror(self, parts: Parts) -> Mirror:
        from wakeful.daemon.mirroring import make_mirror

        sink = None if self._telemetry is None else self._telemetry.sink
        return make_mirror(self._home, parts, self._loaded.settings.schedules.mirror, sink)

    def _sink(self, _store: Store, clock: Clock) -> Sink:
        """Whoever listens to what is committed: the live stream, the log, the figures."""
        from wakeful.http.stream import Watchers
        from wakeful.settings import Redactor
        from wakeful.telemetry.telemetry import Telemetry

        days, redact = self._loaded.settings.log.days, Redactor(self._loaded.secrets).redact
        self._telemetry = Telemetry(self._home, clock, days=days, redact=redact)
        self._watchers = Watchers(self._telemetry.stream, clock)
        return self._telemetry.sink

    def _server(self, app: Wakeful) -> uvicorn.Server:
        from wakeful.http import make_app
        from wakeful.http.serving import make_server

        api = make_app(
            app,
            access=access(self._loaded),
            body_max=self._loaded.settings.limits.body_max,
            is_open=lambda: app.is_started and not self._is_stopping,
            settings=lambda: self._loaded if self._watch is None else self._watch.current,
            refused=lambda: None if self._watch is None else self._watch.refused,
            watchers=self._watchers,
            figures=None if self._telemetry is None else self._telemetry.rendered_metrics,
        )
        return make_server(api)

    def _announce(self, door: socket.socket, on_ready: OnReady | None) -> None:
        host, port = self._host, door.getsockname()[1]
        listening = Listening(self._home, f"http://{bracketed(host)}:{port}", host, port)
        write_holder(self._lock, listening.address)
        log.info("listening on %s", listening.address)
        if on_ready is not None:
            on_ready(listening)


def _reader(home: Path, options: dict[str, Any]) -> Callable[[], Loaded]:
    """Reads the settings, with what the command line said counting more."""
    from wakeful.settings import load

    return lambda: load(home, options=options)


def _first(read: Callable[[], Loaded]) -> Loaded:
    from wakeful.settings import SettingsRefused

    try:
        loaded = read()
    except SettingsRefused as refused:
        raise DaemonRefused(str(refused)) from refused
    for warning in loaded.warnings:
        log.warning("%s", warning)
    return loaded


def _changed(_old: Loaded, new: Loaded) -> None:
    log.info("the settings in %s changed; [server], [store] and [limits] take effect at the next start", new.file)


def _complained(refused: Any) -> None:
    log.warning("the settings were changed and cannot be accepted, the old ones stay:\n%s", refused)
