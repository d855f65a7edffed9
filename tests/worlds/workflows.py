"""A workflow as an inhabitant: what is published happens outside, and a person looks there when it is uncertain.

Letters (`mail`) have two consumers: `deliver` has a side effect, `archive` has none. `pick` matches each order with the
one parcel of many that it names, which may be on a later page. Now and then a handler cannot be reached for hours.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from wakeful.app.bootstrap import FeatureContext
from wakeful.app.features import plug_workflows
from wakeful.core.run.runs import Run
from wakeful.core.time.instants import (
    HOUR,
    INSTANT_MAX,
    MINUTE,
    SECOND,
    Duration,
    Instant,
    format_duration,
    format_optional,
)
from wakeful.core.time.timing_builders import every
from wakeful.core.workflow.answers import NewMessage
from wakeful.core.workflow.definition_json import decode_workflow
from wakeful.core.workflow.rows import Workflow
from wakeful.features.schedules.upcoming import waiting_runs
from wakeful.features.workflows import commands, queries
from wakeful.features.workflows.alarms import PRODUCER
from wakeful.features.workflows.compiled import Compilations
from wakeful.features.workflows.feature import Workflows
from wakeful.features.workflows.handler_action import HandlerSpec
from wakeful.features.workflows.message_rows import Message, Messages
from wakeful.features.workflows.python import Context, Prepare, Produced, Publish, Transient
from wakeful.features.workflows.state_rows import Handlers
from wakeful.features.workflows.upcoming import UpcomingHandlers
from wakeful.ports.action import Action
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.store import Alarm, Tx
from wakeful.ports.workflows import ALARM_WORKFLOW, StoredWorkflows
from worlds import told_laws
from worlds import workflow_laws as laws
from worlds.function_laws import Watched
from worlds.inhabitants import Act, Boot, Surroundings, Touch, draw_times
from worlds.tiling_laws import Line, is_on_grid

NAME: Final = "workflows"
FUNCTIONS: Final = "functions"
"""Some boots have not loaded the functions."""

FLOW: Final = "post"
TOPIC: Final = "mail"
ORDERS: Final = "orders"
PARCELS: Final = "parcels"
TOPICS: Final = (TOPIC, ORDERS, PARCELS)
DELIVER: Final = "deliver"
ARCHIVE: Final = "archive"
PICK: Final = "pick"
READERS: Final = {TOPIC: (DELIVER, ARCHIVE), ORDERS: (PICK,), PARCELS: (PICK,)}
LISTED: Final = 30
LOAD: Final = 120
"""How many parcels come at once: more than a page."""

DOWN_MAX: Final[Duration] = 6 * HOUR
MESSAGE: Final = "message"
LOADED_SHARE: Final = 0.6
PATIENCE: Final[Duration] = 2 * HOUR
"""Some tries with pauses of up to ten minutes, and whatever else is in the way."""

Key: TypeAlias = tuple[str, str, str]
"""Topic, consumer, and id of a message."""


class Post:
    """The workflow of a world, and its outside."""

    name = NAME
    touches: Sequence[Touch] = (
        Touch("messages", MESSAGE, "place"),
        Touch("workflows", ALARM_WORKFLOW, "workflow_id"),
    )

    def __init__(
        self,
        rng: random.Random,
        world: Surroundings,
        *,
        days: float,
        per_day: float,
        pace: Duration,
        lease: Duration,
        elsewhere: random.Random | None = None,
    ) -> None:
        self.rng = rng
        self._elsewhere = elsewhere  # decides which boots load no functions; None: all load them
        self.pace = pace
        self.happened: Counter[str] = Counter()
        self.keys: set[str] = set()
        self.named = 0
        self.sent: dict[tuple[str, str], list[str]] = {}  # payloads by topic and id, oldest first
        self.sending: set[str] = set()  # letters of which a publish is in progress
        self.loads = 0  # loads of parcels that were published
        self.ordered: set[str] = set()  # parcels that were ordered
        self.ended: dict[str, set[str]] = {ARCHIVE: set(), PICK: set()}  # messages whose run reached its `next`
        self.down_until: Counter[str] = Counter()  # handlers that cannot be reached, in true time
        self._patience = PATIENCE + 3 * lease  # until whoever died over it has lost it
        self._world = world
        self._days = days
        self._per_day = per_day
        self._workflow: Workflow | None = None
        self._messages: dict[Key, Message] = {}
        self._open: dict[Key, int] = {}  # what is pending, and since when in true time
        self._alarm: tuple[Alarm, Instant] | None = None
        self._halted_at = 0  # when it last stood still, in true time
        self._boots: list[Boot] = []
        self._line = Line("producer poll")
        self._compilations = Compilations()  # of readers
        self._planned_since: Instant | None = None  # its instants before were never planned

    # -- life ---------------------------------------------------------------------------------------------------------

    def move_in(self, boot: Boot) -> "WorkflowTenant":
        has_functions = self._elsewhere is None or self._elsewhere.random() < LOADED_SHARE
        self._boots = [one for one in self._boots if one.is_alive] + ([boot] if has_functions else [])
        return WorkflowTenant(self, boot, self._world.report, has_functions=has_functions)

    def actions(self, _: Boot, __: Action) -> Mapping[type[Any], Action]:
        return {}

    def draw_acts(self, near: Sequence[int]) -> list[Act]:
        acts = []
        for at in draw_times(self.rng, per_day=self._per_day, days=self._days, near=near):
            (what,) = self.rng.choices(
                ("publish", "decide", "run", "pause", "resume", "load", "order", "down"), (8, 8, 1, 1, 3, 1, 4, 1)
            )
            acts.append(Act(at, NAME, what, self.rng.random()))
        return acts

    def figures(self) -> Mapping[str, int]:
        picked = sum(topic == ORDERS for topic, _, _ in self._messages) - sum(key[0] == ORDERS for key in self._open)
        side_effects = sum(self.happened.values())
        return {"messages": len(self._messages), "side effects": side_effects, "orders picked": picked}

    # -- what happens outside -----------------------------------------------------------------------------------------

    def happens(self, key: str, ids: Sequence[str], boot: Boot, called_at: int) -> None:
        """A side effect happens."""
        self._world.say(lambda: f"{boot.name}: {list(ids)} happen outside")
        self.keys.add(key)
        self.happened.update(ids)
        is_excused = not boot.is_undisturbed(called_at)
        for one in ids:
            self._world.report(list(laws.happens_once(one, self.happened[one], is_excused=is_excused)))

    def sends(self, topic: str, message_id: str, payload: str) -> NewMessage:
        """A message is about to be published."""
        self.sent.setdefault((topic, message_id), []).append(payload)
        return NewMessage(topic, message_id, payload)

    def published(self, sent: NewMessage) -> None:
        """A person was told that it was taken: each consumer of the topic has it."""
        for consumer in READERS[sent.topic]:
            message = self._messages.get((sent.topic, consumer, sent.message_id))
            if message is None:
                self._world.report([f"L7 workflow: {sent.message_id} was published, and {consumer} does not have it"])
                continue
            payloads = self.sent[sent.topic, sent.message_id]
            self._world.report(list(laws.payload_was_updated(message, payloads, sent.payload)))

    def fall_silent(self, draw: float) -> None:
        """A handler cannot be reached for a while."""
        handler = ("poll", DELIVER, ARCHIVE, PICK)[int(draw * 997) % 4]
        self.down_until[handler] = self.now_ms() + int(draw * 7919 % 1 * DOWN_MAX)

    def is_down(self, handler: str) -> bool:
        return self.down_until[handler] > self.now_ms()

    def now_ms(self) -> int:
        """True time."""
        return self._world.loop.now_ms

    # -- what the store says ------------------------------------------------------------------------------------------

    def look(
        self, touched: Mapping[str, frozenset[int]], runs: Mapping[int, Run], *, now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        if MESSAGE not in touched and ALARM_WORKFLOW not in touched:
            return
        tx = self._world.seen_tx
        workflow = tx[StoredWorkflows].by_names([FLOW]).get(FLOW)
        if workflow is None:
            return
        self._workflow = workflow
        alarm = tx.alarms.by_refs(ALARM_WORKFLOW, [workflow.workflow_id]).get(workflow.workflow_id)
        self._alarm = None if alarm is None else (alarm, now)
        for place in sorted(touched.get(MESSAGE, ())):
            for topic in TOPICS:
                for message in tx[Messages].page(workflow.workflow_id, topic, after_place=place - 1, limit=1):
                    yield from self._judge_message(message)
        for key in self._open:
            yield from laws.is_held_by_the_open_run(self._messages[key], workflow)
        yield from laws.is_not_stopped_by_silence(workflow)
        yield from self._judge_producer(tx, workflow, runs, now, pruned_before)
        yield from self._read_next(tx, now)

    def _read_next(self, tx: Tx, now: Instant) -> Iterator[str]:
        """What the workflow and the list of what is upcoming say about its next run."""
        shown = format_optional(queries.get(tx, FLOW, self._compilations, now=now).next_run)
        if shown == format_optional(now):
            return  # messages wait, or a session goes on: what starts at once is not listed
        ahead = UpcomingHandlers(self._compilations)(tx, now=now, until=INSTANT_MAX, limit=1)
        ahead += waiting_runs(tx, now=now, until=INSTANT_MAX, limit=LISTED)
        first = min((item.due_at for item in ahead if item.slug == f"workflow:{FLOW}"), default=None)
        yield from told_laws.next_start_is_the_first(f"workflow {FLOW}", shown, format_optional(first))

    def _judge_producer(
        self, tx: Tx, workflow: Workflow, runs: Mapping[int, Run], now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        """Its rows tile time, also if the clock goes back: what was voided then is gone, and is looked for again."""
        ahead = self._line.ahead(now)
        there = tx.runs.lock(ahead) if ahead else {}
        for run_id in ahead:
            if run_id not in there:
                self._line.forget(run_id)
        (producer,) = decode_workflow(workflow.definition).producers
        rows = [run for run in runs.values() if run.kind == PRODUCER and run.schedule_id == workflow.owner_id]
        for row in rows:
            if is_on_grid(producer.timing, row):
                yield from self._line.note(row)
        if rows and self._planned_since is None:
            self._planned_since = min(row.planned_at for row in rows)
        if self._planned_since is None:
            return
        handler = next(
            one for one in tx[Handlers].of([workflow.workflow_id])[workflow.workflow_id] if one.name == producer.name
        )
        is_busy = workflow.open_run_id is not None and workflow.open_run_id == handler.last_run_id
        if handler.next_at is not None and not is_busy:
            # When the clock goes back, what lies before the moment in which that was noticed is taken as decided.
            self._planned_since = min(self._planned_since, handler.next_at - 1)
            since = max(self._planned_since, pruned_before)
            yield from self._line.is_covered(producer.timing, through=handler.next_at - 1, since=since)

    def _judge_message(self, after: Message) -> Iterator[str]:
        key = (after.topic, after.consumer, after.message_id)
        before = self._messages.get(key)
        self._messages[key] = after
        yield from laws.moves_by_the_table(before, after)
        sent = self.sent.get((after.topic, after.message_id), [])
        yield from laws.payload_is_the_last_published(before, after, sent)
        yield from laws.is_read_by(after, READERS[after.topic])
        times = self.happened[after.message_id]
        if after.consumer != DELIVER:
            times = int(after.message_id in self.ended[after.consumer])
        yield from laws.consumed_means_done(before, after, times)
        if after.status in ("consumed", "skipped"):
            self._open.pop(key, None)
        elif after.topic != PARCELS:  # one that is never ordered waits for ever, and may
            self._open.setdefault(key, self.now_ms())

    def ticked(self, *, now: Instant, is_asleep: bool, ahead_max: Duration) -> Iterator[str]:
        if not is_asleep or self._workflow is None:
            return
        if self._alarm is not None:
            yield from laws.is_not_silent(*self._alarm, now=now)
        if self._workflow.error is not None or self._workflow.status != "active":
            self._halted_at = self.now_ms()  # it waits for a person, and may
        calm = [max(boot.began_at, boot.disturbed_at) for boot in self._boots if boot.is_alive and not boot.is_still]
        if not calm:
            return
        since = max(min(calm), self._halted_at, self._world.stepped_at)
        for key, open_since in self._open.items():
            waits_for = self.now_ms() - max(since, open_since, self.down_until[key[1]])
            yield from laws.is_looked_at_in_the_end(self._messages[key], waits_for, self._patience)

    def last_look(self) -> Iterator[str]:
        workflow = self._workflow
        if workflow is None:
            return
        tx: Tx = self._world.seen_tx
        ids = [(topic, message_id) for topic, _, message_id in self._messages]
        there = tx[Messages].by_ids(workflow.workflow_id, ids)
        for key in self._messages:
            topic, consumer, message_id = key
            found = there.get((topic, message_id), {}).get(consumer)
            is_pruned = found is None and key not in self._open
            if found != self._messages[key] and not is_pruned:
                yield f"L7 workflow: message {message_id} of {consumer} changed unnoticed"


class WorkflowTenant:
    """The real workflows on one boot, and handlers that do things outside."""

    def __init__(self, post: Post, boot: Boot, report: Callable[[Sequence[str]], None], *, has_functions: bool) -> None:
        self._post = post
        self._boot = boot
        self._report = report
        self._has_functions = has_functions
        self._workflows = Workflows()
        self._context: FeatureContext
        if has_functions:
            self._declare()

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        self._context = context
        hooks = await plug_workflows(self._workflows, context)
        watched = Watched(hooks.actions[HandlerSpec], self._boot, lambda: self._has_functions, self._report)
        return hooks._replace(actions={**hooks.actions, HandlerSpec: watched})

    async def act(self, act: Act) -> None:
        post = self._post
        match act.what:
            case "publish":
                # Whoever got no answer asks again under the same id. Two at the same time would have no order.
                again = act.draw < 0.2 and post.named > 0 and f"given-{post.named}" not in post.sending
                post.named += 0 if again else 1
                given = post.sends(TOPIC, f"given-{post.named}", f'"given at {post.now_ms()}"')
                post.sending.add(given.message_id)
                await self._publish([given])
                post.sending.discard(given.message_id)
                post.published(given)
            case "load":
                first = post.loads * LOAD
                load = [post.sends(PARCELS, f"parcel-{first + n}", str(n)) for n in range(LOAD)]
                await self._publish(load)
                post.published(load[0])
                post.loads += 1
            case "order":
                left = [n for n in range(post.loads * LOAD) if f"parcel-{n}" not in post.ordered]
                if left:
                    parcel = f"parcel-{left[int(act.draw * len(left))]}"
                    post.ordered.add(parcel)
                    order = post.sends(ORDERS, parcel, "1")
                    await self._publish([order])
                    post.published(order)
            case "down":
                post.fall_silent(act.draw)
            case "decide":
                await self._decide(act.draw)
            case "run":
                await self._command(partial(commands.run_now, name=FLOW))
            case "pause":
                await self._command(partial(commands.pause, name=FLOW))
            case "resume":
                await self._resume()

    async def _decide(self, draw: float) -> None:
        """A person looks outside, and says what became of what nobody knows."""
        now, compilations = self._context.clock.read().now, self._workflows.compilations
        view = await self._context.store.read(lambda tx: queries.get(tx, FLOW, compilations, now=now))
        waiting = view.open_run
        if view.error is None:
            return
        if waiting is None or waiting.awaits != "uncertain":
            await self._resume()
            return
        is_done = any(f"-{waiting.run_id}-" in key for key in self._post.keys)
        choice = "skip" if is_done else ("retry", "didNotHappen")[int(draw * 997) % 2]
        resolve = partial(commands.resolve, name=FLOW, run_id=waiting.run_id, choice=choice, compilations=compilations)
        await self._command(resolve)

    async def _publish(self, messages: Sequence[NewMessage]) -> None:
        await self._command(partial(commands.publish_now, name=FLOW, messages=messages))

    async def _resume(self) -> None:
        tried = await self._workflows.try_out(FLOW)
        compilations = self._workflows.compilations
        await self._command(partial(commands.resume, name=FLOW, compilations=compilations, tried_version=tried))

    async def _command(self, command: Callable[..., Any]) -> None:
        now = self._context.clock.read().now
        await self._context.store.write(lambda tx: command(tx, now=now))
        self._context.ring_bell()

    def _declare(self) -> None:
        post, flow = self._post, self._workflows.declare(FLOW)

        async def poll(ctx: Context) -> Produced:
            if ctx.dry_run:
                return Produced()
            await self._take_time(ctx.handler)
            n = (ctx.state or {"n": 0})["n"] + 1
            found = post.sends(TOPIC, f"found-{n}", str(n))
            return Produced([Publish(TOPIC, found.message_id, n)], state={"n": n})

        async def prepare(ctx: Context) -> Prepare:
            if ctx.dry_run:
                return Prepare()
            await self._take_time(ctx.handler)
            shown = ctx.messages[TOPIC]
            taken = [one.id for one in shown[: post.rng.randrange(1, 3)]]
            soon = "2020-01-01T00:00:00Z" if len(shown) > len(taken) else None  # as soon as may be
            return Prepare({TOPIC: taken} if taken else {}, data=taken, wake_at=soon)

        async def match(ctx: Context) -> Prepare:
            if ctx.dry_run:
                return Prepare()
            await self._take_time(ctx.handler)
            wanted = {one.id for one in ctx.messages[ORDERS]}
            found = [one.id for one in ctx.messages[PARCELS] if one.id in wanted]
            return Prepare({ORDERS: found, PARCELS: found}, data=found) if found else Prepare()

        async def send(ctx: Context) -> None:
            called_at = post.now_ms()
            await self._take_time(ctx.handler)
            post.happens(ctx.idempotency_key, ctx.prepared["data"], self._boot, called_at)
            await self._take_time(trouble=ConnectionResetError("it broke off"))

        async def following(ctx: Context) -> Produced:
            await self._take_time()
            if ctx.handler in post.ended:
                post.ended[ctx.handler].update(ctx.prepared.get("data") or ())
            return Produced(state={"last": ctx.prepared.get("data")})

        period = format_duration(2 * post.pace)
        flow.producer(every(period), publishes=[TOPIC], name="poll", timeout="20s")(poll)
        deliver = flow.consumer(subscribe=[TOPIC], name=DELIVER, timeout="20s")(prepare)
        deliver.mutate(send)
        archive = flow.consumer(subscribe=[TOPIC], name=ARCHIVE, timeout="20s")(prepare)
        pick = flow.consumer(subscribe=[ORDERS, PARCELS], name=PICK, timeout="20s")(match)
        for consumer in (deliver, archive, pick):
            consumer.next(following)

    async def _take_time(self, handler: str = "", *, trouble: Exception | None = None) -> None:
        if self._post.is_down(handler):
            raise ConnectionRefusedError(laws.SILENT)
        chance = self._post.rng.random()
        if chance < 0.06:
            raise trouble or Transient("not now")
        if chance < 0.08:
            await self._boot.clock.sleep(MINUTE)  # longer than it may
        if chance < 0.6:
            await self._boot.clock.sleep(self._post.rng.randrange(1, 3 * SECOND))
