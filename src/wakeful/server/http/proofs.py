"""What proves who sends a request: the tokens of runs and hooks, the feed's key, and what a process descends from."""

from wakeful.api.python import Wakeful
from wakeful.app import calendars
from wakeful.app.calling import calling_run
from wakeful.features.schedules.calling_runs import CallingRun
from wakeful.integrations.actions.ancestry import Ancestry
from wakeful.server.http.access import Caller


def hook_token(app: Wakeful, name: str) -> str | None:
    settings = app._host.settings
    hooks = {} if settings is None else settings().loaded.settings.hooks
    return hooks[name].token.reveal() if name in hooks else None


async def is_calendar_key(app: Wakeful, key: str) -> bool:
    return await app._look(lambda tx, _: calendars.is_key(tx, key))


async def run_caller(app: Wakeful, token: str) -> Caller | None:
    run_id = await app._run_of_token(token)
    return None if run_id is None else Caller("run", f"run {run_id}", run_id=run_id)


async def peer_caller(app: Wakeful, ancestry: Ancestry) -> Caller | None:
    """An agent's run is that agent, also what it left behind when it ended. Everything else that this process started
    is a person's command: it may operate what exists."""
    run = await calling_run(app, ancestry.leaders, ancestry.tokens)
    if run is not None and run.is_agents:
        called = Caller("run", f"run {run.run_id}", run_id=run.run_id, is_process=True)
        return called if run.is_running else _left_behind(run)
    if run is None and not ancestry.is_started_by_us:
        return None
    name = "a program that the daemon started" if run is None else f"run {run.run_id}"
    run_id = None if run is None or not run.is_running else run.run_id
    return Caller("operate", name, run_id=run_id, is_process=True)


def _left_behind(run: CallingRun) -> Caller:
    return Caller(
        "agent", f"a process that run {run.run_id} left behind", agent=run.agent or "default", is_process=True
    )
