"""All presets, by the name that `adapter` has in the settings."""

from collections.abc import Mapping
from typing import Final

from wakeful.integrations.agents.presets import (
    aider,
    amp,
    claude,
    codex,
    copilot,
    cursor,
    gemini,
    goose,
    opencode,
    qwen,
)
from wakeful.integrations.agents.presets.preset import Preset

PRESETS: Final[Mapping[str, Preset]] = {
    module.PRESET.name: module.PRESET
    for module in (claude, codex, gemini, opencode, qwen, copilot, aider, goose, cursor, amp)
}
