"""Responses: the JSON text, the status and the headers of a result."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from wakeful.api.etags import etag_of
from wakeful.app.owned_writing import AgentWritten
from wakeful.app.values import WrittenSchedule
from wakeful.core.description import Object
from wakeful.core.returned import returned
from wakeful.core.time.instants import format_instant
from wakeful.features.schedules.backfilling import PastInstants
from wakeful.features.schedules.queries import Page
from wakeful.features.schedules.run_views import RUN, RunView
from wakeful.features.schedules.timeline import Timeline, timeline_text
from wakeful.features.schedules.views import ScheduleView, encode

_STATUS = {"created": 201, "updated": 200, "unchanged": 200, "pending": 202}


class Reply(NamedTuple):
    """A response, for any way of asking that speaks JSON."""

    text: str | bytes
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})


def plain(returns: Mapping[int, Any]) -> Any:
    """The reply of an operation with one answer."""
    ((status, answer),) = returns.items()
    described: Object[Any] | None = answer.object
    if described is None:
        return lambda _: Reply("", status)
    return lambda value: Reply(encode(described.write(value)), status)


def shown(view: ScheduleView) -> Reply:
    return Reply(view.to_text(), 200, {"ETag": etag_of(view)})


def listed(page: Page) -> Reply:
    """A page of schedules, whose text is kept."""
    recent = page.recent
    texts = (view.to_text({} if recent is None else {"recent": recent.get(view.slug, "[]")}) for view in page.schedules)
    return Reply(f'{{"schedules":[{",".join(texts)}],"next":{encode(page.next)}}}')


def charted(page: Timeline) -> Reply:
    """Schedules on the time axis, whose runs' text is kept."""
    return Reply(timeline_text(page))


def replayed(done: RunView | PastInstants) -> Reply:
    """The new run, or only what it would cost."""
    if isinstance(done, PastInstants):
        return Reply(encode(returned(PastInstants).write(done)), 200)
    return Reply(encode(RUN.write(done)), 202)


def ended(run: Any) -> Reply:
    """A run that was waited for, or the id of one that was only requested."""
    is_run = isinstance(run, RunView)
    return Reply(encode((RUN if is_run else returned(type(run))).write(run)), 200 if is_run else 202)


def written(done: WrittenSchedule | AgentWritten) -> Reply:
    """A written schedule: created, updated, checked; an agent's may also wait for a person."""
    view = done.view
    if isinstance(done, AgentWritten):
        more = {
            "result": encode(done.result),
            "next": encode([] if done.result == "pending" else list(map(format_instant, done.next_times))),
        }
        more |= {} if done.proposal is None else {"proposal": encode(done.proposal.proposal_id)}
        return Reply(view.to_text(more), _STATUS[done.result])
    headers = {"ETag": etag_of(view), **({"Wakeful-Warning": "; ".join(done.warnings)} if done.warnings else {})}
    if done.is_rehearsal:
        return Reply(view.to_text({"next": encode([format_instant(at) for at in done.next_times])}), 200, headers)
    if done.is_created:
        headers["Location"] = f"/api/schedule/{view.slug}"
    return Reply(view.to_text(), 201 if done.is_created else 200, headers)
