"""A machine of the world: it boots again and again, and each boot is a process with a node in it.

Killing it leaves nothing behind but what was committed: every boot has its own store handle, clock and engine.
"""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.schedule.actions import Call, Http
from wakeful.core.schedule.actions import Command as Program
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, Duration, Instant
from wakeful.features.schedules.rules import Terms
from wakeful.ports.action import Action, Fire
from wakeful.ports.clock import Moment
from wakeful.ports.store import StoreUnavailable
from wakeful.stores.sqlite.group import Crashed
from wakeful.stores.sqlite.store import SqliteStore
from wakeful.testing.virtual_clock import VirtualClock
from wakeful.testing.virtual_loop import Process
from worlds import laws
from worlds.faults import CommitFault, Deed
from worlds.holidays import ZONE
from worlds.inhabitants import Act, Arriving, Boot, Tenant, Wrapping
from worlds.laws import Ending
from worlds.performers import Programs, SimAction
from worlds.plain_law import watch_plain_path
from worlds.system import System, labels_for

if TYPE_CHECKING:
    from worlds.world import World

REFUSALS: Final = (Invalid, Conflict, NotFound)
GHOST_PATIENCE: Final = 2 * MINUTE


class Machine:
    """A machine that boots again and again; each boot is a process with a node in it."""

    def __init__(self, world: "World", index: int) -> None:
        self.world = world
        self.name = f"node-{index}"
        self.labels = labels_for(index, world.climate.nodes)
        self.gone: dict[int, int] = {}  # node incarnations that died, and when
        self.awake_since = 0
        self.ticks = 0
        self.is_stopping = False  # it lets things end, and begins nothing
        self.doom: tuple[int, CommitFault] | None = None  # it dies of a commit, after so many others
        self._process: Process | None = None
        self._store: SqliteStore | None = None
        self._watcher: _Watcher | None = None
        self._system: System | None = None
        self._clock: VirtualClock | None = None
        self._boot: Boot | None = None
        self._tenants: dict[str, Tenant] = {}
        self._actions: tuple[SimAction, ...] = ()
        self._programs = Programs(world.handler_rng, world.judge.remains)
        self._haunted: dict[tuple[int, int], int] = {}

    @property
    def is_awake(self) -> bool:
        return self._process is not None and self._process.is_awake and self._system is not None

    @property
    def node_id(self) -> int | None:
        """The incarnation that it takes itself for."""
        return None if self._system is None else self._system.engine.node_id

    @property
    def steady_since(self) -> int | None:
        """True time since which it has been up without a break; None if it is not."""
        boot = self._boot
        if boot is None or boot.is_still or self.is_stopping:
            return None
        return max(boot.began_at, boot.disturbed_at)

    def boot(self) -> None:
        """Start a new process."""
        world = self.world
        if self._process is not None or world.is_over:
            return
        world.boots += 1
        world.say(lambda: f"{self.name}: boots")
        self._process = process = Process(world.loop, f"{self.name}.{world.boots}")
        self._watcher = watcher = _Watcher(world, self)
        self._clock = clock = VirtualClock(world.loop, wall=world.wall)
        self._store = store = SqliteStore.open_inline(world.path, hook=watcher, shared_clock=world.climate.nodes > 1)
        terms = lambda: world.calendar.terms(Terms(default_zone=ZONE))  # noqa: E731
        watch_plain_path(store, world.report, terms, world.batches)
        self._actions = tuple(
            SimAction(sort, world.handler_rng, world.loop, clock, self, self._programs, world.shortages)
            for sort in ("call", "request", "program")
        )
        self._boot = boot = Boot(process.name, clock, world.loop.now_ms)
        self._tenants = {one.name: one.move_in(boot) for one in world.inhabitants}
        self.awake_since = world.loop.now_ms
        self.is_stopping = False
        process.start(self._live(store, clock, boot), name=process.name)

    def kill(self, *, boots_after: Duration | None) -> None:
        """End the process as a power cut does, from outside."""
        if self._process is not None:
            self.world.say(lambda: f"{self.name}: dies")
            self._die()
        if boots_after is not None:
            self.world.later(boots_after, self.boot)

    def crash(self) -> None:
        """End the process from inside a commit of its own."""
        self.world.crashes += 1
        self.world.say(lambda: f"{self.name}: dies at a commit")
        self._die()
        self.world.later(self.world.machine_rng.choice((SECOND, MINUTE, HOUR)), self.boot)

    def restart(self, lasting: Duration) -> None:
        """Stop the process in good order, and start it again later."""
        process, system, store, boot = self._process, self._system, self._store, self._boot
        if process is None or not process.is_awake or system is None or store is None or boot is None:
            return

        self.is_stopping = True
        boot.disturbed_at = self.world.loop.now_ms

        async def stop() -> None:
            await system.stop()
            await store.close()
            self.world.later(0, partial(self._stopped, process, lasting))

        process.start(stop())

    def freeze(self, lasting: Duration, *, is_suspend: bool) -> None:
        """Let the process stand still for a while."""
        process, clock, boot = self._process, self._clock, self._boot
        if process is None or clock is None or boot is None or process.is_frozen:
            return
        process.freeze()
        boot.is_still = True
        boot.disturbed_at = self.world.loop.now_ms

        def thaw() -> None:
            if process.is_alive:
                boot.is_still = False
                self.awake_since = boot.disturbed_at = self.world.loop.now_ms
                self.world.say(lambda: f"{self.name}: goes on")
                if is_suspend:
                    clock.suspend(lasting)
                process.thaw()

        self.world.later(lasting, thaw)

    def do(self, deed: Deed, slug: str) -> None:
        """Carry out what a person asks of this machine."""
        if self._process is not None and self._system is not None:
            self._process.start(self._carry_out(self._system, deed, slug))

    def run_errand(self, errand: Callable[[System], Coroutine[Any, Any, None]]) -> None:
        """Do something for a person, as far as this process lives."""
        if self._process is not None and self._system is not None:
            self._process.start(errand(self._system))

    def next_doom(self) -> CommitFault | None:
        """Whether it dies of the commit that it makes now."""
        if self.doom is None:
            return None
        commits, side = self.doom
        self.doom = (commits - 1, side) if commits else None
        return None if commits else side

    def read_settings(self) -> None:
        """The settings changed."""
        if self._system is not None:
            self._system.change_terms(self.world.calendar.terms)

    def act(self, act: Act) -> None:
        """Let somebody outside do something to an inhabitant, through this machine."""
        if self._process is not None and self._system is not None:
            self._process.start(self._let_act(self._tenants[act.inhabitant], act))

    def remove(self) -> None:
        """The world is over."""
        if self._process is not None:
            self._die()

    def haunted(self) -> Iterator[str]:
        """What still runs here although the lease was taken."""
        now = self.world.loop.now_ms
        listening = [key for action in self._actions for key in action.under_way if key not in action.deaf]
        ghosts = [one for key in listening if (one := self.world.judge.under_way.get(key)) and one.is_ghost]
        keys = {(one.run_id, one.attempt) for one in ghosts}
        self._haunted = {key: self._haunted.get(key, now) for key in sorted(keys)}
        for ghost in ghosts:
            awake_for = now - max(self._haunted[ghost.run_id, ghost.attempt], self.awake_since)
            patience = GHOST_PATIENCE + 2 * self.world.limits.renew_every
            yield from laws.ghosts_leave([ghost], awake_for=awake_for, patience=patience)

    # -- what the actions tell ----------------------------------------------------------------------------------------

    def refused(self, fire: Fire, at: Instant) -> None:
        self.world.judge.refusals.refused(fire.run_id, fire.attempt, at)

    def began(self, fire: Fire) -> None:
        self.world.began(self, fire)

    def ended(self, run_id: int, attempt: int, ending: Ending) -> None:
        self.world.ended(self, run_id, attempt, ending)

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _live(self, store: SqliteStore, clock: VirtualClock, boot: Boot) -> None:
        world = self.world
        kinds: tuple[type[Any], ...] = (Call, Http, Program)
        actions: dict[type[Any], Action] = dict(zip(kinds, self._actions, strict=True))
        for inhabitant in world.inhabitants:
            actions |= inhabitant.actions(boot, actions[Http])
        for inhabitant in world.inhabitants:
            if isinstance(inhabitant, Wrapping):
                actions |= inhabitant.wrap(boot, actions, actions[Http])
        features = [tenant.plug for tenant in self._tenants.values()]
        limits = replace(world.limits, labels=self.labels)
        system = await world.assemble(store, clock, actions, self._programs.end, limits, self.name, features)
        system.change_terms(world.calendar.terms)
        for tenant in self._tenants.values():
            if isinstance(tenant, Arriving):
                tenant.arrive(system)
        tick = system.engine.tick

        async def watched_tick(moment: Moment) -> int:
            deadline = await tick(moment)
            if system.engine.is_ticking:
                world.ticked(self, moment, deadline)
            return deadline

        system.engine.tick = watched_tick  # type: ignore[method-assign]
        await system.start()
        self._system = system

    async def _carry_out(self, system: System, deed: Deed, slug: str) -> None:
        slugs = self.world.slugs
        if deed.what != "run_now":
            self.world.attended_at[slug] = self.world.loop.now_ms
        try:
            match deed.what:
                case "add" | "edit":
                    await system.put(slug, deed.definition or {})
                    slugs[slug] = None
                case "pause":
                    is_short = deed.draw * 1000 % 1 < 0.4
                    until = self.world.wall.read() + int(deed.draw * 3 * DAY) + MINUTE if is_short else None
                    await system.pause(slug, until)
                case "resume":
                    await system.resume(slug)
                case "remove":
                    slugs.pop(slug, None)
                    await system.remove(slug)
                case "run_now":
                    await system.run_now(slug)
                case "backfill":
                    self.world.judge.backfills[slug] += 1
                    await system.backfill(slug)
                case "replay":
                    await system.replay(slug)
                case "cancel":
                    run_id, attempt = await system.cancel(slug)
                    self.world.cancelled[run_id] = attempt
            if deed.what not in ("run_now", "backfill", "replay"):
                self.world.attended_at[slug] = self.world.loop.now_ms
        except REFUSALS as refused:
            why = str(refused)
            self.world.say(lambda: f"{self.name}: {deed.what} {slug} is refused: {why}")
        except StoreUnavailable:
            pass
        except Exception as error:
            self.world.report([f"L9 {deed.what} {slug} raised {type(error).__name__}: {error}"])

    async def _let_act(self, tenant: Tenant, act: Act) -> None:
        try:
            await tenant.act(act)
        except REFUSALS as refused:
            why = str(refused)
            self.world.say(lambda: f"{self.name}: {act.inhabitant}: {act.what} is refused: {why}")
        except StoreUnavailable:
            pass
        except Exception as error:
            self.world.report([f"L9 {act.inhabitant}: {act.what} raised {type(error).__name__}: {error}"])

    def _stopped(self, process: Process, lasting: Duration) -> None:
        if self._process is process:
            self.kill(boots_after=lasting)

    def _die(self) -> None:
        """Nothing of the process runs after this. Programs it started go on."""
        process, store, watcher, system, boot = self._process, self._store, self._watcher, self._system, self._boot
        self._process = self._store = self._watcher = self._system = self._clock = self._boot = self.doom = None
        if process is None or store is None or watcher is None or boot is None:
            return
        process.kill()
        self.world.meddlers.died(self)
        boot.is_alive = False
        watcher.is_doomed = True
        node = None if system is None else system.engine.node_id
        if node is not None:
            self.gone[node] = self.world.loop.now_ms
        for action in self._actions:
            for (run_id, attempt), program in list(action.under_way.items()):
                if program is None:
                    del action.under_way[run_id, attempt]
                    self.world.ended(self, run_id, attempt, "died")
                else:
                    alone = self.world.machine_rng.randrange(2 * HOUR)
                    self.world.later(alone, partial(action.outlive, (run_id, attempt)))
        self._actions = ()

        def reap() -> None:
            process.reap()
            self.world.loop.create_task(store.close(), context=self.world.context.copy())

        self.world.later(0, reap)


class _Watcher:
    """The store's hook: sizes groups, lets the judge look at every commit, and lets the node die of it."""

    def __init__(self, world: "World", machine: Machine) -> None:
        self.is_doomed = False
        self._world = world
        self._machine = machine
        self._fault: CommitFault | None = None

    def group_size(self, waiting: int) -> int:
        return self._world.commit_faults.group_size(waiting)

    def before_commit(self) -> None:
        if self.is_doomed:
            raise Crashed
        drawn, doomed = self._world.commit_faults.draw(), self._machine.next_doom()
        self._fault = doomed or drawn
        if self._fault == "before":
            self._machine.crash()
            raise Crashed

    def after_commit(self) -> None:
        self._world.look()
        if self._fault == "after":
            self._machine.crash()
            raise Crashed
