"""Aider. No JSON, and exit code 0 whatever happens: the line with the tokens proves that a model answered.

It has no sessions; its chat history is a file, so a session is a file that we keep and it continues."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from wakeful.core.run.usage import Usage, usage
from wakeful.integrations.agents.limits import printed_reset
from wakeful.integrations.agents.presets.preset import Ask, Launch, Preset, Printed, Reading, ReadMoment
from wakeful.integrations.agents.printed import plain
from wakeful.integrations.agents.troubles import error_lines, status_in

_TOKENS: Final = re.compile(
    r"^Tokens: ([\d.,]+[kKmM]?) sent,.*?([\d.,]+[kKmM]?) received\.(?:.*?Cost: \$([\d.]+) message)?"
)
_HEADER: Final = re.compile(r"^(Aider v|Main model:|Model:|Weak model:|Editor model:|Git repo:|Repo-map:|Restored )")
_NOTE: Final = re.compile(r"^https://aider\.chat/\S+$")
_TOO_MANY: Final = 429
_HISTORY: Final = "{session}.chat.md"
_ERROR: Final = re.compile(r"^(litellm\.\S*Error|The API provider|Retrying in|.*Error code:)")
_EXCEPTION: Final = re.compile(r"^litellm\.(\w+?)(?:Error|Exception)?: (?:\w+: )*(?:\w+Exception - )?(.*)")


def launch(ask: Ask) -> Launch:
    argv = [ask.program, "--message-file", "/dev/stdin", "--yes-always", "--no-stream", "--no-pretty"]
    argv += ["--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--no-fancy-input"]
    session = ask.session_id or ask.new_session_id
    argv += ["--chat-history-file", str(Path(ask.folder) / _HISTORY.format(session=session))] if session else []
    argv += ["--restore-chat-history"] if ask.session_id else []
    argv += ["--model", ask.model] if ask.model else []
    return Launch((*argv, *ask.args), ask.prompt)


def read(printed: Printed, now: ReadMoment) -> Reading:
    lines = plain(printed.stdout).splitlines()
    ended = next((index for index in reversed(range(len(lines))) if _TOKENS.match(lines[index])), None)
    begun = max((index + 1 for index, line in enumerate(lines[: ended or None]) if _HEADER.match(line)), default=0)
    spoken = "\n".join(line for line in lines[begun:ended] if not _NOTE.match(line)).strip() if ended else ""
    if spoken and printed.code == 0 and not _ERROR.match(spoken.splitlines()[-1]):
        return Reading("answered", spoken, usage=_usage(lines[ended or 0]))
    said = _error(lines[begun:]) or error_lines(printed.stderr) or "it ended without an answer"
    failed = Reading("failed", said, status_in(said))
    reset = printed_reset(said, printed, now) if failed.status == _TOO_MANY else None
    return failed if reset is None else replace(failed, kind="limited", reset_at=reset)


def _usage(line: str) -> Usage | None:
    """The printed counts; those rounded to thousands count as unknown."""
    match = _TOKENS.match(line)
    if match is None:
        return None
    sent, received = (
        int(count.replace(",", "")) if count.replace(",", "").isdigit() else None for count in match.groups()[:2]
    )
    return usage(input=sent, output=received, cost=None if match[3] is None else float(match[3].rstrip(".")))


def _error(lines: list[str]) -> str | None:
    """The last exception, with its continuation lines."""
    first = max((index for index, line in enumerate(lines) if line.startswith("litellm.")), default=None)
    if first is None:
        return None
    folded = [lines[first]]
    for line in lines[first + 1 :]:
        if not line.strip() or line.startswith(("The API", "Retrying", "litellm.")):
            break
        folded.append(line)
    match = _EXCEPTION.match(" ".join(part.strip() for part in folded))
    return None if match is None else f"{_words(match[1])}: {match[2]}"


def _words(name: str) -> str:
    """`RateLimit` as `rate limit`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


PRESET: Final = Preset(
    name="aider",
    program="aider",
    launch=launch,
    read=read,
    login="set the key of the model's provider (such as OPENAI_API_KEY) in env or with --api-key in args",
    pass_env=(
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "DEEPSEEK_API_KEY",
        "OPENROUTER_API_KEY",
        # Its options can be given as variables too.
        "AIDER_API_KEY",
        "AIDER_OPENAI_API_KEY",
        "AIDER_ANTHROPIC_API_KEY",
    ),
    names_sessions=True,
    history=_HISTORY,
)
