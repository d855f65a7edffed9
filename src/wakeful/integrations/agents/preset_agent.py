"""A command-line agent described by a preset: one process per turn.

A turn proceeds as follows: if a known limit still applies, the program is not started; otherwise it is started, in its
session if it has one; its output is parsed off the event loop; a session it no longer knows is replaced by a new one,
once, and the run's output says so. Usage is for this turn only: if the program reports totals, it is the difference
from the total noted with the session.
"""

import hashlib
import importlib.util
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from wakeful.core.run.results import Failed, Throttled
from wakeful.core.run.runs import RungName
from wakeful.core.run.usage import Usage, since
from wakeful.core.slot.windows import UsageWindow
from wakeful.core.time.instants import Duration, Instant, format_instant
from wakeful.integrations.actions.reply import reply_of
from wakeful.integrations.actions.sessions import END_GRACE
from wakeful.integrations.agents.headless import Headless, for_people, with_withheld, wrong_launch
from wakeful.integrations.agents.one_shot import OneShot
from wakeful.integrations.agents.presets.preset import Ask, Preset, Printed, Reading, ReadMoment
from wakeful.integrations.agents.reply import marked, session_id_of
from wakeful.integrations.agents.session_notes import SessionNotes, SessionUsage
from wakeful.integrations.agents.troubles import trouble
from wakeful.integrations.system.threads import in_thread
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.agent import Answer, Exchange, Fate, Replied, Turn
from wakeful.ports.clock import Clock

log = logging.getLogger("wakeful.integrations.agents")

TOOLS_MAX: Final = 20
TOOL_MAX: Final = 200
"""How many refused tools are reported with a run, and how much of each: Codex names whole commands."""


OnWindows: TypeAlias = Callable[[tuple[UsageWindow, ...]], Awaitable[None]]
"""Called with the usage windows that a turn reported, before the turn ends."""


@dataclass(frozen=True, slots=True)
class PresetSettings:
    """How one such agent is run."""

    preset: Preset
    program: str
    cwd: str | None = None
    model: str | None = None
    permissions: str | None = None
    has_tools: bool = True  # whether the program is given our MCP server
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    pass_env: tuple[str, ...] = ()  # variables it gets although they are secrets
    zone: str = "UTC"  # the zone in which the program prints times of day


class _Limit(NamedTuple):
    """An exhausted usage limit."""

    error: str
    until: Instant


