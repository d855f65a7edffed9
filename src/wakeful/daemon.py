"""The daemon: one home folder, one clock, one API.

Start: the home is made and held, the settings are read, the store is opened (and refused if it is damaged, or lies
where files cannot be locked), the clock begins to tick, and only then the door is opened and its address written into
the lock file. Stop, in the opposite order of what needs what: claiming ends at once; while runs get their grace, the
door stays open for the receipts they may be waiting for; then it is closed and the home let go.

Nothing heavy is imported before it is needed: the command line asks `holder_of` for the daemon it talks to.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wakeful.core.instants import Instant, format_duration, format_instant

if TYPE_CHECKING:
    import uvicorn

    from wakeful.app import Wakeful
    from wakeful.bootstrap import Parts
    from wakeful.http import Access
    from wakeful.http.stream import Watchers
    from wakeful.mirror import Mirror
    from wakeful.ports.clock import Clock
    from wakeful.ports.sink import Fact, Sink, Slugs
    from wakeful.ports.store import Store
    from wakeful.settings import Loaded, SettingsWatch
    from wakeful.telemetry.telemetry import Telemetry

log = logging.getLogger("wakeful.daemon")

LOCK_NAME: Final = "wakeful.lock"
LOCK_MAX: Final = 4_096
MOUNTS: Final = Path("/proc/self/mountinfo")
NETWORKED: Final = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "ncpfs",
        "davfs",
    }
)
NETWORKED_FUSE: Final = frozenset(
    {
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.davfs2",
        "fuse.ceph",
        "fuse.goofys",
        "fuse.gcsfuse",
    }
)
FORCED: Final = 128
"""Added to the number of the signal that ended the daemon by force, as shells do."""

SAME_SIGNAL: Final = 0.5
"""Seconds within which a second signal is the first one once more: wrappers pass on what the whole group got."""

OnReady = Callable[["Listening"], None]


class DaemonRefused(Exception):
    """The daemon does not start; the text says why and what to do."""


class HomeHeld(DaemonRefused):
    """Another daemon has this home."""

    def __init__(self, home: Path, holder: Holder | None) -> None:
        who = "another process" if holder is None else holder.in_words()
        super().__init__(f"{home} is held by {who}; stop it first, or choose another home with --home")
        self.home = home
        self.holder = holder


@dataclass(frozen=True, slots=True)
class Holder:
    """The daemon of a home, as its lock file has it. `address` is None until the door is open."""

    pid: int
    host: str
    started_at: Instant
    address: str | None

    def in_words(self) -> str:
        at = "" if self.address is None else f", at {self.address}"
        return f"process {self.pid} on {self.host} since {format_instant(self.started_at)}{at}"


@dataclass(frozen=True, slots=True)
class Listening:
    """A daemon that is ready."""

    home: Path
    address: str
    host: str
    port: int


def holder_of(home: Path) -> Holder | None:
    """The daemon that holds this home now; None if none does."""
    try:
        file = os.open(home / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return _read_holder(os.pread(file, LOCK_MAX, 0))
    finally:
        os.close(file)


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
    _make_home(home)
    with _held(home) as lock:
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
        self._signal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watch: SettingsWatch | None = None
        self._watchers: Watchers | None = None
        self._telemetry: Telemetry | None = None

    async def run(self, on_ready: OnReady | None) -> None:
        with _bound(self._loaded) as door, self._signals():
            app = self._app(receipts_at=f"http://{_asked_at(self._host)}:{door.getsockname()[1]}")
            try:
                await _start(app)
                await self._serve(app, door, on_ready)
            finally:
                await app.stop()
                if self._telemetry is not None:
                    await self._telemetry.close()

    async def _serve(self, app: Wakeful, door: socket.socket, on_ready: OnReady | None) -> None:
        from wakeful.settings import SettingsWatch

        server = self._server(app)
        serving = asyncio.create_task(server.serve(sockets=[door]), name="wakeful-door")
        watch = SettingsWatch(self._loaded, self._read, on_change=_changed, on_error=_complained)
        async with watch as self._watch:
            try:
                await _until_open(server, serving)
                self._announce(door, on_ready)
                await asyncio.wait([serving, self._signal], return_when=asyncio.FIRST_COMPLETED)
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
            _store_of(self._home, self._loaded),
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
            beside=self._mirror if schedules.mirror != "off" and _is_embedded(self._loaded) else None,
        )

    def _mirror(self, parts: Parts) -> Mirror:
        """Definitions as files, told of every commit that touches a schedule."""
        from wakeful.mirror import Mirror
        from wakeful.telemetry.fan_out import FanOut

        mirror = Mirror(self._home / "schedule", parts, self._loaded.settings.schedules.mirror)
        sink = None if self._telemetry is None else self._telemetry.sink
        if isinstance(sink, FanOut):
            sink.listen(lambda facts, slugs: _tell(mirror, facts, slugs))
        return mirror

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
            access=_access(self._loaded),
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
        listening = Listening(self._home, f"http://{_bracketed(host)}:{port}", host, port)
        _write_holder(self._lock, listening.address)
        log.info("listening on %s", listening.address)
        if on_ready is not None:
            on_ready(listening)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first signal asks it to end, the second ends it."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)

        heard_at = 0.0

        def heard(number: signal.Signals) -> None:
            nonlocal heard_at
            if not self._signal.done():
                heard_at = loop.time()
                self._signal.set_result(None)
            elif loop.time() - heard_at > SAME_SIGNAL:
                log.warning("%s again: ending at once", number.name)
                os._exit(FORCED + number)

        for number in numbers:
            with suppress(RuntimeError, ValueError):  # only the main thread hears signals
                loop.add_signal_handler(number, heard, number)
        try:
            yield
        finally:
            for number in numbers:
                with suppress(RuntimeError, ValueError):
                    loop.remove_signal_handler(number)


# --- the home ---------------------------------------------------------------------------------------------------------


def _make_home(home: Path) -> None:
    """The folder, readable by its owner only."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.stat().st_mode & 0o077:
            home.chmod(0o700)
    except OSError as error:
        raise DaemonRefused(f"the home folder {home} cannot be made ({error.strerror}); choose another") from error


