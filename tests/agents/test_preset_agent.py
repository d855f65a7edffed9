"""Preset agents over recordings of the real programs, replayed as processes."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from agents.conftest import make_fire
from agents.replay import Player, install, recording
from climbing import RecordingLadder
from wakeful.core.run.results import Done, Failed, Result, Throttled
from wakeful.core.run.runs import Trigger
from wakeful.core.schedule.actions import Prompt
from wakeful.core.slot.windows import UsageWindow
from wakeful.core.time.instants import DAY, HOUR, SECOND, Instant
from wakeful.engine.clock import SystemClock
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.agents.preset_agent import PresetAgent, PresetSettings
from wakeful.integrations.agents.presets.catalogue import PRESETS
from wakeful.integrations.agents.session_notes import NOTES_MAX, SessionNotes, SessionUsage
from wakeful.integrations.agents.turn import TurnAction
from wakeful.ports.action import Fire
from wakeful.ports.clock import Moment


class LateClock(SystemClock):
    """The system's clock, set to when a recording was made."""

    def __init__(self) -> None:
        super().__init__()
        self.behind: Instant = 0

    def read(self) -> Moment:
        found = super().read()
        return found._replace(now=found.now - self.behind)


class Desk:
    """A turn action whose only agent replays a program; the schedule's session is kept as the engine keeps it."""

    def __init__(self, folder: Path, player: Player, **settings: Any) -> None:
        self.folder = folder
        self.player = player
        self.clock = LateClock()
        self.session_id: str | None = None
        preset = PRESETS[player.path.name]
        made = PresetSettings(preset, str(player.path), cwd=str(folder), **settings)
        self.windows: list[tuple[UsageWindow, ...]] = []
        notes = SessionNotes(folder / "agents")
        self.agent = PresetAgent(made, self.clock, notes, grace=500, on_windows=self._on_windows)
        receipts = Receipts(b"0123456789abcdef", None)
        self.action = TurnAction({"default": self.agent}, self.clock, sessions=self._session, receipts=receipts)

    async def turn(self, text: str = "what is new?", trigger: Trigger = "schedule", **config: Any) -> Result:
        fire = make_fire()._replace(trigger=trigger)
        result = await self.action.perform(Prompt(text, session_config=config), fire, RecordingLadder())
        self.session_id = getattr(result, "session_id", None) or self.session_id
        return result

    async def _on_windows(self, windows: tuple[UsageWindow, ...]) -> None:
        self.windows.append(windows)

    async def _session(self, fire: Fire) -> str | None:
        return self.session_id


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def make(program: str, *scenarios: str, **settings: Any) -> Desk:
        desks.append(Desk(tmp_path, install(tmp_path / f"bin{len(desks)}", program, *scenarios), **settings))
        return desks[-1]

    yield make
    for one in desks:
        await one.action.close()


@pytest.mark.parametrize("program", ["claude", "codex", "gemini", "opencode", "qwen", "copilot"])
async def test_the_second_turn_continues_the_first_and_counts_alone(desk: Callable[..., Desk], program: str) -> None:
    """The session is handed on, and what the first turn used is not counted again."""
    one = desk(program, "second-turn")
    found = recording(program, "second-turn")
    first, second = await one.turn("one"), await one.turn("two")
    assert isinstance(first, Done) and isinstance(second, Done)
    assert (first.reply, second.reply) == ("All is well today.", "All is well today.")
    assert second.session_id == found.session
    calls = one.player.calls()
    assert [call.stdin for call in calls] == ["[scheduler:standup] one", "[scheduler:standup] two"]
    assert not any(str(found.session) in word for word in calls[0].argv)
    assert any(str(found.session) in word for word in calls[1].argv)
    if PRESETS[program].reports_usage:
        fresh, cached, output = found.counted
        assert second.usage is not None and first.usage is not None
        assert (second.usage["input"], second.usage["output"]) == (fresh + cached, output)
    else:
        assert (first.usage, second.usage) == (None, None)


async def test_totals_are_remembered_across_restarts(desk: Callable[..., Desk], tmp_path: Path) -> None:
    """The note lies on the disk beside the session; a session without one has no usage that can be told."""
    one = desk("codex", "second-turn")
    await one.turn()
    again = Desk(tmp_path, one.player)
    again.session_id = one.session_id
    second = await again.turn()
    fresh, cached, output = recording("codex", "second-turn").counted
    assert isinstance(second, Done) and second.usage is not None
    assert (second.usage["input"], second.usage["output"]) == (fresh + cached, output)
    (tmp_path / "agents" / "sessions.json").unlink()
    third = await again.turn()
    assert isinstance(third, Done) and third.usage is None
    await again.action.close()


