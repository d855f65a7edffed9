"""The command agent: a CLI agent run headless, one process a turn.

The prompt goes where argv says `{prompt}`, else over stdin; the key and all other facts of the run are in the
environment. What is printed is the reply, or, if `reply_path` says so, a part of the JSON that is printed: one object,
or the last line that holds what is looked for. A session id found there is handed to `resume` the next time.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from wakeful.actions.command import CommandAction
from wakeful.actions.sessions import END_GRACE
from wakeful.adapters.exchange import parse_json
from wakeful.adapters.text import last_line, one_line
from wakeful.agents.one_shot import OneShot
from wakeful.agents.reply import READ_MAX, marked, reply_of, session_id_of
from wakeful.core.actions import Command
from wakeful.core.instants import Duration
from wakeful.core.results import Done, Failed, Result
from wakeful.core.runs import RungName
from wakeful.core.usage import usage_of
from wakeful.ports.action import Ladder
from wakeful.ports.agent import Answer, Exchange, Fate, Replied, Turn

PROMPT: Final = "{prompt}"
SESSION: Final = "{session}"
MODEL: Final = "{model}"

_LINES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """How a CLI agent is run, and how its output is read. Paths name a place in JSON, as in `result` or `a.0.b`."""

    argv: tuple[str, ...]
    resume: tuple[str, ...] = ()  # appended when there is a session to go on with, e.g. ("--resume", "{session}")
    resume_argv: tuple[str, ...] | None = None  # or, used instead of argv then
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    model: str | None = None  # for `{model}` in argv
    session_pattern: str | None = None  # its first group, or all it matches, is the session id
    session_path: str | None = None
    reply_path: str | None = None
    usage_path: str | None = None
    error_path: str | None = None  # anything there but null, false and "" is an error
    lost_pattern: str | None = None  # printed when a session is not known any more: it is run once more without


class CommandAgent:
    """Performs turns through the command action, which ends whole sessions of processes."""

    proves: RungName = "finished"
    knows: Mapping[str, type] = {"model": str}

    def __init__(self, settings: CommandSettings, *, grace: Duration = END_GRACE) -> None:
        self._settings = settings
        self._action = CommandAction(grace=grace)

    def check(self, config: Mapping[str, Any]) -> str | None:
        settings = self._settings
        for name in ("session_pattern", "lost_pattern"):
            wrong = _wrong_pattern(name, getattr(settings, name))
            if wrong is not None:
                return wrong
        if settings.resume and not any(SESSION in word for word in settings.resume):
            return f"resume does not say where the session goes; write {SESSION} into it"
        if MODEL in " ".join(settings.argv) and not (config.get("model") or settings.model):
            return f"argv asks for {MODEL}; set model for the agent, or sessionConfig.model"
        return self._action.check(Command(settings.argv, settings.cwd))

    def begin(self, turn: Turn) -> Exchange:
        async def send(ladder: Ladder) -> Answer:
            return await self._send(turn, ladder)

        return OneShot(send)

    async def ask(self, turn: Turn) -> Fate:
        return None  # what it left running is ended by the rescue; what it had done, nobody can tell

    async def close(self) -> None:
        await self._action.close()

    async def _send(self, turn: Turn, ladder: Ladder) -> Answer:
        # Checked again: it goes onto a command line, where a leading hyphen would be an option.
        session_id = session_id_of(turn.session_id) if turn.is_persistent else None
        result = await self._run(turn, session_id, ladder)
        if session_id is not None and self._is_lost(result):
            session_id = None
            result = await self._run(turn, None, ladder)
        match result:
            case Done(output=output):
                return self._read(output or "", session_id, is_persistent=turn.is_persistent)
            case Failed():
                return result
            case _:
                return Failed(f"the command ended as {type(result).__name__}")

    async def _run(self, turn: Turn, session_id: str | None, ladder: Ladder) -> Result:
        settings, prompt = self._settings, marked(turn.prompt, turn.fire.slug)
        model = turn.config.get("model") or settings.model or ""
        words = settings.argv + (settings.resume if session_id is not None else ())
        if session_id is not None and settings.resume_argv is not None:
            words = settings.resume_argv
        filled = tuple(_filled(word, {MODEL: model, SESSION: session_id or "", PROMPT: prompt}) for word in words)
        stdin = None if any(PROMPT in word for word in words) else prompt
        command = Command(filled, settings.cwd, settings.env, stdin, READ_MAX)
        return await self._action.perform(command, turn.fire, ladder)

    def _is_lost(self, result: Result) -> bool:
        pattern = self._settings.lost_pattern
        if pattern is None or not isinstance(result, Failed):
            return False
        return re.search(pattern, result.output or "") is not None

    def _read(self, output: str, session_id: str | None, *, is_persistent: bool) -> Answer:
        settings = self._settings
        values = _json_values(output) if _reads_json(settings) else []
        error = _at(values, settings.error_path)
        if error not in (None, False, ""):
            said = error if isinstance(error, str) else _at(values, settings.reply_path)
            said = said if isinstance(said, str) else last_line(output)
            return Failed(f"it reported an error: {one_line(said)}", output=reply_of(output))
        text = output.strip() if settings.reply_path is None else _at(values, settings.reply_path)
        if settings.reply_path is not None and not isinstance(text, str):
            missing = f"it printed no text at '{settings.reply_path}'; correct reply_path, or let it print JSON"
            return Failed(missing, output=reply_of(output))
        found = session_id_of(_at(values, settings.session_path)) or self._matched(output) or session_id
        usage = usage_of(_at(values, settings.usage_path))
        # No word at all is nothing to deliver; an empty reply it would be only if it said so in JSON.
        reply = None if settings.reply_path is None and not text else reply_of(text)
        return Replied(reply, found if is_persistent else None, usage)

    def _matched(self, output: str) -> str | None:
        pattern = self._settings.session_pattern
        found = None if pattern is None else re.search(pattern, output)
        return None if found is None else session_id_of(found[1] if found.re.groups else found[0])


def _reads_json(settings: CommandSettings) -> bool:
    paths = (settings.session_path, settings.reply_path, settings.usage_path, settings.error_path)
    return any(path is not None for path in paths)


def _filled(word: str, values: Mapping[str, str]) -> str:
    """The word with its placeholders filled, in one pass: a prompt that says `{session}` keeps it."""
    return re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], word)


def _json_values(output: str) -> list[Any]:
    """The JSON that was printed, latest first: all of it as one value, or each line that is one."""
    whole = parse_json(output)
    if isinstance(whole, dict | list):
        return [whole]
    lines = output.splitlines()[-_LINES_MAX:]
    values = (parse_json(line) for line in reversed(lines) if line.lstrip().startswith("{"))
    return [value for value in values if value is not None]


def _at(values: Sequence[Any], path: str | None) -> Any:
    """What is found at the path in the first of the values that has it."""
    for value in values if path is not None else ():
        found = _walk(value, path or "")
        if found is not None:
            return found
    return None


def _walk(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.lstrip("-").isdigit() and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _wrong_pattern(name: str, pattern: str | None) -> str | None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        return f"{name} '{pattern}' cannot be read ({error}); correct the regular expression"
    return None
