"""`/metrics`: metrics in Prometheus format."""

from starlette.requests import Request
from starlette.responses import Response

from wakeful.core.refusals import NotFound
from wakeful.core.time.instants import SECOND
from wakeful.features.money.queries import cost_of_agents
from wakeful.observe.metrics import CONTENT_TYPE, Gauges
from wakeful.server.http.serving import Api


async def get_metrics(api: Api, _request: Request) -> Response:
    app, render = api.app, api.serving.figures
    if render is None:
        raise NotFound("this process has no metrics")
    health = await app._health()
    channels = (await app.people.channels()).channels
    costs = await app._look(lambda tx, now: cost_of_agents(tx, zone=app._money_zone, now=now))
    gauges = Gauges(
        nodes_live=len(health.nodes),
        running=health.running,
        waiting=health.waiting,
        stuck=health.stuck,
        overdue_seconds=health.overdue / SECOND,
        failing=health.failing,
        late=health.late,
        incidents_open=health.incidents,
        cost_today=sum(cost.today for cost in costs.values()),
        cost_month=sum(cost.month for cost in costs.values()),
        deliveries_pending=sum(channel.pending for channel in channels),
        deliveries_dead=sum(channel.dead for channel in channels),
    )
    return Response(render(gauges), media_type=CONTENT_TYPE)