class PresetAgent:
    """Performs turns by starting the program."""

    proves: RungName = "finished"
    knows: Mapping[str, type] = {"model": str}

    def __init__(
        self,
        settings: PresetSettings,
        clock: Clock,
        notes: SessionNotes,
        *,
        grace: Duration = END_GRACE,
        on_windows: OnWindows | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._notes = notes
        self._on_windows = on_windows
        self._headless = Headless(clock, grace=grace)
        self._limits: dict[str | None, _Limit] = {}  # by model: one may be exhausted while another is not

    def check(self, config: Mapping[str, Any]) -> str | None:
        settings = self._settings
        wrong = _wrong_permissions(settings.preset, settings.permissions)
        if wrong is not None:
            return wrong
        launch = settings.preset.launch(self._ask("x", None, None, config))
        return wrong_launch(launch, settings.cwd, self._env())

    def begin(self, turn: Turn) -> Exchange:
        return OneShot(partial(self._send, turn))

    async def ask(self, turn: Turn) -> Fate:
        return None  # recovery ends its leftover processes; what it had done is unknown

    async def close(self) -> None:
        await self._headless.close()

    async def _send(self, turn: Turn, ladder: Ladder) -> Answer:
        limit = self._limit(turn)
        if limit is not None:
            return Throttled(limit.error, limit.until, reason="quota")
        # Checked again: it goes onto a command line, where a leading hyphen would be an option.
        session_id = session_id_of(turn.session_id) if turn.is_persistent and self._settings.preset.resumes else None
        notes: list[str] = []
        if session_id is not None and not await self._is_here(turn, session_id):
            notes.append(_not_here(turn, session_id))
            session_id = None
        outcome = await self._run(turn, session_id, ladder)
        if isinstance(outcome, tuple) and outcome[1].kind == "lost" and session_id is not None:
            notes.append(await self._lost(session_id))
            session_id = None
            outcome = await self._run(turn, None, ladder)
        if isinstance(outcome, Failed):
            return outcome
        printed, reading = outcome
        if reading.windows and self._on_windows is not None:
            await self._on_windows(reading.windows)
        return await self._answer(turn, session_id, printed, reading, notes)

    async def _run(self, turn: Turn, session_id: str | None, ladder: Ladder) -> Failed | tuple[Printed, Reading]:
        settings = self._settings
        prompt = marked(turn.prompt, turn.fire.slug)
        new = _new_session(turn.fire) if turn.is_persistent and session_id is None else None
        ask = self._ask(prompt, session_id, new, turn.config)
        tools_url = _tools_url(turn.fire) if settings.has_tools else None
        ask = ask._replace(tools_url=tools_url, cost_max=turn.fire.cost_max)
        launch = settings.preset.launch(ask)
        if settings.preset.names_sessions and new is not None:
            await in_thread(partial(_make_folder, self._notes.folder), name="agent")
        env = {**self._env(), **await in_thread(partial(self._prepare, ask), name="agent")}
        printed = await self._headless.run(launch, settings.cwd, env, turn.fire, ladder, pass_env=settings.pass_env)
        if isinstance(printed, Failed):
            return printed
        now = ReadMoment(self._clock.read().now, settings.zone)
        return printed, await in_thread(partial(self._read, printed, now), name="reading")

    def _prepare(self, ask: Ask) -> Mapping[str, str]:
        """Write what the program has to find on disk. A full disk costs it the tools, not the turn."""
        prepare = self._settings.preset.prepare
        try:
            return {} if prepare is None else prepare(ask, {**os.environ, **self._env()})
        except OSError as error:
            log.warning("%s starts without Wakeful's tools: %s", self._settings.preset.program, error)
            return {}

    def _read(self, printed: Printed, now: ReadMoment) -> Reading:
        """Interpret the output. The windows and the exact time of a reset may be on disk, not in the output."""
        preset = self._settings.preset
        reading = preset.read(printed, now)
        return reading if preset.read_stored is None else preset.read_stored(reading, {**os.environ, **self._env()})

    async def _answer(
        self, turn: Turn, session_id: str | None, printed: Printed, reading: Reading, notes: list[str]
    ) -> Answer:
        preset, model = self._settings.preset, self._model(turn.config)
        now_in = self._session_after(turn, session_id, reading)
        usage = await self._usage(session_id, now_in, reading)
        if usage is not None and model is not None:
            usage = {"model": model, **usage}
        refused = tuple(reply_of(name[:TOOL_MAX]) or "" for name in reading.refused[:TOOLS_MAX])
        if refused:
            notes.append(
                f"[{preset.program} refused these tools for lack of permission: {', '.join(refused)}; "
                "set permissions or args of this agent to allow them]"
            )
        if reading.kind == "answered":  # other output is not for people: events, warnings about colours
            self._limits.pop(model, None)
            return Replied(reply_of(reading.text), now_in, usage, reply_of("\n".join(notes) or None), refused)
        shown = reply_of("\n".join((*notes, for_people(printed) or "")).strip() or None)
        if reading.kind == "limited" and reading.reset_at is not None:
            error = f"{preset.program}: its usage limit is reached, and resets at {format_instant(reading.reset_at)}"
            self._limits[model] = _Limit(error, reading.reset_at)
            return Throttled(error, reading.reset_at, now_in, "quota", shown, usage)
        wrong = trouble(preset, reading.text, reading.status, printed.code)
        shown = with_withheld(shown, turn.fire, self._settings.pass_env, self._env())
        return Failed(wrong.sentence, wrong.permanent, None, shown, now_in, usage, refused)

    def _session_after(self, turn: Turn, session_id: str | None, reading: Reading) -> str | None:
        """The session the schedule continues with. One started by a failed turn is not kept: it is empty."""
        preset = self._settings.preset
        if not turn.is_persistent or not preset.resumes:
            return None
        if session_id is not None or reading.kind != "answered":
            return session_id
        return _new_session(turn.fire) if preset.names_sessions else session_id_of(reading.session_id)

    async def _usage(self, session_id: str | None, now_in: str | None, reading: Reading) -> Usage | None:
        """The usage of this turn; also notes the total of its session."""
        usage = reading.usage
        if reading.totals is not None:
            known = None if session_id is None else await self._notes.read(session_id)
            # For a session not started here, the share of this turn in the total is unknown.
            is_known = session_id is None or (known is not None and known.totals is not None)
            usage = since(reading.totals, known.totals if known is not None else None) if is_known else None
        noted = now_in or session_id
        if noted is not None and (reading.totals is not None or session_id is None):
            await self._note(noted, SessionUsage(reading.totals))
        return usage

    async def _note(self, session_id: str, note: SessionUsage) -> None:
        try:
            await self._notes.write(session_id, note, self._clock.read().now)
        except OSError:  # a full disk does not undo an answer; the next turn's usage is unknown then
            return

    async def _is_here(self, turn: Turn, session_id: str) -> bool:
        """Whether the session is on this machine's disk, as far as is known; if in doubt, the program decides."""
        history = self._settings.preset.history
        if history:  # its program would silently start a new one
            return await in_thread((self._notes.folder / history.format(session=session_id)).exists, name="agent")
        return turn.session_node is None or await self._notes.read(session_id) is not None

    async def _lost(self, session_id: str) -> str:
        """The note about a lost session."""
        known = await self._notes.read(session_id)
        where = "any more" if known is not None else "; it may be on another node"
        program = self._settings.preset.program
        return f"[{program} does not know the session {session_id} {where}: a new one was started]".replace(" ;", ";")

    def _limit(self, turn: Turn) -> _Limit | None:
        """A limit that still applies. Manual runs are not held back by a remembered limit."""
        limit = self._limits.get(self._model(turn.config))
        if limit is None or turn.fire.trigger == "manual" or limit.until <= self._clock.read().now:
            return None
        return limit

    def _ask(self, prompt: str, session_id: str | None, new: str | None, config: Mapping[str, Any]) -> Ask:
        settings = self._settings
        return Ask(
            program=settings.program,
            prompt=prompt,
            session_id=session_id,
            new_session_id=new,
            model=self._model(config),
            permissions=settings.permissions,
            args=settings.args,
            folder=str(self._notes.folder),
        )

    def _model(self, config: Mapping[str, Any]) -> str | None:
        return config.get("model") or self._settings.model

    def _env(self) -> dict[str, str]:
        defaults = {name: value for name, value in self._settings.preset.env.items() if name not in os.environ}
        return {**defaults, **self._settings.env}


def _wrong_permissions(preset: Preset, permissions: str | None) -> str | None:
    if permissions is None or permissions in preset.permissions:
        return None
    if not preset.permissions:
        return f"{preset.program} does not support permissions; remove them, or use args"
    if preset.takes_other_permissions:
        return None
    return f"{preset.program} has no permissions '{permissions}'; write {' or '.join(preset.permissions)}"


def _tools_url(fire: Fire) -> str | None:
    """Our MCP endpoint for the program of this run; None if the daemon does not serve it."""
    if fire.access is None or importlib.util.find_spec("mcp") is None:
        return None
    return f"{fire.access.url}/mcp"


def _not_here(turn: Turn, session_id: str) -> str:
    where = "is not on this node" if turn.session_node is None else f"is on the node {turn.session_node}, not here"
    return f"[the session {session_id} {where}: a new one was started]"


def _new_session(fire: Fire) -> str:
    """A session id derived from the run's key, so that another attempt of the run uses the same session."""
    return f"wakeful-{hashlib.sha256(fire.idempotency_key.encode()).hexdigest()[:16]}"


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
