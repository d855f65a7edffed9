"""Goose, from its documentation. The prompt goes over stdin (`-i -`); the caller names the session.

It must not ask for approval when headless, or it would end at the first tool. So the mode is `auto` unless the settings
say otherwise."""

from typing import Final

from wakeful.integrations.agents.presets.preset import Ask, Launch, Preset, Printed, Reading, ReadMoment
from wakeful.integrations.agents.printed import plain
from wakeful.integrations.agents.troubles import error_lines, status_in

_LOST: Final = ("No session found", "session not found", "Cannot resume session")
_ERRORS: Final = ("Ran into this error:", "error: ", "Execution error:", "Error: ")


def launch(ask: Ask) -> Launch:
    argv = [ask.program, "run", "--quiet", "-i", "-"]
    argv += ["--resume"] if ask.session_id else []
    session = ask.session_id or ask.new_session_id
    argv += ["--name", session] if session else ["--no-session"]
    argv += ["--model", ask.model] if ask.model else []
    return Launch((*argv, *ask.args), ask.prompt, {"GOOSE_MODE": ask.permissions or "auto"})


def read(printed: Printed, now: ReadMoment) -> Reading:
    text = plain(printed.stdout).strip()
    if any(words.lower() in printed.stderr.lower() for words in _LOST):
        return Reading("lost", error_lines(printed.stderr))
    error = next((line for line in text.splitlines() if line.strip().startswith(_ERRORS)), None)
    if printed.code == 0 and text and error is None:
        return Reading("answered", text)
    said = (
        error
        or error_lines(printed.stderr)
        or ("it ended without an answer" if printed.code == 0 else error_lines(text))
    )
    return Reading("failed", said, status_in(said))


PRESET: Final = Preset(
    name="goose",
    program="goose",
    launch=launch,
    read=read,
    login="run `goose configure` or set the key of its provider",
    pass_env=("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY", "DATABRICKS_TOKEN"),
    permissions=("auto", "approve", "smart_approve", "chat"),
    names_sessions=True,
    reports_usage=False,
    documented_only=True,
)