@contextmanager
def _held(home: Path) -> Iterator[int]:
    """Hold the home for this process: the system lets it go when the process ends, however it ends."""
    try:
        file = os.open(home / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DaemonRefused(f"{home / LOCK_NAME} cannot be opened ({error.strerror}); check its owner") from error
    try:
        _take(home, file)
        _write_holder(file, None)
        try:
            yield file
        finally:
            os.ftruncate(file, 0)
    finally:
        os.close(file)


def _take(home: Path, file: int) -> None:
    for _ in range(5):  # somebody who only looks holds it for a moment
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            continue
        except OSError as error:
            raise DaemonRefused(f"{home / LOCK_NAME} cannot be locked ({error.strerror}); use a local disk") from error
    raise HomeHeld(home, _read_holder(os.pread(file, LOCK_MAX, 0)))


def _write_holder(file: int, address: str | None) -> None:
    known = _read_holder(os.pread(file, LOCK_MAX, 0))
    started_at = known.started_at if known is not None and known.pid == os.getpid() and address else _now()
    written = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "address": address,
        "startedAt": format_instant(started_at),
    }
    text = json.dumps(written).encode()
    os.pwrite(file, text, 0)
    os.ftruncate(file, len(text))


def _read_holder(written: bytes) -> Holder | None:
    from wakeful.core.instants import parse_instant

    try:
        data: dict[str, Any] = json.loads(written)
        return Holder(int(data["pid"]), str(data["host"]), parse_instant(data["startedAt"]), data.get("address"))
    except (ValueError, KeyError, TypeError):
        return None


def _now() -> Instant:
    from wakeful.engine.clock import SystemClock

    return SystemClock().read().now


# --- settings and store -----------------------------------------------------------------------------------------------


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


def _store_of(home: Path, loaded: Loaded) -> str:
    """The store's address, a file's being relative to the home; refused where files cannot be locked."""
    url = loaded.settings.store.url.reveal()
    if not _is_embedded(loaded):
        return url
    path = home / url.removeprefix("sqlite:///")
    kind = network_file_system(path.parent)
    if kind is not None:
        raise DaemonRefused(
            f"{path} would be on a network file system ({kind}), where a database is damaged sooner or later; "
            "put the home on a local disk, or use postgresql:// under [store]"
        )
    return str(path)


