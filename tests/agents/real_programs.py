"""The seven real command-line agents: how each is pointed at a model server on loopback, and how it is called.

`make test-agents` installs them into `.agents/` of the clone; `WAKEFUL_AGENTS` names another folder with the same
layout. The calls here are the programs' own, written out by hand: the recorder uses them, so that what it stores does
not depend on our presets.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CLONE: Final = Path(__file__).parents[2]
FOLDER: Final = Path(os.environ.get("WAKEFUL_AGENTS", CLONE / ".agents"))
KEY: Final = "sk-test-0123456789abcdef"
# Nothing may leave the machine: a proxy that refuses, for all but loopback.
_CLOSED: Final = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}


@dataclass(frozen=True, slots=True)
class Program:
    """One program. The prompt comes over stdin where `{prompt}` does not appear in the call."""

    name: str
    package: str
    argv: tuple[str, ...]
    resume: tuple[str, ...]  # with {session}; empty: it cannot go on by id
    files: Callable[[str], Mapping[str, str]]  # in the home folder, for a server's address
    env: Callable[[str], Mapping[str, str]]
    reports_usage: bool = True
    heeds_no_proxy: bool = True
    limits_need: Mapping[str, str] = field(
        default_factory=dict
    )  # its limits belong to a subscription, which needs these
    recorded_with: Mapping[str, str] = field(default_factory=dict)  # variables that the recorder adds
    stores: str = ""  # where it stores what it does not print, as a pattern in the home folder

    @property
    def path(self) -> Path | None:
        for folder in bin_folders():
            found = shutil.which(self.name, path=str(folder))
            if found is not None:
                return Path(found)
        return None

    def move_in(self, home: Path, url: str, *, has_subscription: bool = False) -> dict[str, str]:
        """Write the files it needs into a home folder; its whole environment, with that folder as HOME."""
        home.mkdir(parents=True, exist_ok=True)
        for name, text in self.files(url).items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        env = {**plain_environment(home), **(_CLOSED if self.heeds_no_proxy else {}), **self.env(url)}
        if has_subscription and self.limits_need:
            env = {name: value for name, value in env.items() if not name.endswith("_API_KEY")} | self.limits_need
        return env


def bin_folders() -> tuple[Path, ...]:
    return (FOLDER / "node_modules" / ".bin", FOLDER / "aider" / "bin")


def plain_environment(home: Path) -> dict[str, str]:
    """What a program is given besides its own variables."""
    path = os.pathsep.join([*map(str, bin_folders()), os.environ.get("PATH", os.defpath)])
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "NO_COLOR": "1"}


def _no_files(url: str) -> Mapping[str, str]:
    return {}


def _claude_env(url: str) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _codex_files(url: str) -> Mapping[str, str]:
    return {
        ".codex/config.toml": f"""\
model = "gpt-5"
model_provider = "local"

[model_providers.local]
name = "local"
base_url = "{url}/v1"
env_key = "LOCAL_MODEL_KEY"
wire_api = "responses"
"""
    }


def _gemini_files(url: str) -> Mapping[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "maxAttempts": 3},  # ten of them take four minutes
    }
    return {".gemini/settings.json": json.dumps(settings, indent=2)}


def _qwen_files(url: str) -> Mapping[str, str]:
    settings = {
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
        "model": {"generationConfig": {"maxRetries": 0}},
    }
    return {".qwen/settings.json": json.dumps(settings, indent=2)}


def _opencode_files(url: str) -> Mapping[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "local",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"test-model": {"name": "test-model"}},
    }
    settings = {"provider": {"local": provider}, "model": "local/test-model", "autoupdate": False, "share": "disabled"}
    return {".config/opencode/opencode.json": json.dumps(settings, indent=2)}


def _openai_env(url: str) -> Mapping[str, str]:
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "test-model"}


def _copilot_env(url: str) -> Mapping[str, str]:
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "test-model",
    }


def _aider_env(url: str) -> Mapping[str, str]:
    return {
        "AIDER_OPENAI_API_BASE": f"{url}/v1",
        "AIDER_OPENAI_API_KEY": KEY,
        "AIDER_MODEL": "openai/test-model",
        "AIDER_ANALYTICS_DISABLE": "true",
    }


_CLAUDE: Final = ("claude", "-p", "--output-format", "stream-json", "--verbose")
_GEMINI: Final = ("gemini", "-o", "json", "--skip-trust")
_QWEN: Final = ("qwen", "--auth-type", "openai", "-o", "json")
_COPILOT: Final = ("copilot", "--output-format", "json", "--no-auto-update", "--no-color")
_OPENCODE: Final = ("opencode", "run", "--format", "json", "--title", "wakeful")
_CODEX: Final = ("codex", "exec", "--json", "--skip-git-repo-check")

PROGRAMS: Final[dict[str, Program]] = {
    one.name: one
    for one in (
        Program(
            "claude",
            "@anthropic-ai/claude-code",
            _CLAUDE,
            (*_CLAUDE, "--resume", "{session}"),
            _no_files,
            _claude_env,
            limits_need={"CLAUDE_CODE_OAUTH_TOKEN": KEY},
            recorded_with={"CLAUDE_CODE_MAX_RETRIES": "3"},  # ten of them take three minutes
        ),
        Program(
            "codex",
            "@openai/codex",
            (*_CODEX, "-s", "read-only", "-"),
            ("codex", "exec", "resume", "--json", "--skip-git-repo-check", "{session}", "-"),
            _codex_files,
            lambda url: {"LOCAL_MODEL_KEY": KEY},
            stores=".codex/sessions/*/*/*/rollout-*.jsonl",
        ),
        Program(
            "gemini",
            "@google/gemini-cli",
            _GEMINI,
            (*_GEMINI, "--resume", "{session}"),
            _gemini_files,
            lambda url: {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_TELEMETRY_ENABLED": "false"},
        ),
        Program(
            "opencode",
            "opencode-ai",
            _OPENCODE,
            (*_OPENCODE, "-s", "{session}"),
            _opencode_files,
            lambda url: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        ),
        Program(
            "qwen",
            "@qwen-code/qwen-code",
            _QWEN,
            (*_QWEN, "--resume", "{session}"),
            _qwen_files,
            _openai_env,
            heeds_no_proxy=False,
        ),
        Program(
            "copilot",
            "@github/copilot",
            (*_COPILOT, "-p", "{prompt}"),
            (*_COPILOT, "--resume={session}", "-p", "{prompt}"),
            _no_files,
            _copilot_env,
            reports_usage=False,
        ),
        Program(
            "aider",
            "aider-chat",
            (
                "aider",
                "--yes-always",
                "--no-git",
                "--no-check-update",
                "--no-stream",
                "--no-pretty",
                "--message={prompt}",
            ),
            (),
            _no_files,
            _aider_env,
        ),
    )
}
