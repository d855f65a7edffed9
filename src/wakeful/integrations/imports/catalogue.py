"""The kinds of import: where each is found on this machine, and who reads it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wakeful.integrations.imports import crontab
from wakeful.integrations.imports.entries import Context, Entry, Reader, SourceFile, SourceRefused
from wakeful.integrations.imports.places import existing, plain_files_in, printed, read_file, read_files


@dataclass(frozen=True, slots=True)
class ImportKind:
    """One kind: its own places, the files of a given path, and its reader."""

    title: str
    find: Callable[[Context], list[SourceFile]]
    open: Callable[[Path], list[SourceFile]]
    read: Reader
    can_adopt: bool = False


def _crontab_places(context: Context) -> list[SourceFile]:
    own = printed(["crontab", "-l"], crontab.USER_PLACE, context)
    system = [*existing(Path("/etc/crontab")), *_cron_d(Path("/etc/cron.d"))]
    return [*([] if own is None else [own]), *read_files(system)]


def _cron_d(folder: Path) -> list[Path]:
    """Cron ignores names with dots and the like."""
    if not folder.is_dir():
        return []
    return [path for path in plain_files_in(folder) if path.name.replace("_", "").replace("-", "").isalnum()]


def _crontab_open(path: Path) -> list[SourceFile]:
    return read_files(_cron_d(path)) if path.is_dir() else [read_file(path)]


KINDS: Final[Mapping[str, ImportKind]] = {
    "crontab": ImportKind("crontab", _crontab_places, _crontab_open, crontab.read_crontab),
}


def entries_of(kind: str, *, content: str | None, path: Path | None, context: Context) -> list[Entry]:
    """The entries of a source: a pasted text, a file or folder, or the system's own places."""
    reader = KINDS[kind]
    if context.is_adopting and not reader.can_adopt:
        raise SourceRefused("", f"{kind} cannot be adopted: it has no way to start one of its jobs; import it instead")
    if content is not None:
        files = [SourceFile("pasted", content)]
    elif path is not None:
        if not path.exists() and not path.is_symlink():
            raise SourceRefused("", f"{path} does not exist")
        files = reader.open(path)
    else:
        files = reader.find(context)
    return reader.read(files, context) if files else []
