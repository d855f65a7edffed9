"""Read-only queries against the store while no daemon runs, under the daemon's own API paths.

They show what was recorded; nothing is written, and no schedule fires until a daemon is started.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from wakeful.cli.client import find
from wakeful.cli.errors import Ended, NoDaemon, no_daemon, start_command
from wakeful.cli.render import note

if TYPE_CHECKING:
    from wakeful.app.bootstrap import Look
    from wakeful.config import Loaded

LISTED_MAX: Final = 10_000
HEARTBEAT: Final = "heartbeat"


class Source(Protocol):
    """What `ls`, `show`, `runs`, `log`, `stats` and `why` read from: a daemon, or the store of a home without one."""

    def get(self, path: str, **query: Any) -> Any: ...

    def pages(self, path: str, name: str, *, limit: int | None = None, **query: Any) -> list[Any]: ...


def source_of(home: Path) -> Source:
    """The daemon of this home; if there is none, its store, with a note on stderr."""
    try:
        return find(home)
    except NoDaemon as missing:
        if not _is_free(home):
            raise  # starting, or not responding
        stored = StoredHome(home, missing)
    note(f"wakeful: no daemon is running{stored.meaning}; read from {stored.where}")
    note(f"  start one: {start_command(home)}")
    return stored


def _is_free(home: Path) -> bool:
    from wakeful.server.daemon.home import holder_of

    return holder_of(home) is None


class StoredHome:
    """The store of a home without a running daemon."""

    def __init__(self, home: Path, missing: NoDaemon) -> None:
        from wakeful.config import SettingsRefused, load

        self._home = home
        try:
            self._loaded: Loaded = load(home)
        except SettingsRefused as refused:
            raise NoDaemon(f"{missing}, and its settings cannot be read: {refused}", hint=missing.hint) from refused
        url = self._loaded.settings.store.url.reveal()
        self._is_file = not url.startswith(("postgresql:", "postgres:"))
        self._url = str(home / url.removeprefix("sqlite:///")) if self._is_file else url
        if self._is_file and not Path(self._url).exists():
            raise missing

    @property
    def where(self) -> str:
        """The location of the store, without secrets."""
        return self._url if self._is_file else "its PostgreSQL store"

    @property
    def meaning(self) -> str:
        """The consequence of no daemon running on this machine: on PostgreSQL other nodes may be active."""
        return ", so nothing will fire" if self._is_file else " for this home"

    def get(self, path: str, **query: Any) -> Any:
        """What the daemon would return for this path."""
        with self._looking() as look:
            for pattern, answer in _ANSWERS:
                if (named := pattern.fullmatch(path)) is not None:
                    return answer(self, look, named[1], query)
        raise no_daemon(self._home)

    def pages(self, path: str, name: str, *, limit: int | None = None, **query: Any) -> list[Any]:
        """The first items of a listing."""
        most = LISTED_MAX if limit is None else limit
        with self._looking() as look:
            if name == "schedules":
                return _schedules(look, most, query, self.terms()[0])
            return _runs(look, _owner_of(path), most, query)

    def export(self) -> dict[str, str]:
        """All definitions as files, by path."""
        from wakeful.core.definition_files import file_text
        from wakeful.features.moving.exporting import stored_files

        with self._looking() as look:
            return {file.path: file_text(file.data) for file in stored_files(look.tx)}

    def moved_out(self, form: Any) -> dict[str, Any]:
        """All schedules in the form of another scheduler, as the daemon returns it."""
        from wakeful.api.moving import Exported
        from wakeful.app.bootstrap import resolve_zone
        from wakeful.core.returned import returned
        from wakeful.features.moving.outward import moved_out

        with self._looking() as look:
            now = look.now
        moved = moved_out(self.export(), form, zone=resolve_zone("local"), now=now)
        return returned(Exported).write(Exported(moved.files, moved.lost))

    @contextmanager
    def _looking(self) -> Iterator[Look]:
        from wakeful.app.bootstrap import StoreRefused, looking
        from wakeful.core.refusals import NotFound

        try:
            with looking(self._url) as look:
                yield look
        except StoreRefused as refused:
            hint = f"start one: {start_command(self._home)}"
            raise NoDaemon(f"no daemon is running, and the store cannot be read: {refused}", hint=hint) from refused
        except NotFound as missing:
            raise Ended(str(missing)) from missing

    def why(self, look: Look, name: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """The `why` sentence and its facts, using the settings of the home."""
        from wakeful.core.time.instants import parse_instant
        from wakeful.features.schedules.queries import proposed
        from wakeful.features.schedules.why import Why, why
        from wakeful.features.schedules.why_owned import why_waits, with_origin

        tx, now = look
        at = None if query.get("at") is None else parse_instant(query["at"])
        prefix, _, rest = name.partition(":")
        if name == HEARTBEAT:
            from wakeful.features.heartbeat.why import why as why_heartbeat

            return Why(*why_heartbeat(tx, self._beats(), at=at, now=now)).to_json()
        if rest:
            return Why(*self._explainer(prefix)(tx, rest, at=at, now=now)).to_json()
        terms, days = self.terms()
        proposal = proposed(tx, name, now=now)
        if proposal is not None and proposal.schedule_id is None:
            return why_waits(proposal).to_json()
        return with_origin(tx, name, why(tx, name, at=at, now=now, terms=terms, ledger_days=days)).to_json()

    def stats(self, look: Look, name: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """The statistics of a schedule, or of the heartbeat."""
        from wakeful.app.heartbeat import with_next_beat
        from wakeful.core.time.instants import parse_instant
        from wakeful.features.schedules import queries

        since = 0 if query.get("since") is None else parse_instant(query["since"])
        statistics = queries.stats(look.tx, name, since=since, now=look.now, terms=self.terms()[0])
        if name == HEARTBEAT:
            statistics = with_next_beat(look.tx, statistics, self._beats(), now=look.now)
        return statistics.to_json()

    def terms(self) -> tuple[Any, int]:
        """The terms of the settings, and how many days of runs are kept."""
        from wakeful.app.runtime_config import RuntimeConfig, changed
        from wakeful.engine.limits import Limits
        from wakeful.features.schedules.rules import Terms
        from wakeful.integrations.calendars.files import CalendarFiles
        from wakeful.server.daemon.app_config import conduct_of

        terms = Terms(calendars=CalendarFiles(self._home))
        conduct = changed(RuntimeConfig(Limits(), terms), conduct_of(self._loaded.settings))
        return conduct.terms, conduct.limits.ledger_days

    def _beats(self) -> Any:
        from wakeful.app.bootstrap import resolve_zone
        from wakeful.features.heartbeat.from_settings import terms_of

        return terms_of(self._loaded.settings.heartbeat, local_zone=resolve_zone("local"))

    def _explainer(self, prefix: str) -> Any:
        if prefix == "workflow":
            from wakeful.features.workflows.compiled import Compilations
            from wakeful.features.workflows.why import WhyWorkflow

            return WhyWorkflow(Compilations())
        from wakeful.app.quota import book_of
        from wakeful.engine.clock import SystemClock
        from wakeful.features.quota.why import WhySlot

        file = str(self._loaded.file)
        return WhySlot(book_of(self._loaded.settings, SystemClock(), home=self._home, file=file))


def _schedule(home: StoredHome, look: Look, slug: str, _query: Mapping[str, Any]) -> dict[str, Any]:
    from wakeful.features.schedules import queries

    return queries.get(look.tx, slug, now=look.now, terms=home.terms()[0]).to_json()


def _run(_home: StoredHome, look: Look, run_id: str, _query: Mapping[str, Any]) -> dict[str, Any]:
    from wakeful.features.schedules import queries

    return queries.run(look.tx, int(run_id)).to_json()


def _schedules(look: Look, limit: int, query: Mapping[str, Any], terms: Any) -> list[dict[str, Any]]:
    from wakeful.features.schedules.queries import Choice, chosen

    views: list[dict[str, Any]] = []
    after: str | None = None
    while len(views) < limit:
        choice = Choice(
            after,
            limit - len(views),
            query.get("status"),
            query.get("q"),
            health=query.get("health"),
            is_finished=query.get("finished"),
            owner=query.get("owner"),
        )
        page = chosen(look.tx, choice, now=look.now, terms=terms)
        views += [view.to_json() for view in page.schedules]
        after = page.next
        if after is None:
            break
    return views


def _runs(look: Look, name: str | None, limit: int, query: Mapping[str, Any]) -> list[dict[str, Any]]:
    from wakeful.features.schedules import queries
    from wakeful.features.workflows.queries import handlers_of

    rows = queries.runs(look.tx, name, limit=limit, outcome=query.get("outcome"))
    shown = [run.to_json() for run in rows]
    if name is not None and name.startswith("workflow:"):
        handlers = handlers_of(look.tx, [run.run_id for run in rows])
        return [{**view, "handler": handlers.get(run.run_id)} for run, view in zip(rows, shown, strict=True)]
    return shown


_ANSWERS: Final[list[tuple[re.Pattern[str], Callable[[StoredHome, Any, str, Mapping[str, Any]], Any]]]] = [
    (re.compile(r"/api/schedule/([^/]+)"), _schedule),
    (re.compile(r"/api/schedule/([^/]+)/why"), StoredHome.why),
    (re.compile(r"/api/schedule/([^/]+)/stats"), StoredHome.stats),
    (re.compile(r"/api/runs/([0-9]{1,18})"), _run),
]
_LEDGERS: Final = re.compile(r"/api/(schedule|slots|workflows)/([^/]+)/runs")


def _owner_of(path: str) -> str | None:
    """The owner whose ledger rows a path lists; None for all."""
    named = _LEDGERS.fullmatch(path)
    if named is None:
        return None
    return {"schedule": "", "slots": "slot:", "workflows": "workflow:"}[named[1]] + named[2]
