"""crontab: users' tables, `/etc/crontab` and `/etc/cron.d`.

Variables hold from their line downwards and are not expanded. An unescaped `%` ends the command; what follows is its
standard input, with a newline for each further `%`. The line runs under `SHELL -c`, usually sh.

System tables have a user column. In /etc they are known by their place; elsewhere, by a user of this machine in front
of every command.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

from wakeful.core.slug import slug_of
from wakeful.integrations.imports.cron_fields import NAMED, debian_times
from wakeful.integrations.imports.entries import (
    ENTRIES_MAX,
    LINE_MAX,
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

KIND: Final = "crontab"
USER_PLACE: Final = "crontab -l"
_SH: Final = "/bin/sh"
_VARIABLE: Final = re.compile(r"""\s*(["']?)([A-Za-z_][A-Za-z0-9_]*)\1\s*=\s*(.*?)\s*""", re.ASCII)
_LINE: Final = re.compile(r"\s*(@[A-Za-z]+|\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(\S.*)", re.DOTALL)
_NOISE: Final = frozenset({
    "cd", "test", "sh", "bash", "env", "nice", "ionice", "flock", "exec", "timeout", "sudo", "nohup", "if", "then",
    "fi", "command", "root", "python", "python3", "perl", "node",
})  # fmt: skip
_CD: Final = re.compile(r"""^(?:\s*cd\s+(?:'[^']*'|"[^"]*"|[^\s;&]+)\s*(?:&&|;))+""")
_WORD: Final = re.compile(r"[^\s;&|()<>]+")
_ABOUT_CRON: Final = frozenset({"SHELL", "MAILTO", "MAILFROM", "CRON_TZ", "HOME", "LOGNAME", "USER", "RANDOM_DELAY"})


@dataclass(slots=True)
class _Table:
    """One table while it is read."""

    file: SourceFile
    context: Context
    has_user: bool
    variables: dict[str, str] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)


