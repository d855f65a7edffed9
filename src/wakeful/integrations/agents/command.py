"""The command agent: any CLI agent run headless, one process per turn, parsed according to its settings.

The prompt replaces `{prompt}` in argv, else it goes to stdin; the key and all other facts of the run are in the
environment. Stdout is the reply, or, with `reply_path`, a part of the printed JSON: one value (`json`), or one per line
(`jsonl`), where the last line with a match counts. A session id found there is passed to `resume_argv` the next time.
stderr is never part of the reply.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.run.results import Failed, Throttled
from wakeful.core.run.runs import RungName
from wakeful.core.run.usage import usage_of
from wakeful.core.time.instants import Duration, Instant, format_instant
from wakeful.integrations.actions.reply import reply_of
from wakeful.integrations.actions.sandbox import Sandbox
from wakeful.integrations.actions.sessions import END_GRACE
from wakeful.integrations.agents.headless import Headless, for_people, with_withheld, wrong_launch
from wakeful.integrations.agents.limits import printed_reset
from wakeful.integrations.agents.one_shot import OneShot
from wakeful.integrations.agents.patterns import Matches, TooSlow, search, wrong_pattern
from wakeful.integrations.agents.presets.preset import Launch, Printed, ReadMoment
from wakeful.integrations.agents.printed import message_in, plain
from wakeful.integrations.agents.reply import marked, session_id_of
from wakeful.integrations.system.text import last_line, one_line, parse_json
from wakeful.integrations.system.threads import in_thread
from wakeful.ports.action import Ladder
from wakeful.ports.agent import Answer, Exchange, Fate, Replied, Turn
from wakeful.ports.clock import Clock

PROMPT: Final = "{prompt}"
SESSION: Final = "{session}"
MODEL: Final = "{model}"

Format = Literal["text", "json", "jsonl"]

_LINES_MAX: Final = 10_000
_PATTERNS: Final = ("session_pattern", "lost_pattern", "error_pattern", "limit_pattern")

JsonPath: TypeAlias = tuple[str, ...]
"""Keys, as a list in the settings, which needs no quoting, or from a text such as `stats."gemini-2.5-pro".tokens`."""

_PART: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^."]+)')


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """How a CLI agent is run, and how its output is read. Paths name a place in JSON, as in `result` or `a.0.b`."""

    argv: tuple[str, ...]
    resume_argv: tuple[str, ...] | None = None  # used instead of argv when there is a session to continue
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    pass_env: tuple[str, ...] = ()  # variables it gets although they are secrets
    model: str | None = None  # for `{model}` in argv
    format: Format | None = None  # None: json or jsonl, detected, if a path is given
    stdin: bool | None = None  # None: use stdin if argv has no {prompt}
    session_pattern: str | None = None  # its first group, or all it matches, is the session id
    session_path: str | JsonPath | None = None
    reply_path: str | JsonPath | None = None
    usage_path: str | JsonPath | None = None
    error_path: str | JsonPath | None = None  # anything there but null, false and "" is an error
    lost_pattern: str | None = None  # printed when a session is no longer known: it is run again without one
    error_pattern: str | None = None  # printed when the turn failed, whatever the exit code
    limit_pattern: str | None = None  # printed when a limit is reached; its group says when it resets
    zone: str = "UTC"  # the zone in which it prints times of day
    sandbox: Sandbox | None = None


class CommandAgent:
    """Performs turns by starting a program, and ends its whole session on timeout."""

    proves: RungName = "finished"
    knows: Mapping[str, type] = {"model": str}

    def __init__(self, settings: CommandSettings, clock: Clock, *, grace: Duration = END_GRACE) -> None:
        self._settings = settings
        self._clock = clock
        self._headless = Headless(clock, grace=grace)

    def check(self, config: Mapping[str, Any]) -> str | None:
        settings = self._settings
        for name in _PATTERNS:
            wrong = wrong_pattern(name, getattr(settings, name))
            if wrong is not None:
                return wrong
        if MODEL in " ".join(settings.argv) and not (config.get("model") or settings.model):
            return f"argv contains {MODEL}; set model for the agent, or sessionConfig.model"
        return wrong_launch(Launch(settings.argv), settings.cwd, settings.env, settings.sandbox)

    def begin(self, turn: Turn) -> Exchange:
        return OneShot(partial(self._send, turn))

    async def ask(self, turn: Turn) -> Fate:
        return None  # recovery ends its leftover processes; what it had done is unknown

    async def close(self) -> None:
        await self._headless.close()

    async def _send(self, turn: Turn, ladder: Ladder) -> Answer:
        # Checked again: it goes onto a command line, where a leading hyphen would be an option.
        session_id = session_id_of(turn.session_id) if turn.is_persistent else None
        settings = self._settings
        printed = await self._run(turn, session_id, ladder)
        if isinstance(printed, Failed):
            return printed
        matches = await self._matched(printed)
        note = None
        if session_id is not None and printed.code != 0 and matches.groups.get("lost_pattern") is not None:
            note = f"[the program no longer knows the session {session_id}: a new one was started]"
            session_id = None
            printed = await self._run(turn, None, ladder)
            if isinstance(printed, Failed):
                return printed
            matches = await self._matched(printed)
        asked = replace(settings, model=turn.config.get("model") or settings.model)
        read = partial(read_printed, asked, printed, matches, session_id, self._clock.read().now)
        answer = await in_thread(read, name="reading")
        if isinstance(answer, Failed):
            shown = with_withheld(answer.output, turn.fire, settings.pass_env, settings.env)
            answer = replace(answer, output=shown)
        return _with_note(answer, note, is_persistent=turn.is_persistent)

    async def _run(self, turn: Turn, session_id: str | None, ladder: Ladder) -> Printed | Failed:
        settings = self._settings
        launch = launched(
            settings, marked(turn.prompt, turn.fire.slug), session_id, turn.config.get("model") or settings.model
        )
        return await self._headless.run(
            launch,
            settings.cwd,
            settings.env,
            turn.fire,
            ladder,
            pass_env=settings.pass_env,
            sandbox=settings.sandbox,
        )

    async def _matched(self, printed: Printed) -> "_Matched":
        """The matches of the patterns on both streams; the session id is searched on stdout first."""
        patterns = {name: text for name in _PATTERNS if (text := getattr(self._settings, name)) is not None}
        try:
            return _Matched(await search(patterns, plain(f"{printed.stderr}\n{printed.stdout}")))
        except TooSlow as slow:
            return _Matched({}, str(slow))


class _Matched(NamedTuple):
    groups: Matches
    problem: str | None = None  # a pattern took too long: the result is unknown


def launched(settings: CommandSettings, prompt: str, session_id: str | None, model: str | None) -> Launch:
    """The command line of one turn."""
    words = settings.argv if session_id is None else settings.resume_argv or settings.argv
    values = {MODEL: model or "", SESSION: session_id or "", PROMPT: prompt}
    is_piped = not any(PROMPT in word for word in words) if settings.stdin is None else settings.stdin
    return Launch(tuple(_filled(word, values) for word in words), prompt if is_piped else None)


def read_printed(
    settings: CommandSettings, printed: Printed, matched: _Matched, session_id: str | None, now: Instant
) -> Answer:
    """Interpret a turn's output."""
    shown = reply_of(for_people(printed))
    if matched.problem is not None:  # whether it failed is unknown: not a success
        return Failed(matched.problem, permanent=True, output=shown)
    program, values = settings.argv[0].rpartition("/")[2], _values(settings, printed.stdout)
    usage = usage_of(_at(values, settings.usage_path))
    if usage is not None and settings.model is not None:
        usage = {"model": settings.model, **usage}
    limited = matched.groups.get("limit_pattern")
    until = None if limited is None else printed_reset(limited, printed, ReadMoment(now, settings.zone))
    if until is not None:
        error = f"{program}: its usage limit is reached, and resets at {format_instant(until)}"
        return Throttled(error, until, session_id, "quota", shown, usage)
    failure = _failure(settings, printed, matched.groups, values)
    if failure is not None:
        return Failed(f"{program}: {failure}", output=shown, usage=usage)
    text = printed.stdout.strip() if settings.reply_path is None else _at(values, settings.reply_path)
    if settings.reply_path is not None and not isinstance(text, str):
        missing = f"it printed no text at '{settings.reply_path}'; correct reply_path, or let it print JSON"
        return Failed(missing, output=shown, usage=usage)
    printed_id = session_id_of(_at(values, settings.session_path)) or session_id_of(
        matched.groups.get("session_pattern")
    )
    stderr = for_people(Printed("", printed.stderr, 0))
    return Replied(reply_of(text), printed_id or session_id, usage, reply_of(stderr))