async def test_a_lost_session_is_replaced_once_and_the_run_says_so(desk: Callable[..., Desk]) -> None:
    """Also one that lies on another node: its note is not here."""
    one = desk("claude", "lost-session", "ok")
    one.session_id = "01234567-89ab-4cde-8f01-23456789abcd"
    result = await one.turn()
    assert isinstance(result, Done) and result.reply == "All is well today."
    assert result.session_id not in (None, "01234567-89ab-4cde-8f01-23456789abcd")
    assert result.output is not None and "it may be on another node: a new one was started]" in result.output
    assert len(one.player.calls()) == 2


async def test_a_session_that_stays_lost_is_a_failure(desk: Callable[..., Desk]) -> None:
    """It is not tried for ever."""
    one = desk("qwen", "lost-session")
    one.session_id = "abc"
    result = await one.turn()
    assert isinstance(result, Failed) and result.error.startswith("qwen: ")
    assert len(one.player.calls()) == 2


async def test_a_failure_names_program_cause_and_cure(desk: Callable[..., Desk]) -> None:
    """What was printed is kept beside it, both streams apart; a failed turn begins no session."""
    result = await desk("gemini", "401").turn()
    assert isinstance(result, Failed) and result.permanent
    assert result.error == "gemini: invalid API key; log in with `gemini` or set GEMINI_API_KEY, and check the key"
    assert result.output is not None and "[stderr]" in result.output
    assert result.session_id is None


async def test_a_limit_is_waited_for_and_not_asked_against(desk: Callable[..., Desk]) -> None:
    """Neither by this schedule nor by another one; a person may ask, and after the reset everyone."""
    one = desk("claude", "limit", "limit", "ok")
    found = recording("claude", "limit")
    assert found.reset_at is not None
    one.clock.behind = SystemClock().read().now - round(found.recorded_at * SECOND)
    result = await one.turn()
    assert isinstance(result, Throttled) and result.reason == "quota"
    assert result.until == found.reset_at * SECOND
    assert result.error.startswith("claude: its usage limit is reached, and resets at 2026-")
    again = await one.turn()
    assert isinstance(again, Throttled) and again.until == result.until and len(one.player.calls()) == 1
    assert isinstance(await one.turn(model="other"), Throttled) and len(one.player.calls()) == 2
    one.clock.behind -= result.until - one.clock.read().now + SECOND
    after = await one.turn()
    assert isinstance(after, Done) and len(one.player.calls()) == 3


