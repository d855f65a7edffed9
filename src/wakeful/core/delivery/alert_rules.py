"""When people are alerted: the `[alerts]` settings, and what a schedule overrides."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from wakeful.core.time.instants import HOUR, MINUTE, Duration

ERRORS: Final = 2
WITHIN: Final[Duration] = HOUR
OUTAGE: Final[Duration] = 10 * MINUTE
PING_EVERY: Final[Duration] = 5 * MINUTE
LAST: Final = "last"
"""The channel of the last interaction."""


@dataclass(frozen=True, slots=True)
class AlertOption:
    """`alert` of a schedule; None fields are taken from the settings."""

    errors: int | None = None
    within: Duration | None = None
    channel: str | None = None


AlertChoice: TypeAlias = AlertOption | Literal[False] | None
"""None: the settings apply. False: nothing is reported."""


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
