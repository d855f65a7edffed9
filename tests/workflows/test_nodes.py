"""Two nodes on one PostgreSQL: a workflow still runs one handler at a time, and nothing happens twice."""

import asyncio
from typing import Any

from postgres.server import emptied_url as url
from postgres.server import server
from wakeful import Context, Prepare, Produced, Publish, Wakeful, every
from workflows.kit import state_of

__all__ = ["server", "url"]

WORKFLOWS, MESSAGES = 3, 30


class Outside:
    """Sees who is at work, and what happened."""

    def __init__(self) -> None:
        self.at_work: dict[str, int] = {}
        self.sent: dict[str, list[str]] = {}
        self.nodes: set[str] = set()

    async def work(self, ctx: Context, node: str) -> None:
        self.at_work[ctx.workflow] = self.at_work.get(ctx.workflow, 0) + 1
        assert self.at_work[ctx.workflow] == 1, f"two handlers of {ctx.workflow} at once"
        self.nodes.add(node)
        await asyncio.sleep(0.001)
        self.at_work[ctx.workflow] -= 1


def declare(app: Wakeful, name: str, node: str, outside: Outside) -> None:
    flow = app.workflow(name)

    @flow.producer(every("1h"), publishes=["mail"])
    async def poll(ctx: Context) -> Produced:
        await outside.work(ctx, node)
        return Produced([Publish("mail", f"m{n:03}", n) for n in range(MESSAGES)])

    @flow.consumer(subscribe=["mail"])
    async def digest(ctx: Context) -> Prepare:
        if not ctx.dry_run:
            await outside.work(ctx, node)
        ids = [one.id for one in ctx.messages["mail"][:5]]
        return Prepare({"mail": ids} if ids else {}, data=ids)

    @digest.mutate
    async def send(ctx: Context) -> None:
        await outside.work(ctx, node)
        outside.sent.setdefault(ctx.workflow, []).extend(ctx.prepared["data"])


async def test_two_nodes_share_the_work_of_workflows(url: str) -> None:
    """Each message goes out once, in order, whoever runs its handlers; publishing from both nodes loses nothing."""
    outside = Outside()
    apps = [Wakeful(url, timezone="UTC", name=f"node-{n}", shutdown_grace="5s") for n in range(2)]
    names = [f"flow-{n}" for n in range(WORKFLOWS)]
    for n, app in enumerate(apps):
        for name in names:
            declare(app, name, f"node-{n}", outside)
    for app in apps:
        await app.start()
    try:
        await asyncio.gather(
            *(
                app.workflow(name).publish("mail", f"x{n}-{i}", i)
                for n, app in enumerate(apps)
                for name in names
                for i in range(10)
            )
        )
        for _ in range(3000):
            views: list[Any] = [await state_of(apps[0], name) for name in names]
            if all(view["topics"]["mail"]["consumed"] == MESSAGES + 20 and not view["openRun"] for view in views):
                break
            await asyncio.sleep(0.05)
        assert [view["topics"]["mail"]["consumed"] for view in views] == [MESSAGES + 20] * WORKFLOWS
        assert [view["error"] for view in views] == [None] * WORKFLOWS
    finally:
        for app in apps:
            await app.stop()
    for name in names:
        found = outside.sent[name]
        assert len(found) == len(set(found)) == MESSAGES + 20
        ours = [one for one in found if one.startswith("m")]
        assert ours == sorted(ours)
