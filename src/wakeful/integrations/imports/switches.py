"""Switching entries off in their own system: crontab lines become comments, JSON and TOML files get a changed field,
everything else is switched off by its own program. A changed file has a backup next to it."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from wakeful.core.time.instants import SECOND, Duration
from wakeful.integrations.imports import openclaw
from wakeful.integrations.imports.crontab import USER_PLACE
from wakeful.integrations.imports.entries import FILE_MAX
from wakeful.integrations.system.plain_files import FileRefused, read_plain_text
from wakeful.ports.moving import SwitchFailed

InThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
MARK: Final = "# switched off by wakeful: "
BACKUP: Final = ".wakeful-backup"
_NO_TABLE: Final = re.compile("no crontab|no such file", re.IGNORECASE)
What: TypeAlias = Mapping[str, Any]


class _Threaded:
    """Runs the blocking work of a switch in a thread."""

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread

    async def is_off(self, what: Sequence[What]) -> bool:
        is_off: bool = await self._in_thread(partial(self.look, what))
        return is_off

    async def switch_off(self, what: Sequence[What], *, within: Duration) -> None:
        await self._in_thread(partial(self.act, what, max(1.0, within / SECOND)))

    def look(self, what: Sequence[What]) -> bool:
        raise NotImplementedError

    def act(self, what: Sequence[What], within: float) -> None:
        raise NotImplementedError


class CrontabSwitch(_Threaded):
    """Lines of crontabs: `{"place", "line"}`. The user's own table goes through the program `crontab`."""

    def __init__(self, in_thread: InThread, *, backups: Path, program: str = "crontab") -> None:
        super().__init__(in_thread)
        self._backups = backups
        self._program = program

    def look(self, what: Sequence[What]) -> bool:
        return all(not (set(self._lines(place)) & lines) for place, lines in _by_place(what).items())

    def act(self, what: Sequence[What], within: float) -> None:
        for place, lines in _by_place(what).items():
            before = self._lines(place)
            after = [MARK + line if line in lines else line for line in before]
            if after != before:
                self._write(place, "\n".join(before), "\n".join(after), within)

    def _lines(self, place: str) -> list[str]:
        if place != USER_PLACE:
            return _read(Path(place)).split("\n")
        ended = _run([self._program, "-l"], 10)
        if ended.returncode == 0:
            return ended.stdout.split("\n")
        if _NO_TABLE.search(ended.stderr):
            return []
        raise SwitchFailed(f"{self._program} -l ended with {ended.returncode}: {ended.stderr.strip()[:300]}")

    def _write(self, place: str, before: str, after: str, within: float) -> None:
        if place != USER_PLACE:
            _replace(Path(place), before, after)
            return
        self._backups.mkdir(mode=0o700, parents=True, exist_ok=True)
        _keep(self._backups / "crontab", before)
        ended = _run([self._program, "-"], within, feed=after)
        if ended.returncode != 0:
            raise SwitchFailed(f"{self._program} - ended with {ended.returncode}: {ended.stderr.strip()[:300]}")


