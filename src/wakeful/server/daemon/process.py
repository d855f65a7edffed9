"""One run of the daemon over a home folder.

Start: create and lock the home, load the settings, open the store (refused if it is damaged, or on a file system
without locks), start the clock, and only then listen and write the address into the lock file. Stop in the reverse
order: stop claiming immediately; while runs get their grace period, keep listening for the receipts they may be waiting
for; then close the server and release the home.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wakeful.integrations.system.descriptors import raised_limit
from wakeful.server.daemon.app_config import (
    alerts_of,
    collector,
    conduct_of,
    delivery_of,
    providers_of,
    self_scheduling_of,
)
from wakeful.server.daemon.crash_log import crash_logging, report_end, take_crash
from wakeful.server.daemon.home import DaemonRefused, Lock, cannot_start, held, make_home
from wakeful.server.daemon.reload import Reload
from wakeful.server.daemon.signals import signals_heard
from wakeful.server.daemon.sockets import Listening, access, asked_at, bound, bracketed, unix_socket, until_open
from wakeful.server.daemon.store import is_embedded, start, store_of
from wakeful.server.daemon.systemd import READY, STOPPING, ServiceManager
from wakeful.server.daemon.token import own_token

if TYPE_CHECKING:
    import uvicorn

    from wakeful.api.python import Wakeful
    from wakeful.app.bootstrap import Agents, Parts
    from wakeful.app.delivery import MakeChannels
    from wakeful.config import Loaded, Settings, SettingsRefused, SettingsWatch
    from wakeful.core.time.instants import Instant
    from wakeful.features.heartbeat.rules import HeartbeatTerms
    from wakeful.observe.log_reading import RunLog
    from wakeful.observe.stream import Stream
    from wakeful.observe.telemetry import Telemetry
    from wakeful.ports.clock import Clock
    from wakeful.ports.exchange import ExchangeListener
    from wakeful.ports.sink import Sink
    from wakeful.ports.store import Store
    from wakeful.server.daemon.mirroring import LiveMirror
    from wakeful.server.http import Access
    from wakeful.server.http.watchers import Watchers

log = logging.getLogger("wakeful.server.daemon")

SWITCH_EVERY: Final = 0.000_5
"""Seconds that a thread may keep the interpreter while another one waits for it. A claim releases and reacquires it at
each statement; with Python's default of 5 ms, a claim with busy readers took half a second."""

COLLECT_EVERY: Final = (20_000, 10, 10)
"""Garbage collector threshold: a burst creates thousands of short-lived objects."""

