"""The kinds of import: where each is found on this machine, and its reader."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from wakeful.integrations.imports import (
    airflow,
    apscheduler,
    at_queue,
    celery_beat,
    coding_apps,
    crontab,
    github_actions,
    glm_tray,
    hermes,
    home_assistant,
    kubernetes,
    launchd,
    n8n,
    openclaw,
    seed_systems,
    systemd,
)
from wakeful.integrations.imports.entries import Context, Entry, Reader, SourceFile, SourceRefused
from wakeful.integrations.imports.places import (
    checked_text,
    existing,
    plain_files_in,
    printed,
    read_each,
    read_file,
    read_files,
)
from wakeful.integrations.plugins.loading import PluginBroken, Plugins


@dataclass(frozen=True, slots=True)
class ImportKind:
    """One kind of import: its default locations, the files at a given path, and its reader."""

    find: Callable[[Context], list[SourceFile]]
    open: Callable[[Path], list[SourceFile]]
    read: Reader
    can_adopt: bool = False


def _crontab_places(context: Context) -> list[SourceFile]:
    own = printed(["crontab", "-l"], crontab.USER_PLACE, context)
    system = [*existing(Path("/etc/crontab")), *_cron_d(Path("/etc/cron.d"))]
    return [*([] if own is None else [own]), *read_each(system)]


def _cron_d(folder: Path) -> list[Path]:
    """Cron ignores names with dots and the like."""
    if not folder.is_dir():
        return []
    return [path for path in plain_files_in(folder) if path.name.replace("_", "").replace("-", "").isalnum()]


def _crontab_open(path: Path) -> list[SourceFile]:
    return read_files(_cron_d(path)) if path.is_dir() else [read_file(path)]


def _systemd_places(context: Context) -> list[SourceFile]:
    own = context.user_home / ".config" / "systemd" / "user"
    folders = [folder for folder in (own, Path("/etc/systemd/system")) if folder.is_dir()]
    units = [
        unit for folder in folders for pattern in ("*.timer", "*.service") for unit in plain_files_in(folder, pattern)
    ]
    return read_each(unit for unit in units if not unit.is_symlink())  # links are aliases, or masked units


def _systemd_open(path: Path) -> list[SourceFile]:
    if path.is_dir():
        files = [*plain_files_in(path, "*.timer"), *plain_files_in(path, "*.service")]
        return read_files(file for file in files if not file.is_symlink() or file.suffix == ".timer")
    service = path.with_suffix(".service")
    return read_files([path, *existing(service)])


KINDS: Final[Mapping[str, ImportKind]] = {
    "crontab": ImportKind(_crontab_places, _crontab_open, crontab.read_crontab),
    "systemd": ImportKind(_systemd_places, _systemd_open, systemd.read_systemd, can_adopt=True),
    "openclaw": ImportKind(openclaw.find_openclaw, openclaw.open_openclaw, openclaw.read_openclaw, can_adopt=True),
    "hermes": ImportKind(hermes.find_hermes, hermes.open_hermes, hermes.read_hermes, can_adopt=True),
    "claude": ImportKind(coding_apps.find_claude, coding_apps.open_claude, coding_apps.read_claude),
    "codex": ImportKind(coding_apps.find_codex, coding_apps.open_codex, coding_apps.read_codex),
    "apscheduler": ImportKind(apscheduler.find_apscheduler, apscheduler.open_apscheduler, apscheduler.read_apscheduler),
    "celery-beat": ImportKind(celery_beat.find_celery, celery_beat.open_celery, celery_beat.read_celery),
    "github-actions": ImportKind(github_actions.find_github, github_actions.open_github, github_actions.read_github),
    "launchd": ImportKind(launchd.find_launchd, launchd.open_launchd, launchd.read_launchd),
    "at": ImportKind(at_queue.find_at, at_queue.open_at, at_queue.read_at),
    "airflow": ImportKind(airflow.find_airflow, airflow.open_airflow, airflow.read_airflow),
    "n8n": ImportKind(n8n.find_n8n, n8n.open_n8n, n8n.read_n8n),
    "home-assistant": ImportKind(
        home_assistant.find_home_assistant, home_assistant.open_home_assistant, home_assistant.read_home_assistant
    ),
    "claude-code": ImportKind(coding_apps.find_claude, coding_apps.open_claude, coding_apps.read_claude),
    "caco": ImportKind(seed_systems.find_caco, seed_systems.open_caco, seed_systems.read_caco),
    "openalice": ImportKind(seed_systems.find_openalice, seed_systems.open_openalice, seed_systems.read_openalice),
    "glm-tray": ImportKind(glm_tray.find_glm_tray, glm_tray.open_glm_tray, glm_tray.read_glm_tray),
    "kubernetes": ImportKind(
        kubernetes.find_kubernetes, kubernetes.open_kubernetes, kubernetes.read_kubernetes, can_adopt=True
    ),
}


def kinds_of(plugins: Plugins | None) -> tuple[str, ...]:
    """Every kind of import, with those of plugins."""
    return (*KINDS, *(() if plugins is None else plugins.kinds("wakeful.importers")))


def _kind_of(kind: str, plugins: Plugins | None) -> ImportKind:
    known = KINDS.get(kind)
    if known is not None:
        return known
    try:
        made: Any = (plugins or Plugins(lambda: 0)).make("wakeful.importers", kind, {}, _FALLBACKS)
    except PluginBroken as broken:
        raise SourceRefused("", str(broken)) from None
    return ImportKind(made.find, made.open, made.read, getattr(made, "can_adopt", False))


def _refused(why: str) -> NoReturn:
    raise SourceRefused("", why)


_FALLBACKS: Final = dict.fromkeys(("find", "open", "read"), _refused)


def entries_of(
    kind: str, *, content: str | None, path: Path | None, context: Context, plugins: Plugins | None = None
) -> list[Entry]:
    """A source's entries: from pasted text, a file or folder, or the default locations."""
    reader = _kind_of(kind, plugins)
    if context.is_adopting and not reader.can_adopt:
        raise SourceRefused("", f"{kind} cannot be adopted: it has no way to start one of its jobs; import it instead")
    if content is not None:
        files = [SourceFile("pasted", checked_text(content, SourceFile("pasted", "")))]
    else:
        files = reader.find(context) if path is None else _opened(reader, path)
    unread = [
        Entry(file.place, "", file.place, "job", refused=file.problem) for file in files if file.problem is not None
    ]
    whole = [file for file in files if file.problem is None]
    return [*(reader.read(whole, context) if whole else []), *unread]


def _opened(reader: ImportKind, path: Path) -> list[SourceFile]:
    """The files at a path that a person gave. Whatever is wrong with it refuses the source."""
    try:
        path.lstat()
        return reader.open(path)
    except FileNotFoundError:
        raise SourceRefused("", f"{path} does not exist") from None
    except OSError as error:
        raise SourceRefused("", f"{path} cannot be read: {error.strerror}") from None
    except ValueError:  # a NUL character, or one that no file name can have
        raise SourceRefused("", f"{str(path)!r} is not a path") from None