class JsonSwitch(_Threaded):
    """Items of JSON files: `{"path", "list", "id", "set": {field: value}}`, or `"remove": true` in place of `set`.
    `list` is the key of the list or of the map by id, if there is one; without an `id` the file itself is the item."""

    def look(self, what: Sequence[What]) -> bool:
        return all(_is_set(entry) for entry in what)

    def act(self, what: Sequence[What], within: float) -> None:
        for entry in what:
            path = Path(entry["path"])
            text = _read(path)
            data = _json(text)
            item = _item(data, entry)
            if item is not None:
                if entry.get("remove"):
                    _remove(data, entry, item)
                else:
                    item.update(entry["set"])
                _replace(path, text, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


class TomlSwitch(_Threaded):
    """A field of a TOML file: `{"path", "name", "value"}`. Only its line is changed."""

    def look(self, what: Sequence[What]) -> bool:
        return all(
            not Path(entry["path"]).exists() or _toml(_read(Path(entry["path"]))).get(entry["name"]) == entry["value"]
            for entry in what
        )

    def act(self, what: Sequence[What], within: float) -> None:
        for entry in what:
            path = Path(entry["path"])
            text = _read(path)
            if path.exists():
                _replace(path, text, _with_field(text, entry["name"], entry["value"]))


class OpenClawSwitch(_Threaded):
    """OpenClaw's jobs: `{"path", "id"}`. Uses its program if installed; else an older version's file."""

    def look(self, what: Sequence[What]) -> bool:
        return not any(openclaw.is_enabled(Path(entry["path"]), entry["id"]) for entry in what)

    def act(self, what: Sequence[What], within: float) -> None:
        program = openclaw.program()
        if program is None:
            if any(not entry["path"].endswith(".json") for entry in what):
                raise SwitchFailed("the program openclaw is not on the PATH of the daemon")
            JsonSwitch(self._in_thread).act(
                [{**entry, "list": "jobs", "set": {"enabled": False}} for entry in what], within
            )
            return
        for entry in what:
            ended = _run([program, "cron", "disable", entry["id"]], within)
            if ended.returncode != 0:
                raise SwitchFailed(f"openclaw cron disable ended with {ended.returncode}: {ended.stderr.strip()[:300]}")


class GlmTraySwitch(JsonSwitch):
    """GLM-Tray's slots, as items of its JSON file. The program reads the file only when it starts, and overwrites it
    whenever its settings are changed. So it must not be running when the file is changed."""

    def act(self, what: Sequence[What], within: float) -> None:
        if _is_running("glm-tray"):
            raise SwitchFailed("GLM-Tray is running, and reads its settings only when it starts; quit it")
        super().act(what, within)


class ProgramSwitch(_Threaded):
    """Anything with a program: `{"argv", "check", "off": [texts]}`. `check` prints one of `off` once it is off."""

    def look(self, what: Sequence[What]) -> bool:
        return all(_run(list(entry["check"]), 10).stdout.strip() in entry["off"] for entry in what)

    def act(self, what: Sequence[What], within: float) -> None:
        for entry in what:
            ended = _run(list(entry["argv"]), within)
            if ended.returncode != 0:
                raise SwitchFailed(
                    f"{' '.join(entry['argv'])} ended with {ended.returncode}: {ended.stderr.strip()[:300]}"
                )


def switches(in_thread: InThread, *, backups: Path) -> dict[str, Any]:
    """All switches, by the kind that an entry names."""
    return {
        "crontab": CrontabSwitch(in_thread, backups=backups),
        "json": JsonSwitch(in_thread),
        "toml": TomlSwitch(in_thread),
        "openclaw": OpenClawSwitch(in_thread),
        "glm-tray": GlmTraySwitch(in_thread),
        "program": ProgramSwitch(in_thread),
    }


def _by_place(what: Sequence[What]) -> dict[str, set[str]]:
    by_place: dict[str, set[str]] = {}
    for entry in what:
        by_place.setdefault(entry["place"], set()).add(entry["line"])
    return by_place


def _is_set(entry: What) -> bool:
    path = Path(entry["path"])
    if not path.exists():
        return True
    item = _item(_json(_read(path)), entry)
    if item is None or entry.get("remove"):
        return item is None
    return all(item.get(name) == value for name, value in entry["set"].items())


def _remove(data: Any, entry: What, item: dict[str, Any]) -> None:
    items = data.get(entry["list"], data) if isinstance(data, dict) else data
    if isinstance(items, dict):
        items.pop(next(name for name, value in items.items() if value is item))
    else:
        items[:] = [value for value in items if value is not item]


def _item(data: Any, entry: What) -> dict[str, Any] | None:
    """The item with this id, found as the readers find it; None if it is gone."""
    if entry.get("id") is None:
        return data if isinstance(data, dict) else None
    items = data.get(entry["list"], data) if isinstance(data, dict) else data
    named = items.items() if isinstance(items, dict) else enumerate(items, 1) if isinstance(items, list) else ()
    for name, item in named:
        if isinstance(item, dict):
            known_as = (
                item.get("id")
                or item.get("taskId")
                or item.get("slot")
                or (name if isinstance(items, dict) else f"#{name}")
            )
            if str(known_as) == entry["id"]:
                return item
    return None


def _json(text: str) -> Any:
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise SwitchFailed(f"it is no longer valid JSON: {error}") from None


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SwitchFailed(f"it is no longer valid TOML: {error}") from None


def _with_field(text: str, name: str, value: str) -> str:
    """TOML text with one field changed, and nothing else."""
    wanted = {**_toml(text), name: value}
    line = f"{name} = {json.dumps(value)}"
    matches = re.finditer(rf"^{re.escape(name)}[ \t]*=[^\n]*$", text, re.MULTILINE)
    for candidate in [*(text[: match.start()] + line + text[match.end() :] for match in matches), f"{line}\n{text}"]:
        with suppress(ValueError):
            if tomllib.loads(candidate) == wanted:
                return candidate
    raise SwitchFailed(f"its {name} cannot be changed; set it to {json.dumps(value)} by hand")


def _read(path: Path) -> str:
    try:
        return read_plain_text(path, most=FILE_MAX)
    except FileRefused as refused:
        if not path.exists():
            return ""
        raise SwitchFailed(str(refused)) from None


def _replace(path: Path, before: str, after: str) -> None:
    """Replace a file atomically, with its mode and owner, after a backup next to it."""
    try:
        _keep(path, before)
        unborn = path.with_name(f".{path.name}.wakeful-part")
        with os.fdopen(os.open(unborn, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, unborn)
        with suppress(PermissionError):
            os.chown(unborn, path.stat().st_uid, path.stat().st_gid)
        unborn.replace(path)
    except OSError as error:
        raise SwitchFailed(f"{path} cannot be written: {error.strerror}") from error


def _keep(path: Path, text: str) -> None:
    """Write a backup next to the file; an earlier one is never replaced, and identical text is kept once."""
    for number in range(100):
        backup = path.with_name(f"{path.name}{BACKUP}{f'-{number}' if number else ''}")
        try:
            with os.fdopen(os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                return
        except FileExistsError:
            if backup.read_text(errors="replace") == text:
                return
    raise SwitchFailed(f"there are a hundred backups of {path} already; remove some")


def _is_running(program: str) -> bool:
    """Whether any user runs a process with this name."""
    return program in _run(["ps", "-A", "-o", "comm="], 10).stdout.split()


def _run(argv: list[str], within: float, *, feed: str | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - a program of the source's own system
            argv, input=feed, capture_output=True, text=True, timeout=within, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SwitchFailed(f"{argv[0]} cannot be run: {error}") from None
