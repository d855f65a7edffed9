"""Cursor's agent, from its documentation. The prompt is its last argument, after `--`; failures go to stderr."""

from dataclasses import replace
from typing import Final

from wakeful.integrations.agents.presets.claude_stream import result_of
from wakeful.integrations.agents.presets.preset import Ask, Launch, Preset, Printed, Reading, ReadMoment
from wakeful.integrations.agents.printed import objects

_FORCE: Final = "force"
_LOST: Final = ("not found", "no chat", "unknown chat", "invalid chat")


def launch(ask: Ask) -> Launch:
    argv = [ask.program, "--print", "--output-format", "stream-json"]
    argv += ["--resume", ask.session_id] if ask.session_id else []
    argv += ["--model", ask.model] if ask.model else []
    argv += ["--force"] if ask.permissions == _FORCE else []
    return Launch((*argv, *ask.args, "--", ask.prompt))


def read(printed: Printed, now: ReadMoment) -> Reading:
    events = objects(printed.stdout)
    reading = result_of(printed, events, None)
    if reading.kind == "failed" and not events:
        said = printed.stderr.lower()
        if ("chat" in said or "session" in said) and any(words in said for words in _LOST):
            return replace(reading, kind="lost")
    return reading


PRESET: Final = Preset(
    name="cursor",
    program="cursor-agent",
    launch=launch,
    read=read,
    takes_other_permissions=False,
    login="run `cursor-agent login` or set CURSOR_API_KEY",
    pass_env=("CURSOR_API_KEY",),
    permissions=(_FORCE,),
    reports_usage=False,
    documented_only=True,
)