def _is_embedded(loaded: Loaded) -> bool:
    return not loaded.settings.store.url.reveal().startswith(("postgresql:", "postgres:"))


def _tell(mirror: Mirror, facts: Sequence[Fact], slugs: Slugs) -> None:
    """The slugs of whatever changed; one that is not known is found by the mirror's own rescan."""
    from wakeful.ports.sink import RunsClaimed, RunsSettled, RunsWaiting, SchedulesChanged

    changed: set[str | None] = set()
    for fact in facts:
        if isinstance(fact, SchedulesChanged):
            changed.update(change.slug or slugs.get(change.schedule_id) for change in fact.changes)
        elif isinstance(fact, RunsClaimed | RunsSettled | RunsWaiting):
            changed.update(slugs.get(run.schedule_id) for run in fact.runs)
    for slug in changed:
        if slug is not None:
            mirror.schedule_changed(slug)


def network_file_system(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """The kind of network file system a folder is on; None if it is local, or if the system does not tell."""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    where, kind = Path(os.path.realpath(folder)), ""
    deepest = -1
    for line in lines:
        mounted, _, about = line.partition(" - ")
        fields = mounted.split()
        if len(fields) < 5 or not about:
            continue
        point = Path(_unescaped(fields[4]))
        # Later mounts cover earlier ones, so of two at the same place the last counts.
        if where.is_relative_to(point) and len(point.parts) >= deepest:
            deepest, kind = len(point.parts), about.split()[0]
    return kind if kind in NETWORKED or kind in NETWORKED_FUSE else None


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


async def _start(app: Wakeful) -> None:
    from wakeful.ports.store import StoreUnavailable
    from wakeful.stores.sqlite.migrate import DatabaseRefused

    try:
        await app.start()
    except (DatabaseRefused, StoreUnavailable, ValueError, OSError) as error:
        raise DaemonRefused(f"the store cannot be opened: {error}") from error


def _changed(_old: Loaded, new: Loaded) -> None:
    log.info("the settings in %s changed; [server], [store] and [limits] take effect at the next start", new.file)


def _complained(refused: Any) -> None:
    log.warning("the settings were changed and cannot be accepted, the old ones stay:\n%s", refused)


# --- the door ---------------------------------------------------------------------------------------------------------


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _asked_at(host: str) -> str:
    """The host that a program on this machine asks: one that listens everywhere is asked on loopback."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, _bracketed(host))  # noqa: S104 - nothing is bound to it


def _access(loaded: Loaded) -> Access:
    from wakeful.http import Access

    server = loaded.settings.server
    return Access(server.host, None if server.token is None else server.token.reveal())


@contextmanager
def _bound(loaded: Loaded) -> Iterator[socket.socket]:
    """The socket, bound before anything else is done: a port that is taken is said at once."""
    server = loaded.settings.server
    if server.token is None and not _access(loaded).is_local:
        raise DaemonRefused(f"{server.host} can be reached by others, and there is no token; set [server] token")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            server.host, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        door = socket.socket(family, kind, protocol)
    except OSError as error:
        raise DaemonRefused(f"{server.host} is not an address of this machine ({error}); set [server] host") from error
    with door:
        try:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind(address)
        except OSError as error:
            text = f"{server.host}:{server.port} cannot be listened on ({error.strerror}); choose another --port"
            raise DaemonRefused(text) from error
        yield door


async def _until_open(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    while not server.started and not serving.done():  # noqa: ASYNC110 - the server only has a flag to look at
        await asyncio.sleep(0.01)
    if serving.done():
        await serving
        raise DaemonRefused("the door could not be opened; the log says why")


def main(arguments: list[str] | None = None) -> int:
    """`python -m wakeful.daemon [HOME] [--host H] [--port P] [--store URL]`: the daemon without the command line."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m wakeful.daemon", description="Run the daemon of a home folder.")
    parser.add_argument("home", nargs="?", default=os.environ.get("WAKEFUL_HOME") or "~/.wakeful")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--store")
    asked = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    home = Path(asked.home).expanduser().absolute()
    try:
        run(home, host=asked.host, port=asked.port, store=asked.store, on_ready=_say)
    except DaemonRefused as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    return 0


def _say(listening: Listening) -> None:
    sys.stdout.write(f"Wakeful is listening on {listening.address}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