async def test_codex_stores_the_second_of_a_reset_and_prints_the_minute(
    desk: Callable[..., Desk], tmp_path: Path
) -> None:
    """Its rollout file tells; without one, as in an ephemeral turn, the end of the printed minute is meant."""
    found = recording("codex", "limit")
    assert found.reset_at is not None and found.stored
    minute = (found.reset_at // 60 + 1) * 60 * SECOND
    for home, config, until in (
        ("home", {}, found.reset_at * SECOND),
        ("other", {"persistSession": False}, minute),
    ):
        one = desk("codex", "limit", env={"HOME": str(tmp_path / home), "TZ": "UTC"})
        one.clock.behind = SystemClock().read().now - round(found.recorded_at * SECOND)
        if config:
            one.player.forget_stored()
        result = await one.turn(**config)
        assert isinstance(result, Throttled) and result.until == until


@pytest.mark.parametrize("program", ["claude", "codex"])
async def test_the_windows_of_the_account_are_reported(desk: Callable[..., Desk], tmp_path: Path, program: str) -> None:
    """Claude Code prints them, Codex stores them: five hours, all used, and seven days, of which 40 % are."""
    found = recording(program, "limit")
    reset = (found.reset_at or 0) * SECOND
    one = desk(program, "limit", env={"HOME": str(tmp_path / "home"), "TZ": "UTC"})
    one.clock.behind = SystemClock().read().now - round(found.recorded_at * SECOND)
    await one.turn()
    assert one.windows == [
        (
            UsageWindow("five_hour", 100.0, reset, 5 * HOUR, is_exhausted=True),
            UsageWindow("seven_day", 40.0, reset + DAY, 7 * DAY),
        )
    ]


async def test_a_program_that_reports_no_windows(desk: Callable[..., Desk]) -> None:
    """Without a subscription there are none."""
    one = desk("claude", "ok")
    assert isinstance(await one.turn(), Done)
    assert one.windows == []


async def test_codex_home_moves_the_rollout_files(desk: Callable[..., Desk], tmp_path: Path) -> None:
    """A window that resets at another time than was printed is not the one that was hit."""
    found = recording("codex", "limit")
    (path, text), *_ = found.stored.items()
    file = tmp_path / path.replace(".codex", "elsewhere", 1)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    one = desk("codex", "limit", env={"HOME": "/nonexistent", "CODEX_HOME": str(tmp_path / "elsewhere")})
    one.player.forget_stored()
    one.clock.behind = SystemClock().read().now - round(found.recorded_at * SECOND)
    result = await one.turn(trigger="manual")
    assert isinstance(result, Throttled) and result.until == (found.reset_at or 0) * SECOND
    file.write_text(text.replace(str(found.reset_at), str((found.reset_at or 0) + 60)))
    result = await one.turn(trigger="manual")
    assert isinstance(result, Throttled) and result.until == ((found.reset_at or 0) // 60 + 1) * 60 * SECOND


async def test_the_daemons_own_variables_win_over_a_presets_defaults(
    desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude is started with fewer retries than it has by itself, unless its user says how many."""
    name = "CLAUDE_CODE_MAX_RETRIES"
    monkeypatch.delenv(name, raising=False)
    one = desk("claude", "ok")
    await one.turn()
    monkeypatch.setenv(name, "9")
    await one.turn()
    other = desk("claude", "ok", env={name: "7"})
    await other.turn()
    given = [call.env[name] for call in (*one.player.calls(), *other.player.calls())]
    assert given == ["5", "9", "7"]


async def test_a_person_is_not_held_back_by_a_limit_that_is_remembered(desk: Callable[..., Desk]) -> None:
    """They may have raised it; what they hear is what the program says."""
    one = desk("claude", "limit", "ok")
    one.clock.behind = SystemClock().read().now - round(recording("claude", "limit").recorded_at * SECOND)
    assert isinstance(await one.turn(), Throttled)
    assert isinstance(await one.turn(trigger="manual"), Done)
    assert isinstance(await one.turn(), Done), "what was remembered is over"


async def test_refused_tools_are_reported_with_the_run(desk: Callable[..., Desk]) -> None:
    """Beside the answer, with the cure."""
    result = await desk("claude", "refused-tool").turn()
    assert isinstance(result, Done) and result.output is not None
    assert result.refused == ("Bash",)
    assert "[claude refused these tools for lack of permission: Bash; set permissions or args" in result.output


async def test_aider_continues_a_conversation_from_a_file_of_ours(desk: Callable[..., Desk], tmp_path: Path) -> None:
    """It has no sessions of its own."""
    one = desk("aider", "ok")
    first = await one.turn()
    assert isinstance(first, Done) and first.session_id is not None and first.session_id.startswith("wakeful-")
    history = tmp_path / "agents" / f"{first.session_id}.chat.md"
    history.touch()  # as the real one does
    second = await one.turn()
    assert isinstance(second, Done) and second.session_id == first.session_id and second.output is None
    history.unlink()
    third = await one.turn()
    assert isinstance(third, Done) and third.output is not None
    assert f"[the session {first.session_id} is not on this node: a new one was started]" in third.output
    begun, continued, begun_again = (call.argv for call in one.player.calls())
    assert str(history) in begun and "--restore-chat-history" not in begun
    assert str(history) in continued and "--restore-chat-history" in continued
    assert "--restore-chat-history" not in begun_again


async def test_an_ephemeral_turn_keeps_no_session(desk: Callable[..., Desk]) -> None:
    """Nor a note of one."""
    one = desk("codex", "ok")
    result = await one.turn(persistSession=False)
    assert isinstance(result, Done) and result.session_id is None and result.usage is not None
    assert "--ephemeral" in one.player.calls()[0].argv
    assert not (one.folder / "agents").exists()


async def test_what_an_agent_is_checked_for(desk: Callable[..., Desk], tmp_path: Path) -> None:
    """The program is there, with the PATH that was searched if it is not; permissions it takes."""
    one = desk("codex", "ok")
    assert one.agent.check({}) is None
    notes, env = SessionNotes(tmp_path), {"PATH": "/nowhere/bin:/else"}
    gone = PresetAgent(PresetSettings(PRESETS["claude"], "claude", env=env), one.clock, notes)
    assert (
        gone.check({}) == "'claude' was not found on the PATH (/nowhere/bin:/else); install it, or write its full path"
    )
    for name, word, says in (
        ("opencode", "yes", "opencode has no permissions 'yes'; write auto"),
        ("aider", "yes", "aider does not support permissions; remove them, or use args"),
    ):
        agent = PresetAgent(PresetSettings(PRESETS[name], str(one.player.path), permissions=word), one.clock, notes)
        assert agent.check({}) == says


async def test_notes_are_bounded_and_private(tmp_path: Path) -> None:
    """The sessions used longest ago go first; a file that is spoilt is begun again."""
    notes = SessionNotes(tmp_path / "agents")
    file = tmp_path / "agents" / "sessions.json"
    await notes.write("first", SessionUsage({"input": 1}), 1)
    file.write_text(json.dumps({f"s{number}": {"totals": None} for number in range(NOTES_MAX)}))
    await notes.write("last", SessionUsage({"input": 2}), 2)
    assert len(json.loads(file.read_text())) == NOTES_MAX
    assert await notes.read("s0") is None and await notes.read("last") == SessionUsage({"input": 2})
    assert file.stat().st_mode & 0o077 == 0
    file.write_text("{")
    assert await notes.read("last") is None
