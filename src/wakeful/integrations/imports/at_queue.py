"""The queue of `at`: its spool files, or what `atq` and `at -c` print.

A file has the letter of its queue, the number of its job in five hexadecimal digits, and its minute in eight. It is a
script: the variables of the shell it was written in, its folder, and the commands.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from wakeful.core.time.instants import MINUTE, SECOND
from wakeful.integrations.imports.agent_jobs import once
from wakeful.integrations.imports.crontab import command_name
from wakeful.integrations.imports.entries import (
    Context,
    Entry,
    EntryRefused,
    Off,
    SourceFile,
    SourceRefused,
    masked,
    refuse,
    split_environment,
)
from wakeful.integrations.imports.places import plain_files_in, printed, read_files

_SPOOLS: Final = (Path("/var/spool/cron/atjobs"), Path("/var/spool/at"))
_NAME: Final = re.compile(r"([a-zA-Z=])([0-9a-f]{5})([0-9a-f]{8})", re.ASCII)
_LISTED: Final = re.compile(r"(\d+)\t(\d+) ([a-zA-Z=]) (\S+)", re.ASCII)
_HEADER: Final = re.compile(r"# atrun uid=(\d+)")
_MAIL: Final = re.compile(r"# mail +(\S+) +(-?\d)")
_VARIABLE: Final = re.compile(r"([A-Za-z_]\w*)=((?:[^;\\\n\"]|\\.|\"\n\")*); export \1\n", re.ASCII)
_FOLDER: Final = re.compile(r"cd (.+) \|\| \{\n\t echo 'Execution directory inaccessible' >&2\n\t exit 1\n\}\n")
_OF_THE_SHELL: Final = frozenset({"PWD", "OLDPWD", "SHLVL", "_", "TERM", "DISPLAY"})
_USUAL_UMASK: Final = ("22", "022", "0022", "2", "02", "002", "0002")


def find_at(context: Context) -> list[SourceFile]:
    """The queue of the user, or of everybody for root."""
    listed = printed(["atq", "-o", "%s"], "atq", context)
    files: list[SourceFile] = []
    for number, at, queue, _ in _LISTED.findall("" if listed is None else listed.text):
        script = printed(["at", "-c", number], "at -c", context)
        if script is not None:
            name = f"{queue}{int(number):05x}{int(at) * SECOND // MINUTE:08x}"
            files.append(SourceFile(f"atq/{name}", script.text))
    return files


def open_at(path: Path) -> list[SourceFile]:
    """A spool folder, or one job."""
    files = [path] if not path.is_dir() else [file for file in plain_files_in(path) if _NAME.fullmatch(file.name)]
    return read_files(files)


def read_at(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All jobs of the queue."""
    return [_entry(file, context) for file in files]


def _entry(file: SourceFile, context: Context) -> Entry:
    read = _NAME.fullmatch(Path(file.place).name)
    if read is None:
        raise SourceRefused(file.place, "it is not a job of at; name its spool folder")
    queue, number = read[1], int(read[2], 16)
    place = str(Path(file.place).parent)
    variables, folder, script, umask = _parts(file)
    shown = masked(f"at job {number}: {script.strip()}".replace("\n", "; "))[:400]
    try:
        if queue == "b":
            refuse("batch waits until the load of the machine is low, which a schedule cannot express")
        if queue == "=":
            refuse("it is running")
        schedule, times = once(int(read[3], 16) * MINUTE)
        return Entry(
            place,
            str(number),
            shown,
            command_name(script),
            schedule=schedule,
            action={"command": _command(file, variables, folder, script, umask, context)},
            options={"timeout": "1d", "maxConsecutiveErrors": 0, **_deliver(file, context)},
            times=times,
            not_carried=tuple(
                f"{name} (a secret: set it where the daemon runs)" for name in split_environment(variables)[1]
            ),
            notes=tuple(_notes(file, queue)),
            off=Off("program", _off(number)) if place in ("atq", *map(str, _SPOOLS)) else None,
            by_hand=f"run atrm {number}",
        )
    except EntryRefused as refused:
        return Entry(place, str(number), shown, "job", refused=str(refused))


def _parts(file: SourceFile) -> tuple[dict[str, str], str | None, str, str | None]:
    """The variables, the folder, the commands and the umask."""
    text = file.text.replace("\r\n", "\n")
    if not _HEADER.search(text[:500]):
        raise SourceRefused(file.place, "it is not a job of at: it has no line `# atrun`")
    variables = {read[1]: _unquoted(read[2]) for read in _VARIABLE.finditer(text)}
    folder = _FOLDER.search(text)
    if folder is None:
        raise SourceRefused(file.place, "it is not a job of at: it enters no folder")
    umask = re.search(r"^umask (\d+)$", text, re.MULTILINE)
    return variables, _unquoted(folder[1]), text[folder.end() :], None if umask is None else umask[1]


def _unquoted(text: str) -> str:
    """A value as the shell reads it."""
    try:
        return "".join(shlex.split(text)) if text else ""
    except ValueError:
        refuse("one of its variables cannot be read")


def _command(
    file: SourceFile, variables: dict[str, str], folder: str | None, script: str, umask: str | None, context: Context
) -> dict[str, Any]:
    user = _HEADER.search(file.text)
    owner = _MAIL.search(file.text)
    name = owner[1] if owner is not None else ""
    is_own = name == context.user
    argv = ["sh", "-c", script.strip() if umask in (None, *_USUAL_UMASK) else f"umask {umask}; {script.strip()}"]
    if not script.strip():
        refuse("it has no commands")
    if not is_own:
        if context.user != "root" or user is None or not name:
            refuse(f"it runs as {name[:80] or 'another user'}, and the daemon as {context.user}; import it there")
        argv = ["runuser", "-u", name, "--", *argv]
    plain, secret = split_environment({key: value for key, value in variables.items() if key not in _OF_THE_SHELL})
    more = {"cwd": folder, "env": plain, "passEnv": secret}
    return {"argv": argv, **{key: value for key, value in more.items() if value}}


def _deliver(file: SourceFile, context: Context) -> dict[str, Any]:
    """With `at -m` there is always a mail."""
    mail = _MAIL.search(file.text)
    if mail is None or mail[2] != "1":
        return {}
    if "mail" not in context.channels:
        refuse(f"its end is mailed to {mail[1][:80]}: add a channel named mail to wakeful.toml")
    return {"deliver": {"channel": "mail", "to": mail[1]}}


def _notes(file: SourceFile, queue: str) -> list[str]:
    mail = _MAIL.search(file.text)
    notes = (
        [] if mail is None or mail[2] != "0" else ["at mails the output if there is any; here it is kept with the run"]
    )
    return notes if queue == "a" else [*notes, f"queue {queue} runs with a lower priority there; here it does not"]


def _off(number: int) -> dict[str, Any]:
    return {
        "argv": ["atrm", str(number)],
        "check": ["sh", "-c", f"atq | cut -f 1 | grep -cx {number} || true"],
        "off": ["0"],
    }