def _failure(settings: CommandSettings, printed: Printed, matches: Matches, values: Sequence[Any]) -> str | None:
    """The failure of a turn, in one line; None if there is none."""
    said = matches.get("limit_pattern") or matches.get("error_pattern")
    if said is not None:
        return f"it reported an error: {_message(said)}"
    error = _at(values, settings.error_path)
    if error not in (None, False, ""):
        said = error if isinstance(error, str) else _at(values, settings.reply_path)
        said = said if isinstance(said, str) else last_line(printed.stdout)
        return f"it reported an error: {_message(said)}"
    if printed.code == 0:
        return None
    said = last_line(plain(printed.stderr)) or last_line(plain(printed.stdout))
    ended = "its exit status was lost" if printed.code is None else f"exited with {printed.code}"
    if printed.code is not None and printed.code < 0:
        ended = f"was killed by signal {-printed.code}"
    return f"{ended}: {_message(said)}" if said else ended


def _message(said: str) -> str:
    """The message inside the text, which may be JSON."""
    return re.sub(r"[{}]", "", one_line(message_in(said)[0])).strip() or "without a message; see the run's output"


def _with_note(answer: Answer, note: str | None, *, is_persistent: bool) -> Answer:
    match answer:
        case Replied(text, session_id, usage, output):
            shown = "\n".join(part for part in (note, output) if part) or None
            return Replied(text, session_id if is_persistent else None, usage, shown)
        case Failed() if note is not None:
            return Failed(
                answer.error, answer.permanent, answer.rung, f"{note}\n{answer.output or ''}", None, answer.usage
            )
        case _:
            return answer


