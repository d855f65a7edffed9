"""What would happen, and what to expect."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, cast

from wakeful.api.operation import Noun, Returns, perform
from wakeful.api.parameters import Param
from wakeful.api.replies import Reply
from wakeful.app.forecasting import DAYS, DAYS_MAX, Forecast
from wakeful.core.description import COMPONENTS, Object
from wakeful.core.returned import TIME, returned
from wakeful.core.simulation import request
from wakeful.core.simulation.request import PERIOD, USED_UP_BUDGET, USED_UP_SLOT
from wakeful.core.simulation.results import Simulation
from wakeful.core.time.timing_builders import as_duration
from wakeful.features.schedules.views import encode

OBJECT: Final = {"type": "object", "additionalProperties": True}


@dataclass(frozen=True, slots=True)
class Simulated:
    """A simulation, as the text that its process wrote: it may have 200,000 rows, and need not be read to be sent."""

    text: bytes

    def read(self) -> Simulation:
        """The simulation."""
        return cast(Simulation, json.loads(self.text))


def forecasted(made: Forecast | None) -> Reply:
    """A forecast, if there is one."""
    return Reply("", 204) if made is None else Reply(encode(made))


def _all(described: Object[Any]) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": COMPONENTS + described.name}}


class Future(Noun):
    """Simulations and forecasts."""

    @perform(
        "POST /api/simulate",
        "Simulate the plan",
        Returns(returned(Simulation), "What would happen, and the difference."),
        refuses=(409,),
        id="simulate",
        tag="plan",
        body_name="SimulationRequest",
        body_says="What to simulate.",
        reply=lambda simulated: Reply(simulated.text),
        is_long=True,
    )
    async def simulate(
        self,
        *,
        days: Annotated[
            int | None, Param("how many days; default: 7", least=1, most=request.DAYS_MAX, unchecked=True)
        ] = None,
        start: Annotated[
            datetime | str | None,
            Param("default: now, with everything that waits", "from", schema=TIME.schema, unchecked=True),
        ] = None,
        until: Annotated[datetime | str | None, Param("instead of days", schema=TIME.schema, unchecked=True)] = None,
        drafts: Annotated[
            Sequence[Mapping[str, Any]] | None,
            Param(
                "definitions that are added or replace others",
                "with",
                schema={"type": "array", "items": OBJECT},
                unchecked=True,
            ),
        ] = None,
        without: Annotated[
            Sequence[str] | None,
            Param("slugs that are left out", schema={"type": "array", "items": {"type": "string"}}, unchecked=True),
        ] = None,
        outages: Annotated[
            Sequence[tuple[datetime | str, datetime | str]] | None,
            Param("when nothing runs", schema=_all(PERIOD), inner=(PERIOD,), unchecked=True),
        ] = None,
        failing: Annotated[
            Mapping[str, float] | None,
            Param(
                "the share of attempts that fail, by slug",
                schema={"type": "object", "additionalProperties": {"type": "number"}},
                unchecked=True,
            ),
        ] = None,
        slow: Annotated[
            Mapping[str, str | timedelta] | None,
            Param(
                "how long attempts take, by slug",
                schema={"type": "object", "additionalProperties": {"type": "string"}},
                unchecked=True,
            ),
        ] = None,
        quota: Annotated[
            Sequence[Mapping[str, Any]] | None,
            Param(schema=_all(USED_UP_SLOT), inner=(USED_UP_SLOT,), unchecked=True),
        ] = None,
        budgets: Annotated[
            Sequence[Mapping[str, Any]] | None,
            Param(schema=_all(USED_UP_BUDGET), inner=(USED_UP_BUDGET,), unchecked=True),
        ] = None,
        seed: Annotated[int, Param("the same seed gives the same result", least=0, unchecked=True)] = 0,
        rows: Annotated[bool, Param("return every row, not only sums", where="query")] = False,
    ) -> Simulated:
        """The real engine on a virtual clock, over a copy, in a separate process. Nothing is contacted or changed."""
        given = {
            "days": days,
            "from": start,
            "until": until,
            "with": drafts,
            "without": without,
            "outages": as_periods(outages),
            "failing": failing,
            "slow": slow,
            "quota": quota,
            "budgets": budgets,
            "seed": seed,
        }
        written = {name: as_json(value) for name, value in given.items() if value is not None}
        return Simulated(await self._app._simulated(written, rows=rows))

    @perform(
        "GET /api/forecast",
        "Forecast the coming days",
        Returns(returned(Forecast), "What to expect, and how the last one compared."),
        Returns(None, "With `latest`: this node has made none since it started."),
        statuses=(200, 204),
        refuses=(409,),
        least="read",
        id="get_forecast",
        tag="plan",
        reply=forecasted,
        is_long=True,
    )
    async def forecast(
        self,
        days: Annotated[int, Param("how many days", least=1, most=DAYS_MAX)] = DAYS,
        *,
        latest: Annotated[bool, Param("return the last one this node made, without simulating")] = False,
    ) -> Forecast | None:
        """Ranges are from the 5th to the 95th percentile."""
        return self._app._forecasts.get(days) if latest else await self._app.forecast(days)


def as_periods(outages: Any) -> Any:
    """Pairs of times as periods; a request has periods already, or something that is refused."""
    if not isinstance(outages, list | tuple):
        return outages
    return [dict(zip(("from", "until"), one, strict=False)) if isinstance(one, tuple) else one for one in outages]


def as_json(value: Any) -> Any:
    """What a program gives, as in a request: times and durations as text."""
    match value:
        case datetime():
            return value.isoformat()
        case timedelta():
            return f"{as_duration(value, 'slow')}ms"
        case Mapping():
            return {name: as_json(inner) for name, inner in value.items()}
        case str():
            return value
        case Collection():
            return [as_json(inner) for inner in value]
        case _:
            return value
