"""`[quota]` and `[slots.NAME]`: API keys whose quota windows are kept warm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from wakeful.config.kinds import texts
from wakeful.config.kinds.addresses import HTTPS_URL
from wakeful.config.kinds.clocks import ZONE, time_of_day
from wakeful.config.kinds.lists import ARGV, listed
from wakeful.config.kinds.numbers import FLAG, count, duration
from wakeful.config.kinds.secrets import SECRET, SECRETS_BY_NAME
from wakeful.config.kinds.texts import JSON_TEXT
from wakeful.config.plugins import SETTINGS_OF_PLUGIN
from wakeful.config.secrets import Secret
from wakeful.config.table import CHOICE, NamedTables, described_table, setting
from wakeful.core.fields import Fields

TIMES_MAX: Final = 5
_MINUTE_TO_DAY: Final = duration("1m", "24h")
_WORDS: Final = texts.text(most=200)
_MODES: Final = ("interval", "times", "after_reset")
_PROVIDER_SAYS: Final = "the provider"
_PERCENTAGE_SAYS: Final = "key of the used percentage in the JSON, e.g. `data.used.0`"
_RESET_SAYS: Final = "key of the next reset in the JSON; milliseconds, seconds, or a timestamp with an offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Defaults for all slots."""

    slots_max: int = setting(count(1, 64), "maximum number of slots", 4)
    retry_window: int = setting(
        _MINUTE_TO_DAY, "how long to poll every minute for the effect of a wake before sending it again", "15m"
    )
    errors_max: int = setting(
        count(1, 1_000), "consecutive errors after which wakes, or the slot itself, are disabled", 10
    )
    backoff_cap: int = setting(_MINUTE_TO_DAY, "maximum interval between polls that fail", "480m")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTable:
    """Settings for slots of every provider."""

    enabled: bool = setting(FLAG, "whether the slot is woken and polled", True)
    interval: int | None = setting(
        _MINUTE_TO_DAY, "wake this long after the last wake; default: never by interval", None
    )
    times: tuple[str, ...] = setting(
        listed(time_of_day(), f"list of times of day, at most {TIMES_MAX}", most=TIMES_MAX, distinct=True),
        "wake at these times; empty: never by time of day",
        (),
    )
    after_reset: int | None = setting(
        _MINUTE_TO_DAY, "wake this long after the last known reset; default: never by reset", None
    )
    timezone: str = setting(ZONE, "time zone of `times`", "local")
    poll: int = setting(_MINUTE_TO_DAY, "how often the quota is polled", "30m")
    retry_window: int | None = setting(_MINUTE_TO_DAY, "overrides quota.retry_window", None)
    errors_max: int | None = setting(count(1, 1_000), "overrides quota.errors_max", None)
    backoff_cap: int | None = setting(_MINUTE_TO_DAY, "overrides quota.backoff_cap", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlmSlot(SlotTable):
    """Z.ai or BigModel."""

    provider: Literal["glm"] = setting(CHOICE, _PROVIDER_SAYS, "glm")
    api_key: Secret = setting(SECRET, "the API key")
    base_url: str = setting(HTTPS_URL, "base URL of the provider", "https://api.z.ai")
    model: str = setting(_WORDS, "model that wakes are sent to", "glm-5")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSlot(SlotTable):
    """Any provider with a URL that returns {percentage, nextResetTime}."""

    provider: Literal["http"] = setting(CHOICE, _PROVIDER_SAYS)
    api_key: Secret | None = setting(SECRET, "sent as a bearer token", None)
    quota_url: str = setting(HTTPS_URL, "URL that returns the quota on GET")
    wake_url: str | None = setting(HTTPS_URL, "URL that a wake POSTs to", None)
    wake_body: str | None = setting(JSON_TEXT, "body of the wake request", None)
    percentage_key: str = setting(_WORDS, _PERCENTAGE_SAYS, "percentage")
    reset_key: str = setting(_WORDS, _RESET_SAYS, "nextResetTime")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSlot(SlotTable):
    """Any provider with a program that prints {percentage, nextResetTime}."""

    provider: Literal["command"] = setting(CHOICE, _PROVIDER_SAYS)
    quota_argv: tuple[str, ...] = setting(ARGV, "program that prints the quota")
    wake_argv: tuple[str, ...] | None = setting(ARGV, "program that sends the wake", None)
    env: Mapping[str, Secret] = setting(SECRETS_BY_NAME, "environment variables for both programs", {})
    percentage_key: str = setting(_WORDS, _PERCENTAGE_SAYS, "percentage")
    reset_key: str = setting(_WORDS, _RESET_SAYS, "nextResetTime")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSlot(SlotTable):
    """A slot of a plugin's provider; the plugin reads the other settings itself."""

    provider: str = setting(_WORDS, _PROVIDER_SAYS)
    settings: Mapping[str, Any] = setting(SETTINGS_OF_PLUGIN, "what the plugin reads", {})


def _check_wake(field: str, example: str) -> Callable[[Fields, Mapping[str, Any]], None]:
    """The check that a slot with a wake mode says how it is woken."""

    def check(fields: Fields, given: Mapping[str, Any]) -> None:
        mode = next((mode for mode in _MODES if given.get(mode)), None)
        if mode is not None and field in given and given[field] is None:
            fields.fail(
                field, f"is missing, and {mode} needs it to wake the slot; write {field} = {example}, or remove {mode}"
            )

    return check


AnySlot: TypeAlias = PluginSlot | GlmSlot | HttpSlot | CommandSlot
"""Any value of `Settings.slots`, for an exhaustive `match`."""
SLOTS: Final = NamedTables(
    by="provider",
    default="glm",
    tables={
        "glm": described_table(GlmSlot),
        "http": described_table(HttpSlot, _check_wake("wake_url", '"https://…"')),
        "command": described_table(CommandSlot, _check_wake("wake_argv", '["PROGRAM"]')),
    },
    plugin=described_table(PluginSlot),
    group="wakeful.providers",
)
