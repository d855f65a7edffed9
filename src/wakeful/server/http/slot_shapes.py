"""Shapes of quota slots, for OpenAPI; they only describe."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wakeful.server.http.shapes import At, Duration, RunId, Shape, Zone

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$", examples=["main"])]
Span = Annotated[Duration, Field(examples=["60m"])]
Key = Annotated[
    str | dict[str, str],
    Field(description='the key, {"env": "NAME"} or {"file": "PATH"}; reads back masked', examples=[{"env": "GLM_KEY"}]),
]
TimeOfDay = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["09:00"])]


class SlotDefinition(Shape):
    """A slot definition; the allowed fields depend on the provider, as in wakeful.toml."""

    enabled: bool | None = None
    provider: Literal["glm", "http", "command"] | None = None
    api_key: Key | None = None
    base_url: str | None = None
    model: str | None = None
    quota_url: str | None = None
    wake_url: str | None = None
    wake_body: str | None = None
    quota_argv: Annotated[list[str], Field(min_length=1)] | None = None
    wake_argv: Annotated[list[str], Field(min_length=1)] | None = None
    env: dict[str, Any] | None = None
    percentage_key: str | None = None
    reset_key: str | None = None
    interval: Span | None = None
    times: Annotated[list[TimeOfDay], Field(max_length=5)] | None = None
    after_reset: Span | None = None
    timezone: Zone | None = None
    poll: Span | None = None
    retry_window: Span | None = None
    errors_max: Annotated[int, Field(ge=1, le=1000)] | None = None
    backoff_cap: Span | None = None


class SlotPoint(Shape):
    """One poll of the quota."""

    at: At
    percentage: float | None
    next_reset_time: At | None


class Slot(SlotDefinition):
    """A slot: definition and state."""

    name: str
    source: Literal["settings", "store"]
    status: Literal["new", "warm", "cold", "waking", "exhausted", "failing", "disabled", "off", "invalid"]
    status_reason: str | None
    cure: str | None
    warm: bool
    percentage: float | None
    next_reset_time: Annotated[At | None, Field(description="null if the key is cold")]
    last_reset_time: Annotated[
        At | None, Field(description="the latest known one, even if the provider no longer reports it")
    ]
    window_start: At | None
    time_to_reset: str | None
    exhausted_until: At | None
    level: str | None
    limits: list[Any]
    last_poll: At | None
    wake_pending: bool
    last_wake: At | None
    wake_run: RunId | None
    wake_errors: int
    quota_errors: int
    wake_disabled: bool
    disabled: bool
    last_error: str | None
    unreachable_since: Annotated[
        At | None, Field(description="no connection, or 5xx, since then; does not count as an error")
    ]
    unsent: Annotated[int, Field(description="failed sends of the current wake, which is retried")]
    next_wake: At | None
    next_poll: At | None
    stats: Any
    history: list[SlotPoint]
    created_at: At
    updated_at: At
    version: int


class Slots(Shape):
    """All slots, ordered by name."""

    slots: list[Slot]
