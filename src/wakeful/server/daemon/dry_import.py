"""The plan of an import without a daemon: the settings of a home, and what its store has, read only.

Everything is assembled as in the daemon, over an empty store in a temporary folder, and nothing is started. So an entry
is accepted or refused by the same checks, and nothing in the home changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from wakeful.server.daemon.app_config import conduct_of, delivery_of, self_scheduling_of

if TYPE_CHECKING:
    from wakeful.api.importing import Read
    from wakeful.api.python import Wakeful
    from wakeful.config import Loaded
    from wakeful.ports.store import Tx


@dataclass(frozen=True, slots=True)
class ImportQuestion:
    """What to plan."""

    kind: str
    path: Path | None = None
    only: tuple[str, ...] | None = None
    leaving: tuple[str, ...] = ()
    is_adopting: bool = False
    is_handover: bool = False


async def dry_import(home: Path, loaded: Loaded, question: ImportQuestion) -> Mapping[str, Any]:
    """The JSON that the daemon would return; raises `SourceRefused` and `Invalid`."""
    from wakeful.api.importing import Importer
    from wakeful.app.import_plan import Imported
    from wakeful.core.returned import returned

    with TemporaryDirectory(prefix="wakeful-plan-") as folder:
        app = _app(home, loaded, str(Path(folder) / "plan.db"))
        async with app._only_assembled():
            importer = Importer(app, read=_reader(home, loaded, app))
            context = await importer.context(is_adopting=question.is_adopting)
            plan = await importer.plan(
                question.kind, path=question.path, context=context, only=question.only, leaving=question.leaving
            )
            if question.is_handover:
                plan = plan.handed_over()
            return returned(Imported).write(plan.view())


def _reader(home: Path, loaded: Loaded, app: Wakeful) -> Read:
    """Asks the store of the home; an empty one, if there is none yet."""
    from wakeful.app.bootstrap import looking

    url = loaded.settings.store.url.reveal()
    is_file = not url.startswith(("postgresql:", "postgres:"))
    place = str(home / url.removeprefix("sqlite:///")) if is_file else url
    if is_file and not Path(place).exists():
        return app._store.read

    async def read(question: Callable[[Tx], Any]) -> Any:
        with looking(place) as look:
            return question(look.tx)

    return read


def _app(home: Path, loaded: Loaded, url: str) -> Wakeful:
    """The app of these settings, which is not started."""
    from wakeful.api.python import Wakeful
    from wakeful.app.bootstrap import resolve_zone
    from wakeful.app.options import Host
    from wakeful.app.quota import QuotaSlots
    from wakeful.features.heartbeat.feature import HeartbeatFeature
    from wakeful.features.heartbeat.from_settings import terms_of
    from wakeful.integrations.agents.from_settings import AgentRegistry
    from wakeful.integrations.channels.from_settings import ConfiguredChannels

    settings = loaded.settings
    slots = QuotaSlots(settings, home=home, file=str(loaded.file))
    return Wakeful(
        url,
        heartbeat=HeartbeatFeature(terms_of(settings.heartbeat, local_zone=resolve_zone("local")), home=home),
        agents=lambda clock, registry: AgentRegistry(home).agents(settings.agents, clock, registry),
        features=[slots.plug],
        channels=lambda clock, listener: ConfiguredChannels().channels(settings.channels, clock, listener),
        delivery=delivery_of(settings),
        self_scheduling=self_scheduling_of(settings),
        home=str(home),
        host=Host(quota=lambda: slots.quota),
        **conduct_of(settings),
    )
