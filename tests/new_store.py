"""A new SQLite store without creating its schema again: a copy of one that was created once in this process.

Creating it takes longer than most tests that use it. Tests about creating and upgrading a store do not use this.
"""

import functools
import shutil
import tempfile
from pathlib import Path

from wakeful.stores.sqlite.files import create
from wakeful.stores.sqlite.migrate import migrations


def prepare(path: Path) -> None:
    """Put an empty store there, unless the file or its folder say otherwise."""
    if path.parent.is_dir() and not path.exists():
        shutil.copyfile(_template(), path)
        path.chmod(0o600)


@functools.cache
def _template() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="wakeful-template-")
    _kept.append(folder)
    path = Path(folder.name) / "wakeful.db"
    create(path, migrations())
    return path


_kept: list["tempfile.TemporaryDirectory[str]"] = []
"""Removed when the process ends."""
