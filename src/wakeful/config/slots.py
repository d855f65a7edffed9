"""`[quota]` and `[slots.NAME]`: API keys whose quota windows are kept warm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Discriminator, Tag, ValidationInfo, field_validator

from wakeful.config import kinds
from wakeful.config.faults import refusal
from wakeful.config.kinds import setting
from wakeful.config.secrets import Secret
from wakeful.config.table import NamedTables, Table

TIMES_MAX: Final = 5
_MODES: Final = ("interval", "times", "after_reset")
_PROVIDER_SAYS: Final = "the provider"
_PERCENTAGE_SAYS: Final = "key of the used percentage in the JSON, e.g. `data.used.0`"
_RESET_SAYS: Final = "key of the next reset in the JSON; milliseconds, seconds, or a timestamp with an offset"


class Quota(Table):
    """Defaults for all slots."""

    slots_max: Annotated[int, kinds.count(1, 64)] = setting(4, says="maximum number of slots")
    retry_window: Annotated[int, kinds.duration("1m", "24h")] = setting(
        "15m", says="how long to poll every minute for the effect of a wake before sending it again"
    )
    errors_max: Annotated[int, kinds.count(1, 1_000)] = setting(
        10, says="consecutive errors after which wakes, or the slot itself, are disabled"
    )
    backoff_cap: Annotated[int, kinds.duration("1m", "24h")] = setting(
        "480m", says="maximum interval between polls that fail"
    )


class SlotTable(Table):
    """Settings for slots of every provider."""

    enabled: Annotated[bool, kinds.flag()] = setting(True, says="whether the slot is woken and polled")
    interval: Annotated[int | None, kinds.duration("1m", "24h")] = setting(
        None, says="wake this long after the last wake; default: never by interval"
    )
    times: Annotated[
        tuple[str, ...],
        kinds.listed(kinds.time_of_day(), f"list of times of day, at most {TIMES_MAX}", most=TIMES_MAX, distinct=True),
    ] = setting((), says="wake at these times; empty: never by time of day")
    after_reset: Annotated[int | None, kinds.duration("1m", "24h")] = setting(
        None, says="wake this long after the last known reset; default: never by reset"
    )
    timezone: Annotated[str, kinds.zone(local=True)] = setting("local", says="time zone of `times`")
    poll: Annotated[int, kinds.duration("1m", "24h")] = setting("30m", says="how often the quota is polled")
    retry_window: Annotated[int | None, kinds.duration("1m", "24h")] = setting(
        None, says="overrides quota.retry_window"
    )
    errors_max: Annotated[int | None, kinds.count(1, 1_000)] = setting(None, says="overrides quota.errors_max")
    backoff_cap: Annotated[int | None, kinds.duration("1m", "24h")] = setting(None, says="overrides quota.backoff_cap")


class GlmSlot(SlotTable):
    """Z.ai or BigModel."""

    provider: Literal["glm"] = setting("glm", says=_PROVIDER_SAYS)
    api_key: Annotated[Secret, kinds.secret()] = setting(says="the API key")
    base_url: Annotated[str, kinds.url(https=True)] = setting("https://api.z.ai", says="base URL of the provider")
    model: Annotated[str, kinds.text(most=200)] = setting("glm-5", says="model that wakes are sent to")


class HttpSlot(SlotTable):
    """Any provider with a URL that returns {percentage, nextResetTime}."""

    provider: Literal["http"] = setting(says=_PROVIDER_SAYS)
    api_key: Annotated[Secret | None, kinds.secret()] = setting(None, says="sent as a bearer token")
    quota_url: Annotated[str, kinds.url(https=True)] = setting(says="URL that returns the quota on GET")
    wake_url: Annotated[str | None, kinds.url(https=True)] = setting(None, says="URL that a wake POSTs to")
    wake_body: Annotated[str | None, kinds.json_text()] = setting(None, says="body of the wake request")
    percentage_key: Annotated[str, kinds.text(most=200)] = setting("percentage", says=_PERCENTAGE_SAYS)
    reset_key: Annotated[str, kinds.text(most=200)] = setting("nextResetTime", says=_RESET_SAYS)

    @field_validator("wake_url")
    @classmethod
    def _can_wake(cls, url: str | None, info: ValidationInfo) -> str | None:
        _check_wake(url, info, 'wake_url = "https://…"')
        return url


class CommandSlot(SlotTable):
    """Any provider with a program that prints {percentage, nextResetTime}."""

    provider: Literal["command"] = setting(says=_PROVIDER_SAYS)
    quota_argv: Annotated[tuple[str, ...], kinds.argv()] = setting(says="program that prints the quota")
    wake_argv: Annotated[tuple[str, ...] | None, kinds.argv()] = setting(None, says="program that sends the wake")
    env: Annotated[Mapping[str, Secret], kinds.secrets_by_name()] = setting(
        {}, says="environment variables for both programs"
    )
    percentage_key: Annotated[str, kinds.text(most=200)] = setting("percentage", says=_PERCENTAGE_SAYS)
    reset_key: Annotated[str, kinds.text(most=200)] = setting("nextResetTime", says=_RESET_SAYS)

    @field_validator("wake_argv")
    @classmethod
    def _can_wake(cls, argv: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        _check_wake(argv, info, 'wake_argv = ["PROGRAM"]')
        return argv


def _check_wake(wake: object, info: ValidationInfo, example: str) -> None:
    mode = next((mode for mode in _MODES if info.data.get(mode)), None)
    if wake is None and mode is not None:
        message = f"is missing, and {mode} needs it to wake the slot; write {example}, or remove {mode}"
        raise refusal(message, at=(str(info.field_name),))


SLOTS: Final = NamedTables(
    by="provider",
    default="glm",
    models={"glm": GlmSlot, "http": HttpSlot, "command": CommandSlot},
)


def _provider(written: Any) -> str | None:
    return SLOTS.tag(written)


AnySlot: TypeAlias = GlmSlot | HttpSlot | CommandSlot
"""Any value of `Settings.slots`, for an exhaustive `match`."""

Slot: TypeAlias = Annotated[
    Annotated[GlmSlot, Tag("glm")] | Annotated[HttpSlot, Tag("http")] | Annotated[CommandSlot, Tag("command")],
    Discriminator(_provider),
]
