"""One schedule as lines of a crontab, as Debian's cron reads it."""

import shlex
from typing import Final

from wakeful.core.time.timing import Cron, Every, Times
from wakeful.core.time.timing_words import describe
from wakeful.features.moving.leaving import Leaving, Left, clock_fields, union
from wakeful.integrations.imports.cron_fields import NAMED, cron_sets, debian_times
from wakeful.integrations.imports.entries import refuse

LINE_MAX: Final = 998
"""Characters of a command that Debian's cron reads."""


def crontab_entry(leaving: Leaving) -> Left:
    """Comment and lines; a disabled schedule is commented out. Refuses what cron cannot express."""
    expressions = _expressions(leaving)
    command = _command(leaving)
    off = "" if leaving.is_enabled else "# "
    lines = [f"# {leaving.slug}: {describe(leaving.timing)}\n"]
    lines += [f"{off}{expression} {command}\n" for expression in expressions]
    lost = [f"passEnv {name}: set it in the crontab" for name in leaving.command.pass_env]
    return Left("".join(lines), union([debian_times(text, leaving.zone) for text in expressions]), lost)


def _expressions(leaving: Leaving) -> list[str]:
    timing, zone = leaving.timing, leaving.zone
    if isinstance(timing, Cron | Times) and timing.timezone != zone:
        refuse(f"its zone is {timing.timezone}, and cron would count in {zone}")
    match timing:
        case Cron():
            return [_five_fields(timing.expression)]
        case Times():
            hours: dict[str, list[int]] = {}
            for text in timing.times:
                hours.setdefault(text[3:], []).append(int(text[:2]))
            return [f"{int(minute)} {','.join(map(str, sorted(of)))} * * *" for minute, of in sorted(hours.items())]
        case Every():
            minute, hour = clock_fields(timing)
            if hour != "*" and zone != "UTC":
                refuse("its interval counts real hours, and cron the hours of the clock")
            return [f"{minute} {hour} * * *"]
        case _:
            return refuse("it has no times that repeat")


def _five_fields(expression: str) -> str:
    text = NAMED.get(expression.strip().lower(), " ".join(expression.split()))
    parts = text.split()
    if len(parts) == 6:
        if parts[0] != "0":
            refuse("it has seconds, which cron has not")
        parts = parts[1:]
    text = " ".join(parts)
    cron_sets(text)  # refuses what only we read: L, #, open steps
    return text.replace("?", "*")


def _command(leaving: Leaving) -> str:
    command = leaving.command
    line = shlex.join(command.argv)
    if command.argv[0] in ("sh", "/bin/sh") and command.argv[1:2] == ("-c",) and len(command.argv) == 3:
        line = command.argv[2]
    assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in command.env.items())
    if assigned:
        line = f"export {assigned}; {line}"
    if command.cwd is not None:
        line = f"cd {shlex.quote(command.cwd)} && {line}"
    if "\n" in line:
        refuse("its command has several lines, which a crontab cannot have")
    line = line.replace("%", "\\%")
    if command.stdin is not None:
        line += "%" + command.stdin.removesuffix("\n").replace("%", "\\%").replace("\n", "%")
    if len(line) > LINE_MAX:
        refuse(f"its command has {len(line)} characters; cron reads {LINE_MAX}")
    return line