SERVER_LOG: Final = "server.log"
LOCK_LOOK: Final = 5.0
"""Seconds between two checks that the lock file still exists."""

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

    A second signal kills it. `host`, `port` and `store` override the settings file."""
    make_home(home)
    is_up = False

    def ready(listening: Listening) -> None:
        nonlocal is_up
        is_up = True
        if on_ready is not None:
            on_ready(listening)

    try:
        with held(home) as lock, raised_limit():
            read = _reader(home, {"server.host": host, "server.port": port, "store.url": store})
            await _Daemon(home, lock, read).run(ready)
    except OSError as error:
        if is_up:
            raise
        raise DaemonRefused(cannot_start(home, error)) from error


def run(
    home: Path,
    *,
    host: str | None = None,
    port: int | None = None,
    store: str | None = None,
    on_ready: OnReady | None = None,
) -> None:
    """`serve` on its own uvloop event loop."""
    import uvloop

    def ready(listening: Listening) -> None:
        _settle_memory()
        if on_ready is not None:
            on_ready(listening)

    logging.getLogger("wakeful").setLevel(logging.INFO)
    sys.setswitchinterval(SWITCH_EVERY)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(home, host=host, port=port, store=store, on_ready=ready))


class _Daemon:
    """One run of the daemon over a locked home."""

    def __init__(self, home: Path, lock: Lock, read: Callable[[], Loaded]) -> None:
        from wakeful.config import Redactor

        self._home = home
        self._lock = lock
        self._crash = take_crash(home)
        self._read = read
        self._reload = Reload(_first(read))
        self._redactor = Redactor(self._reload.loaded.secrets)
        self._own_token = own_token(home)
        self._access_of: tuple[Loaded, Access] | None = None
        self._redactor.learn([self._own_token])
        self._manager = ServiceManager()
        self._is_stopping = False
        self._page_at = ""
        self._watch: SettingsWatch | None = None
        self._watchers: Watchers | None = None
        self._telemetry: Telemetry | None = None

    async def run(self, on_ready: OnReady | None) -> None:
        with bound(self._reload.loaded) as door, unix_socket(self._home) as unix, signals_heard() as signal:
            app = self._app(api_at=f"http://{asked_at(self._settings.server.host)}:{door.getsockname()[1]}")
            try:
                with crash_logging(self._home):
                    await self._live(app, [door] if unix is None else [door, unix], signal, on_ready)
            finally:
                if self._telemetry is not None:
                    await self._telemetry.close()

    async def _live(
        self, app: Wakeful, doors: list[socket.socket], signal: asyncio.Future[None], on_ready: OnReady | None
    ) -> None:
        try:
            await start(app)
            report_end(self._home, self._lock.before, self._crash)
            for listener in app._open.on_settings:
                self._reload.listen("a feature", listener)
            await self._serve(app, doors, signal, on_ready)
        finally:
            await app.stop()

    async def _serve(
        self, app: Wakeful, doors: list[socket.socket], signal: asyncio.Future[None], on_ready: OnReady | None
    ) -> None:
        from wakeful.config import SettingsWatch

        server = self._server(app)
        serving = asyncio.create_task(server.serve(sockets=doors), name="wakeful-door")
        watch = SettingsWatch(self._reload.loaded, self._read, on_change=self._changed, on_error=_complained)
        async with watch as self._watch:
            try:
                await until_open(server, serving)
                await self._announce(app, doors[0], on_ready)
                while not (serving.done() or signal.done()):
                    await asyncio.wait([serving, signal], timeout=LOCK_LOOK, return_when=asyncio.FIRST_COMPLETED)
                    self._keep_lock()
                if serving.done() and not signal.done():
                    log.error("the HTTP server stopped unexpectedly; the daemon is stopping")
                self._is_stopping = True
                self._manager.tell(STOPPING)
                log.info("stopping: runs in progress may finish")
                await app.stop()
            finally:
                if self._watchers is not None:
                    self._watchers.close()
                server.should_exit = True
                await serving

    @property
    def _settings(self) -> Settings:
        """The settings in effect."""
        return self._reload.loaded.settings

    async def _changed(self, _old: Loaded, new: Loaded) -> None:
        self._redactor.learn(new.secrets)  # before anything can log one of them
        if not self._is_stopping:
            await self._reload.changed(new)

    def _app(self, *, api_at: str) -> Wakeful:
        from wakeful.api.python import Wakeful
        from wakeful.app import findings
        from wakeful.app.bootstrap import resolve_zone
        from wakeful.app.money import money_of
        from wakeful.app.options import Host
        from wakeful.app.quota import QuotaSlots
        from wakeful.engine.clock import SystemClock
        from wakeful.features.heartbeat.feature import HeartbeatFeature
        from wakeful.features.heartbeat.from_settings import terms_of
        from wakeful.features.money.feature import Money
        from wakeful.integrations.agents.from_settings import AgentRegistry
        from wakeful.integrations.channels.from_settings import ConfiguredChannels
        from wakeful.integrations.plugins.loading import Plugins
        from wakeful.integrations.system.threads import in_thread
        from wakeful.server.daemon.forecasts import DailyForecast

        def agents(settings: Settings) -> Agents:
            return lambda clock, registry: book.agents(settings.agents, clock, registry)

        clock = SystemClock()
        plugins = Plugins(lambda: clock.read().now)
        plugins.name(self._settings.plugins)

        async def change_plugins(old: Settings, new: Settings) -> None:
            if old.plugins != new.plugins:  # in a thread, because it imports them
                await in_thread(lambda: plugins.name(new.plugins), name="plugins")

        file = str(self._reload.loaded.file)
        slots = QuotaSlots(
            self._settings,
            home=self._home,
            file=file,
            learn=self._redactor.learn,
            withholds=self._withholds,
            plugins=plugins,
        )
        book = AgentRegistry(self._home, self._listener, slots.report, plugins)
        local_zone = resolve_zone("local")

        def terms(settings: Settings) -> HeartbeatTerms:
            return terms_of(settings.heartbeat, local_zone=local_zone)

        channels = ConfiguredChannels(plugins)

        def make_channels(settings: Settings) -> MakeChannels:
            return lambda clock, listener: channels.channels(settings.channels, clock, listener)

        app = Wakeful(
            store_of(self._home, self._reload.loaded),
            heartbeat=HeartbeatFeature(terms(self._settings), home=self._home, read=terms),
            agents=agents(self._settings),
            features=[slots.plug],
            channels=make_channels(self._settings),
            delivery=delivery_of(self._settings),
            alerts=alerts_of(self._settings),
            budgets=Money(money_of(self._settings), read=money_of),
            self_scheduling=self_scheduling_of(self._settings),
            otel=collector(self._settings),
            home=str(self._home),
            workflow_modules=self._settings.workflows.modules,
            host=Host(
                receipts_at=self._settings.server.public_url or api_at,
                api_at=api_at,
                withholds=self._withholds,
                sink=self._sink,
                stream=self._stream,
                listener=self._listener,
                redact=self._redactor.redact,
                background=self._mirror if is_embedded(self._reload.loaded) else None,
                workflow_folder=self._home,
                settings=lambda: self._reload.standing(None if self._watch is None else self._watch.refused),
                quota=lambda: slots.quota,
                log_of_run=self._log_of_run,
                providers=lambda: providers_of(self._settings),
                page_at=self._page,
                plugins=plugins,
            ),
            **conduct_of(self._settings),
        )
        app._add_service(app._importer.plug)
        app._add_service(lambda _: DailyForecast(app))
        app._more_findings.append(lambda: findings.plugins(plugins.troubles()))
        self._reload.listen("plugins", change_plugins)  # first: others use them
        self._reload.listen("limits and schedules", lambda _, new: app._change(**conduct_of(new)))
        self._reload.listen(
            "channels",
            lambda old, new: app._delivery.change(
                channels=None if old.channels == new.channels else make_channels(new),
                limits=delivery_of(new),
                alerts=alerts_of(new),
            ),
        )
        self._reload.listen("tracing", lambda _, new: app._change_otel(collector(new)))
        self._reload.listen("self-scheduling", lambda _, new: app._change_self_scheduling(self_scheduling_of(new)))
        self._reload.listen(
            "agents", lambda old, new: None if old.agents == new.agents else app._change_agents(agents(new))
        )
        return app

    def _withholds(self, variable: str) -> bool:
        """Whether this variable is withheld from programs, by the current settings."""
        from wakeful.integrations.actions.environment import is_secret_variable

        return is_secret_variable(variable, self._reload.loaded.secret_variables)

    def _mirror(self, parts: Parts) -> LiveMirror:
        from wakeful.server.daemon.mirroring import LiveMirror

        sink = None if self._telemetry is None else self._telemetry.sink
        mirror = LiveMirror(
            self._home,
            parts,
            self._settings.schedules.mirror,
            sink,
            is_trusting=lambda: self._settings.schedules.files == "trust",
        )
        self._reload.listen("definition files", lambda _, new: mirror.change(new.schedules.mirror))
        return mirror

    def _sink(self, _store: Store, clock: Clock) -> Sink:
        """The consumers of committed events: the live stream, the log, the metrics."""
        from wakeful.observe.telemetry import Telemetry
        from wakeful.server.http.watchers import Watchers

        if (self._home / SERVER_LOG).is_symlink():
            log.warning("%s is a symbolic link, which is not followed: nothing is logged there; remove it", SERVER_LOG)
        telemetry = Telemetry(self._home, clock, days=self._settings.log.days, redact=self._redactor.redact)
        self._telemetry = telemetry
        self._watchers = Watchers(telemetry.stream, clock)
        self._reload.listen("log", lambda _, new: telemetry.log.keep(new.log.days))
        return telemetry.sink

    def _stream(self) -> Stream | None:
        """The live stream, created with the sink."""
        return None if self._telemetry is None else self._telemetry.stream

    def _listener(self) -> ExchangeListener | None:
        """Logs every outgoing request; created with the sink."""
        return None if self._telemetry is None else self._telemetry.log.exchange

    async def _log_of_run(self, run_id: int, since: Instant, until: Instant) -> RunLog:
        assert self._telemetry is not None  # noqa: S101 - it is created before the app has a run
        return await self._telemetry.log_of_run(run_id, since, until)

    def _server(self, app: Wakeful) -> uvicorn.Server:
        from wakeful.server.daemon.strangers import finding_of
        from wakeful.server.http import Serving, make_app
        from wakeful.server.http.connections import Connections
        from wakeful.server.http.server import make_server

        connections = Connections(lambda: app._moment().monotonic, trusts=lambda peer: self._access().trusts(peer))
        app._more_findings.append(lambda: [finding_of(connections)])
        serving = Serving(
            access=self._access,
            body_max=lambda: self._settings.limits.body_max,
            is_open=lambda: app._is_started and not self._is_stopping,
            watchers=self._watchers,
            figures=None if self._telemetry is None else self._telemetry.rendered_metrics,
            connections=connections,
        )
        return make_server(make_app(app, serving), connections=connections)

    def _keep_lock(self) -> None:
        try:
            if self._lock.keep():
                log.warning(
                    "the lock file was removed and has been created again; leave it in place while a daemon runs"
                )
        except (OSError, DaemonRefused) as error:
            log.warning("the lock file was removed and cannot be created again: %s", error)

    def _access(self) -> Access:
        """The access rules of the settings in effect; every request asks for them."""
        loaded = self._reload.loaded
        if self._access_of is None or self._access_of[0] is not loaded:
            self._access_of = loaded, access(loaded, self._own_token)
        return self._access_of[1]

    async def _announce(self, app: Wakeful, door: socket.socket, on_ready: OnReady | None) -> None:
        host, port = self._settings.server.host, door.getsockname()[1]
        address = f"http://{bracketed(host)}:{port}"
        self._page_at = f"http://{asked_at(host)}:{port}"
        listening = Listening(self._home, address, host, port, await self._link(app))
        self._lock.tell(listening.address)
        self._manager.tell(READY)
        if on_ready is not None:
            on_ready(listening)

    async def _link(self, app: Wakeful) -> str | None:
        """A link that opens the page, logged in: valid once, for 15 minutes."""
        if self._access().is_open:
            log.warning('auth = "none": every user of this machine can use the daemon, and run programs as you')
            return None
        made = await app.system.login_code()
        return f"{made.url}{made.path}"

    def _page(self) -> str:
        """The address of the page."""
        return (self._settings.server.public_url or self._page_at).rstrip("/")


def _reader(home: Path, options: dict[str, Any]) -> Callable[[], Loaded]:
    """Loads the settings; command line options override them."""
    from wakeful.config import load

    return lambda: load(home, options=options)


def _first(read: Callable[[], Loaded]) -> Loaded:
    from wakeful.config import SettingsRefused

    try:
        loaded = read()
    except SettingsRefused as refused:
        raise DaemonRefused(str(refused)) from refused
    for warning in loaded.warnings:
        log.warning("%s", warning)
    return loaded


def _complained(refused: SettingsRefused) -> None:
    log.warning("the settings were changed and are invalid; the previous ones stay in effect:\n%s", refused)


def _settle_memory() -> None:
    """Freeze the objects created at startup, so that the collector does not scan them each time (decision 0009)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_EVERY)
