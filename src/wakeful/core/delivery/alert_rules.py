"""When people are alerted: the `[alerts]` settings, and what a schedule overrides."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from wakeful.core.description import COMPONENTS, Field, Kind, described
from wakeful.core.fields import Fields, shown
from wakeful.core.kinds import CHANNEL, duration, whole
from wakeful.core.time.instants import HOUR, MINUTE, SECOND, Duration

ERRORS: Final = 2
WITHIN: Final[Duration] = HOUR
OUTAGE: Final[Duration] = 10 * MINUTE
PING_EVERY: Final[Duration] = 5 * MINUTE
LAST: Final = "last"
"""The channel of the last interaction."""
_SETTINGS: Final = "as in `[alerts]`"


@dataclass(frozen=True, slots=True)
class AlertOption:
    """A schedule's `alert`; None fields are taken from the settings."""

    errors: Annotated[
        int | None, Field(whole(1), "alert after this many bad instants in a row", "Alert after", usual=_SETTINGS)
    ] = None
    within: Annotated[
        Duration | None,
        Field(
            duration(SECOND),
            "or when an instant is still bad this long after its time",
            "Alert within",
            usual=_SETTINGS,
        ),
    ] = None
    channel: Annotated[str | None, Field(CHANNEL, "where it is reported", "Alert to", usual=_SETTINGS)] = None


AlertChoice: TypeAlias = AlertOption | Literal[False] | None
"""None: the settings apply. False: nothing is reported."""

ALERT_OPTION: Final = described(
    AlertOption, says="When and where people are alerted; missing fields come from the settings."
)


def _read(fields: Fields, name: str) -> AlertChoice:
    raw = fields.raw(name)
    if raw is False:
        return False
    if not isinstance(raw, Mapping):
        cure = 'write false for none, null for the [alerts] settings, or for example {"errors": 3, "within": "2h"}'
        fields.fail(name, f"{shown(raw)} is not an alert; {cure}")
        return None
    option = fields.nested(name, ALERT_OPTION.read)
    return None if option == AlertOption() else option


def _write(alert: AlertOption | Literal[False]) -> dict[str, Any] | Literal[False]:
    return False if alert is False else ALERT_OPTION.write(alert)


ALERT: Final = Kind(
    "[AlertOption](#alertoption) or `false`",
    _read,
    {"anyOf": [{"$ref": f"{COMPONENTS}AlertOption"}, {"const": False}]},
    _write,
    control="object or false",
    inner=(ALERT_OPTION,),
)


@dataclass(frozen=True, slots=True)
class AlertRule:
    """When an incident of one subject opens, and where it is reported."""

    errors: int = ERRORS  # bad instants in a row
    within: Duration = WITHIN  # or an instant that is still bad this long after its time
    channel: str = LAST


@dataclass(frozen=True, slots=True)
class AlertTerms:
    """The `[alerts]` settings."""

    rule: AlertRule = AlertRule()
    outage: Duration = OUTAGE
    ping: str | None = None  # the URL of a monitor; None: no ping
    ping_every: Duration = PING_EVERY

    def rule_of(self, choice: AlertChoice) -> AlertRule | None:
        """The rule for a subject with this choice; None if it wants no alerts."""
        if choice is False:
            return None
        if choice is None:
            return self.rule
        usual = self.rule
        return AlertRule(
            usual.errors if choice.errors is None else choice.errors,
            usual.within if choice.within is None else choice.within,
            usual.channel if choice.channel is None else choice.channel,
        )
