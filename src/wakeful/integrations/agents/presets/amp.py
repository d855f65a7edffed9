"""Amp, from its documentation. The prompt goes over stdin; a session is a thread; messages carry the usage."""

from dataclasses import replace
from typing import Final

from wakeful.core.run.usage import Usage, added, usage_of
from wakeful.integrations.agents.presets.claude_stream import result_of
from wakeful.integrations.agents.presets.preset import Ask, Launch, Preset, Printed, Reading, ReadMoment
from wakeful.integrations.agents.printed import at, objects, of_type

_ALL: Final = "dangerously-allow-all"


def launch(ask: Ask) -> Launch:
    argv = [ask.program]
    argv += ["threads", "continue", ask.session_id] if ask.session_id else []
    argv += ["--execute", "--stream-json"]
    argv += ["--dangerously-allow-all"] if ask.permissions == _ALL else []
    return Launch((*argv, *ask.args), ask.prompt)


def read(printed: Printed, now: ReadMoment) -> Reading:
    events = objects(printed.stdout)
    used: Usage | None = None
    for event in of_type(events, "assistant"):
        used = added(used, usage_of(at(event, "message", "usage")))
    reading = result_of(printed, events, used)
    said = f"{reading.text} {printed.stderr}".lower()
    if reading.kind == "failed" and "thread" in said and "not found" in said:
        return replace(reading, kind="lost")
    return reading


PRESET: Final = Preset(
    name="amp",
    program="amp",
    launch=launch,
    read=read,
    takes_other_permissions=False,
    login="run `amp login` or set AMP_API_KEY",
    pass_env=("AMP_API_KEY",),
    permissions=(_ALL,),
    documented_only=True,
)