def _filled(word: str, values: Mapping[str, str]) -> str:
    """The argument with its placeholders filled in one pass: a prompt that contains `{session}` keeps it.

    A prompt never becomes an option: an argument that would start with a hyphen because of it gets a leading space."""
    filled = re.sub("|".join(map(re.escape, values)), lambda match: values[match[0]], word)
    return f" {filled}" if word.startswith(PROMPT) and filled.startswith("-") else filled


def _values(settings: CommandSettings, output: str) -> list[Any]:
    """The printed JSON values, latest first: the whole output as one value, or each line that is one."""
    paths = (settings.session_path, settings.reply_path, settings.usage_path, settings.error_path)
    if settings.format == "text" or (settings.format is None and all(path is None for path in paths)):
        return []
    whole = parse_json(output) if settings.format != "jsonl" else None
    if isinstance(whole, dict | list):
        return [whole]
    if settings.format == "json":
        return []
    lines = output.splitlines()[-_LINES_MAX:]
    values = (parse_json(line) for line in reversed(lines) if line.lstrip().startswith("{"))
    return [value for value in values if value is not None]


def _at(values: Sequence[Any], path: str | JsonPath | None) -> Any:
    """The value at the path, from the first value that has it."""
    for value in values if path is not None else ():
        part = _walk(value, path or "")
        if part is not None:
            return part
    return None


def _keys(path: str | JsonPath) -> JsonPath:
    """The keys of a path. A key with dots is quoted."""
    if not isinstance(path, str):
        return path
    return tuple(bare or re.sub(r"\\(.)", r"\1", quoted) for quoted, bare in _PART.findall(path))


def _walk(value: Any, path: str | JsonPath) -> Any:
    """The value at the path; None if there is no such value."""
    for part in _keys(path):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.lstrip("-").isdigit() and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
