"""Check a `wakeful.toml` or a `definition.json` without a daemon."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from wakeful.cli import schedule_words as words
from wakeful.cli import times
from wakeful.cli.errors import FAILED, Ended
from wakeful.cli.invocation import Invocation, command, end
from wakeful.cli.render import json_out, note, say

if TYPE_CHECKING:
    from wakeful.config import Loaded, Settings
    from wakeful.core.errors import FieldError
    from wakeful.core.schedule.actions import Prompt


TIMES_SHOWN: Final = 5
FILE_MAX: Final = 1024 * 1024


@command("check")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
def check_command(invocation: Invocation, file: Path) -> None:
    """Check a wakeful.toml or a definition.json, without a daemon.

    Every error is listed with its location and fix; a valid definition is shown with its next five times.
    """
    faults, answer = _check_definition(invocation, file) if _is_definition(file) else _check_settings(invocation, file)
    if invocation.is_json:
        json_out({"file": str(file), "valid": not faults, "errors": faults, **answer})
    else:
        _tell(file, faults, answer)
    if faults:
        end(FAILED)


def _tell(file: Path, faults: list[dict[str, Any]], answer: dict[str, Any]) -> None:
    for fault in faults:
        place = f":{fault['line']}" if fault.get("line") else ""
        field = f" {fault['field']}:" if fault["field"] else ""
        note(f"{file}{place}:{field} {fault['message']}")
    for warning in answer.get("warnings", []):
        note(f"{file}: warning: {warning['field']}: {warning['message']}")
    if faults:
        note(f"wakeful: {len(faults)} {'error' if len(faults) == 1 else 'errors'} in {file}")
        return
    say(f"{file} is valid{': ' + words.when(answer) if answer.get('description') else ''}")
    if answer.get("environment"):
        _tell_environment(answer["environment"])
    if answer.get("next"):
        from wakeful.cli.timetable import show_times

        show_times(answer["next"], answer["definition"]["schedule"])


def _tell_environment(programs: list[dict[str, Any]]) -> None:
    """List the variables of this environment that a daemon started here would withhold, and from which programs."""
    if not any(program["withheld"] or program["passed"] for program in programs):
        say("No variable in this environment looks like a secret, so none is withheld from programs.")
        return
    from wakeful.cli.tables import facts

    say("Variables that look like secrets, for a daemon started in this environment:")
    facts([(program["to"], _given(program)) for program in programs])
    say("To pass more, list them in passEnv of a command, or in pass_env of an agent.")


def _given(program: dict[str, Any]) -> str:
    parts = [("withheld", program["withheld"]), ("passed", program["passed"])]
    return "; ".join(f"{what} {', '.join(names)}" for what, names in parts if names) or "nothing is withheld"


def _is_definition(file: Path) -> bool:
    if file.suffix in (".json", ".toml"):
        return file.suffix == ".json"
    return _content(file).lstrip().startswith("{")


def _content(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_MAX + 1)
    except OSError as error:
        raise Ended(f"{file} cannot be read: {error.strerror}", hint="check its name and permissions") from error
    if len(content) > FILE_MAX:
        raise Ended(f"{file} is larger than {FILE_MAX // 1024} KiB; is it the right file?")
    return content.decode(errors="replace")


def _check_settings(invocation: Invocation, file: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    from wakeful.cli.agent_states import states_of
    from wakeful.config import SettingsRefused, load
    from wakeful.features.workflows.modules import try_out
    from wakeful.observe.otlp import missing_extra

    try:
        loaded = load(invocation.home, file=file)
    except SettingsRefused as refused:
        return [_located(error) for error in refused.errors], {}
    missing = [
        {"line": None, "field": state.field, "message": state.problem} for state in states_of(loaded) if state.problem
    ]
    if loaded.settings.otel.endpoint is not None and (extra := missing_extra()) is not None:
        missing.append({"line": None, "field": "otel.endpoint", "message": extra})
    faults = try_out(loaded.settings.workflows.modules, invocation.home)
    located = [
        {
            "line": _line_of(file, fault.module),
            "field": "workflows.modules",
            "message": f"{fault.module} cannot be loaded: {fault.error}; it is searched for on Python's path, and then "
            f"in {invocation.home}",
        }
        for fault in faults
    ]
    return located, {
        "warnings": [*(_located(warning) for warning in loaded.warnings), *missing],
        "environment": [program.to_json() for program in withheld_by(loaded)],
    }


def _line_of(file: Path, module: str) -> int | None:
    """The line that names a module."""
    lines = _content(file).splitlines()
    return next((number for number, line in enumerate(lines, start=1) if f'"{module}"' in line), None)


def _located(error: Any) -> dict[str, Any]:
    return {"line": error.line, "field": error.field, "message": error.message}


def _check_definition(invocation: Invocation, file: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    from wakeful.core.errors import Invalid
    from wakeful.core.schedule.definition_json import definition_from_json, definition_to_json
    from wakeful.core.time.instants import format_instant
    from wakeful.core.time.timing import next_n
    from wakeful.core.time.timing_words import describe

    text = _content(file)
    try:
        written = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        return [{"line": line, "field": "", "message": f"is not JSON: {error}; correct it there"}], {}
    except RecursionError:
        return [{"line": None, "field": "", "message": "is nested too deeply; make it flatter"}], {}
    now = int(times.now().timestamp() * 1000)
    try:
        definition = definition_from_json(written, default_zone=times.user_zone()[0], slug=_slug_of(file), now=now)
        definition = _checked(invocation, definition, now)
    except Invalid as invalid:
        return [{"line": None, "field": error.field, "message": error.message} for error in invalid.errors], {}
    upcoming = [format_instant(at) for at in next_n(definition.timing, now, TIMES_SHOWN)]
    return [], {
        "definition": definition_to_json(definition),
        "description": describe(definition.timing),
        "next": upcoming,
    }


def _slug_of(file: Path) -> str | None:
    """The slug of a definition file in `schedule/SLUG/`, which may leave it out."""
    folder = file.resolve().parent
    return folder.name if file.name == "definition.json" and folder.parent.name == "schedule" else None


def _checked(invocation: Invocation, definition: Any, now: int) -> Any:
    """What the daemon would refuse although the shape is valid: a time in the past, an unknown agent, a prompt more
    often than the settings allow."""
    from dataclasses import replace

    from wakeful.core.errors import Invalid
    from wakeful.core.schedule.actions import Prompt
    from wakeful.core.time.spacing import shortest_gap
    from wakeful.core.time.timing import resolve
    from wakeful.features.schedules.checks import refuse_past, refuse_short_lateness, too_often

    definition = replace(definition, timing=resolve(definition.timing, now=now, default_zone=times.user_zone()[0]))
    refuse_past(definition, now)
    refuse_short_lateness(definition)
    if isinstance(definition.action, Prompt):
        settings = _settings_of(invocation.home)
        least, gap = settings.limits.agent_interval_min, shortest_gap(definition.timing)
        wrong = [_check_agent(definition.action, settings, invocation.home)]
        if definition.check is None and gap is not None and gap < least:
            wrong.append(too_often(least))
        if any(wrong):
            raise Invalid(*(error for error in wrong if error is not None))
    return definition


def _check_agent(prompt: Prompt, settings: Settings, home: Path) -> FieldError | None:
    """The daemon's own message about the agent."""
    from wakeful.engine.clock import SystemClock
    from wakeful.integrations.actions.registry import CallRegistry
    from wakeful.integrations.agents.from_settings import AgentRegistry
    from wakeful.integrations.agents.turn import check_prompt

    return check_prompt(prompt, AgentRegistry(home).agents(settings.agents, SystemClock(), CallRegistry()))