def read_crontab(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All entries of these tables."""
    entries: list[Entry] = []
    for file in files:
        for entry in _entries(file, context):
            entries.append(entry)
            if len(entries) > ENTRIES_MAX:
                raise SourceRefused(file.place, f"there are more than {ENTRIES_MAX} entries", entry.line)
    return entries


def is_system_table(place: str) -> bool:
    """Whether a table has a user column."""
    return place == "/etc/crontab" or place.startswith("/etc/cron.d/") or "/cron.d/" in place


def _entries(file: SourceFile, context: Context) -> Iterator[Entry]:
    lines = list(_lines(file))
    table = _Table(file, context, is_system_table(file.place) or _has_users([text for _, text in lines], context))
    for number, text in lines:
        assigned = _VARIABLE.fullmatch(text)
        if assigned is not None:
            table.variables[assigned[2]] = _unquoted(assigned[3])
            continue
        yield _entry(table, number, text)


def _lines(file: SourceFile) -> Iterator[tuple[int, str]]:
    """The lines that are neither empty nor comments, with their numbers."""
    if "\0" in file.text:
        raise SourceRefused(file.place, "it has a NUL character; this is not a crontab")
    for number, line in enumerate(file.text.split("\n"), 1):
        if len(line) > LINE_MAX:
            raise SourceRefused(
                file.place, f"the line has {len(line):,} characters; at most {LINE_MAX:,} are read", number
            )
        text = line.rstrip("\r")
        if text.strip() and not text.lstrip().startswith("#"):
            yield number, text


def _has_users(texts: Sequence[str], context: Context) -> bool:
    """Whether each entry has a user of this machine in front of its command, and in one of them it is no program."""
    assigned = [read for text in texts if (read := _VARIABLE.fullmatch(text)) is not None]
    path = next((_unquoted(read[3]) for read in reversed(assigned) if read[2] == "PATH"), None)
    entries = [read for text in texts if _VARIABLE.fullmatch(text) is None and (read := _LINE.fullmatch(text))]
    commands = [read[2].split(maxsplit=1) for read in entries]
    is_each_user = bool(commands) and all(len(words) == 2 and words[0] in context.users for words in commands)
    return is_each_user and any(not _is_program(words[0], context, path) for words in commands)


def _is_program(name: str, context: Context, path: str | None) -> bool:
    """Whether a command is found, on the PATH of its table or the daemon's."""
    return shutil.which(name, path=path or context.environ.get("PATH")) is not None


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _entry(table: _Table, number: int, text: str) -> Entry:
    place, shown, context = table.file.place, masked(text.strip()), table.context
    split = _LINE.fullmatch(text)
    try:
        if split is None:
            refuse("it does not have five fields and a command")
        timing, rest = " ".join(split[1].split()), split[2]
        if timing.lower() == "@reboot":
            refuse("@reboot has no time; start it as a service instead (wakeful service, or a systemd unit)")
        expression = NAMED.get(timing.lower(), timing)
        if expression.startswith("@"):
            refuse(f"{timing} is not a time that cron knows")
        user = None
        if table.has_user:
            words = rest.split(maxsplit=1)
            if len(words) < 2:
                refuse("it has no command after the user")
            user, rest = words
        else:
            word, *more = rest.split(maxsplit=1)
            if more and word in context.users and not _is_program(word, context, table.variables.get("PATH")):
                refuse(f"{word} is a user, not a program: this looks like a line of a system table; remove the user")
        command, stdin = _percent(rest)
        zone = _zone(table)
        times = debian_times(expression, zone)
        ref = _ref(table, f"{user or ''} {rest}".strip())
        return Entry(
            place,
            ref,
            shown,
            command_name(command),
            number,
            schedule={"type": "cron", "expression": expression, "timezone": zone},
            action={"command": _action(table, command, stdin, user)},
            options={"catchUp": "skip", "timeout": "1d", "maxConsecutiveErrors": 0, **_deliver(table)},
            times=times,
            not_carried=_not_carried(table, expression),
            off=Off(KIND, {"place": place, "line": text}),
        )
    except EntryRefused as refused:
        return Entry(place, _ref(table, text), shown, "job", number, refused=str(refused))


def _percent(text: str) -> tuple[str, str | None]:
    """The command and its standard input."""
    parts = re.split(r"(?<!\\)%", text)
    command, *lines = (part.replace("\\%", "%") for part in parts)
    return command.rstrip(), "\n".join(lines) + "\n" if lines else None


def _zone(table: _Table) -> str:
    named = table.variables.get("CRON_TZ")
    if not named or table.context.is_debian_cron:
        return table.context.zone
    from wakeful.core.errors import Invalid
    from wakeful.core.time.zones import check_zone

    try:
        return check_zone(named)
    except Invalid:
        refuse(f"CRON_TZ={named[:80]} is not a time zone")


def _action(table: _Table, command: str, stdin: str | None, user: str | None) -> dict[str, Any]:
    variables = {name: value for name, value in table.variables.items() if name not in _ABOUT_CRON}
    env, secret = split_environment(variables)
    argv = [_shell(table), "-c", command]
    context = table.context
    if user is not None and user != context.user:
        if context.user != "root":
            refuse(f"it runs as {user[:80]}, and the daemon runs as {context.user}; import it there")
        argv = ["runuser", "-u", user, "--", *argv]
    action: dict[str, Any] = {"argv": argv}
    if "HOME" in table.variables:
        env = {**env, "HOME": table.variables["HOME"]}
    home = table.variables.get("HOME") or (str(context.user_home) if user in (None, context.user) else None)
    if home is not None:
        action["cwd"] = home
    if env:
        action["env"] = env
    if stdin is not None:
        action["stdin"] = stdin
    if secret:
        action["passEnv"] = secret
    return action


def _shell(table: _Table) -> str:
    shell = table.variables.get("SHELL", _SH)
    return "sh" if shell in (_SH, "sh", "/usr/bin/sh") else shell


def _deliver(table: _Table) -> Mapping[str, Any]:
    to = table.variables.get("MAILTO")
    if not to:
        return {}
    if "mail" not in table.context.channels:
        refuse(f'its output is mailed to {to[:80]}: add a channel named mail to wakeful.toml, or write MAILTO=""')
    return {"deliver": {"channel": "mail", "to": to}}


def _not_carried(table: _Table, expression: str) -> tuple[str, ...]:
    variables = table.variables
    names = [f"{name} (a secret: set it where the daemon runs)" for name in split_environment(variables)[1]]
    if "CRON_TZ" in variables and table.context.is_debian_cron:
        names.append("CRON_TZ (this machine's cron ignores it too)")
    names += [name for name in ("MAILFROM", "RANDOM_DELAY") if name in variables]
    return tuple(names)


def _ref(table: _Table, text: str) -> str:
    """An entry's identity is its command, so that a changed time is an update; numbered if it occurs more than once."""
    count = table.seen[text] = table.seen.get(text, 0) + 1
    return text if count == 1 else f"{text} #{count}"


def command_name(command: str) -> str:
    """What to call a shell command: its first program."""
    for word in _WORD.findall(_CD.sub("", command)):
        plain = word.strip("'\"[]!")
        if (
            plain
            and plain not in _NOISE
            and not plain.startswith("-")
            and "=" not in plain
            and not plain.startswith("$")
        ):
            name = PurePath(plain).name
            if name and not plain.endswith("/") and not name.isdecimal():
                return slug_of(PurePath(name).stem if "." in name[1:] else name)
    return "job"
