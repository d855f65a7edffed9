"""A daemon's store: where it is, and whether it can be opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.server.daemon.file_systems import network_file_system
from wakeful.server.daemon.home import DaemonRefused, StoreRefused

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful
    from wakeful.config import Loaded


def store_of(home: Path, loaded: Loaded) -> str:
    """The store's URL, with file paths relative to the home; network file systems are refused."""
    url = loaded.settings.store.url.reveal()
    if not is_embedded(loaded):
        return url
    path = home / url.removeprefix("sqlite:///")
    kind = network_file_system(path.parent)
    if kind is not None:
        raise DaemonRefused(
            f"{path} is on a network file system ({kind}), where a database gets corrupted sooner or later; "
            "put the home on a local disk, or use postgresql:// under [store]"
        )
    return str(path)


def is_embedded(loaded: Loaded) -> bool:
    return not loaded.settings.store.url.reveal().startswith(("postgresql:", "postgres:"))


async def start(app: Wakeful) -> None:
    from wakeful.ports.store import DatabaseRefused, StoreUnavailable

    try:
        await app.start()
    except DatabaseRefused as error:
        raise StoreRefused(f"the store cannot be used: {error}") from error
    except (StoreUnavailable, ValueError, OSError) as error:
        raise DaemonRefused(f"the store cannot be opened: {error}") from error