def _settings_of(home: Path) -> Settings:
    from wakeful.config import Settings, SettingsRefused, load

    try:
        return load(home).settings
    except SettingsRefused:  # the file in question is another one
        return Settings()


@dataclass(frozen=True, slots=True)
class Withheld:
    """Which secret variables one kind of program gets."""

    to: str
    withheld: list[str]
    passed: list[str]

    def to_json(self) -> dict[str, Any]:
        return {"to": self.to, "withheld": self.withheld, "passed": self.passed}


def withheld_by(loaded: Loaded) -> list[Withheld]:
    """Commands, then every agent and quota slot that starts a program."""
    from wakeful.config.slots import CommandSlot
    from wakeful.integrations.agents.from_settings import environment_of

    withheld = [_kept_from("commands", loaded, (), {})]
    for name, agent in loaded.settings.agents.items():
        given = environment_of(agent)
        if given is not None:
            withheld.append(_kept_from(f"agent {name}", loaded, *given))
    withheld += [
        _kept_from(f"slot {name}", loaded, (), dict.fromkeys(slot.env, ""))
        for name, slot in loaded.settings.slots.items()
        if isinstance(slot, CommandSlot)
    ]
    return withheld


def _kept_from(to: str, loaded: Loaded, pass_env: Sequence[str], env: Mapping[str, str]) -> Withheld:
    from wakeful.integrations.actions.environment import is_secret_variable, withheld

    named = loaded.secret_variables
    kept = withheld(lambda name: is_secret_variable(name, named), pass_env, env)
    passed = sorted(name for name in {*pass_env} if name in os.environ and is_secret_variable(name, named))
    return Withheld(to, kept, passed)
