"""The dispatch action: hands a run over to existing workers, and finds out how it ended.

The first attempt's task id is the run's idempotency key, a later attempt's has the number of the attempt appended:
workers remember revoked ids, and a late result of an earlier attempt must not count as a later attempt's. All of them
carry the key in a header. The result backend proves the end, or the receipt that the task itself posts.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Any, Final

from wakeful.core.run.results import Done, Failed, Lost, Result, Unconfirmed
from wakeful.core.run.runs import RungName
from wakeful.core.run.traces import trace_header
from wakeful.core.schedule.actions import OUTPUT_MAX, Address, Celery, Dispatch, EnvName, url_fault
from wakeful.core.time.instants import HOUR, SECOND, Duration, format_instant
from wakeful.integrations.actions.cancellation import run_to_end
from wakeful.integrations.actions.celery_fleet import PENDING, Fleet, Progress, Uncertain, Unsent, text_of
from wakeful.integrations.actions.receipts import NO_LISTENER, Inbox, Receipts
from wakeful.integrations.actions.spec import expect
from wakeful.integrations.system.threads import Threads, call_on
from wakeful.ports.action import SHUTDOWN, FencedOff, Fire, Ladder, StillRunning, StillWorking, Told
from wakeful.ports.clock import Clock

WORKER_LOST: Final = "worker"
"""The reason of a run whose worker died, or whose result was lost."""
REVOKE_WITHIN: Final[Duration] = 5 * SECOND
"""How long a revoked task may take to end before it counts as still running."""
WATCH_MAX: Final[Duration] = HOUR
"""How long a task that could not be stopped is watched."""
MISSING: Final = "needs Celery; install it with: pip install 'wakeful[celery]'"


class DispatchAction:
    """Performs `Dispatch`. Celery is imported when the first task is sent."""

    is_local = False

    def __init__(self, clock: Clock, receipts: Receipts | None = None, env: Mapping[str, str] = os.environ) -> None:
        self._clock = clock
        self._receipts = receipts
        self._env = env
        self._threads = Threads()
        self._fleets: dict[tuple[str, str | None], Fleet] = {}
        self._watching: set[asyncio.Task[None]] = set()

    def proves(self, spec: Any) -> RungName:
        celery = expect(spec, Dispatch).celery
        return "accepted" if celery.backend is None and not celery.receipt else "finished"

    def check(self, spec: Any) -> str | None:
        celery = expect(spec, Dispatch).celery
        if not _is_installed():
            return MISSING
        if celery.receipt and self._receipts is None:
            return NO_LISTENER
        return self._fault("broker", celery.broker) or self._fault("backend", celery.backend)

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        celery = expect(spec, Dispatch).celery
        wrong = self.check(spec)
        if wrong is not None:
            return Failed(wrong, permanent=True)
        if not celery.receipt or self._receipts is None:
            return await self._dispatch(celery, fire, ladder, None)
        with self._receipts.expecting(fire.run_id) as inbox:
            if inbox.receipt is not None and inbox.receipt.is_success:  # an earlier attempt did finish
                return inbox.receipt.result()
            return await self._dispatch(celery, fire, ladder, inbox)

    async def ask(self, spec: Any, fire: Fire) -> Told:
        """After a crash: the result of the interrupted attempt. `fire` is the attempt that would follow it."""
        celery = expect(spec, Dispatch).celery
        if celery.backend is None or self.check(spec) is not None:
            return None
        fleet = await self._fleet(celery)
        seen = await self._threads.run(lambda: fleet.look(task_id_of(fire, fire.attempt - 1)))
        if seen.state == PENDING:
            return None  # it was not recorded, or its record is gone
        return _result(seen) if seen.is_final else StillWorking()

    async def close(self) -> None:
        for task in list(self._watching):
            task.cancel()
        if self._watching:
            await asyncio.wait(self._watching)
        for fleet in self._fleets.values():
            await self._threads.run(fleet.close)
        self._threads.close()

    async def _dispatch(self, celery: Celery, fire: Fire, ladder: Ladder, inbox: Inbox | None) -> Result:
        fleet = await self._fleet(celery)
        task_id = task_id_of(fire, fire.attempt)
        earlier = await self._earlier_success(fleet, fire)
        if earlier is not None:
            return earlier
        await ladder.climb("sent")
        try:
            await self._send(fleet, task_id, celery, fire)
            await ladder.climb("accepted")
            if not fleet.has_backend and inbox is None:
                return Done("accepted", output=f"task {task_id}")
            return await self._follow(fleet, task_id, ladder, inbox)
        except Unsent as error:
            return Failed(str(error), rung="claimed")
        except Uncertain as error:
            return Lost(WORKER_LOST, str(error))
        except asyncio.CancelledError as cancelled:
            if fleet.has_backend and SHUTDOWN in cancelled.args:
                raise FencedOff("the task continues; the next node asks for its result") from None
            await run_to_end(self._end(fleet, task_id))
            raise

    async def _send(self, fleet: Fleet, task_id: str, celery: Celery, fire: Fire) -> None:
        """Send the task, and wait for the thread even if cancelled: a task that was sent has to be revoked."""
        await run_to_end(_awaited(self._threads.run(lambda: fleet.send(task_id, celery, _headers(fire)))))
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError

    async def _follow(self, fleet: Fleet, task_id: str, ladder: Ladder, inbox: Inbox | None) -> Result:
        """Wait for the end of the task, by its result or its receipt."""
        news = _News(fleet, task_id)
        try:
            while True:
                seen = await news.next_or(inbox)
                if seen is None and inbox is not None and inbox.receipt is not None:
                    if inbox.receipt.is_final:
                        return inbox.receipt.result()
                    await ladder.climb(inbox.receipt.rung)
                elif seen is not None and seen.is_final:
                    return _result(seen)
                elif seen is not None and seen.state in ("STARTED", "RETRY"):
                    await ladder.climb("started")
        finally:
            news.close()

    async def _end(self, fleet: Fleet, task_id: str) -> None:
        """Revoke the task. Returns if it is proven to have ended; otherwise raises `StillRunning`, and watches on."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        watching = asyncio.create_task(self._see_end(fleet, task_id, ended))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)
        try:
            await self._threads.run(lambda: fleet.revoke(task_id))
            message = "it was revoked, and no worker has confirmed that it stopped"
        except Exception as error:
            message = f"it could not be revoked: {type(error).__name__}"
        over = asyncio.Event()
        ended.add_done_callback(lambda _: over.set())
        await self._clock.wait(over, REVOKE_WITHIN)
        if not over.is_set():
            raise StillRunning(message, ended)

    async def _see_end(self, fleet: Fleet, task_id: str, ended: "asyncio.Future[None]") -> None:
        """Resolve the future when the task has ended; cancel it if that can no longer be seen."""
        news = _News(fleet, task_id)
        until = self._clock.read().monotonic + WATCH_MAX
        try:
            while fleet.has_backend and self._clock.read().monotonic < until:
                if (seen := await news.next_or(None)) is not None and seen.is_final:
                    ended.set_result(None)
                    return
        finally:
            news.close()
            if not ended.done():
                ended.cancel()

    async def _earlier_success(self, fleet: Fleet, fire: Fire) -> Result | None:
        """The result of an earlier attempt that was given up and has succeeded since."""
        if fire.attempt == 1 or not fleet.has_backend:
            return None
        ids = [task_id_of(fire, attempt) for attempt in range(1, fire.attempt)][-3:]
        try:
            states = await self._threads.run(lambda: [fleet.look(task_id) for task_id in ids])
        except Exception as error:
            return Failed(f"the result backend cannot be read: {type(error).__name__}", rung="claimed")
        return next((_result(seen) for seen in states if seen.state == "SUCCESS"), None)

    async def _fleet(self, celery: Celery) -> Fleet:
        key = self._value(celery.broker), None if celery.backend is None else self._value(celery.backend)
        if key not in self._fleets:
            made = await self._threads.run(lambda: Fleet(*key))
            self._fleets.setdefault(key, made)
        return self._fleets[key]

    def _value(self, address: Address) -> str:
        return self._env[address.name] if isinstance(address, EnvName) else address

    def _fault(self, name: str, address: Address | None) -> str | None:
        if not isinstance(address, EnvName):
            return None
        value = self._env.get(address.name)
        if not value:
            return f"{name}: the variable {address.name} is not set; set it in the daemon's environment"
        fault = None if "password" in (url_fault(value) or "") else url_fault(value)
        return None if fault is None else f"{name}: the variable {address.name} {fault}"


class _News:
    """One task's changes, on the event loop."""

    def __init__(self, fleet: Fleet, task_id: str) -> None:
        self._fleet, self._task_id = fleet, task_id
        self._queue: asyncio.Queue[Progress] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        if fleet.has_backend:
            fleet.watch(task_id, lambda seen: self._report(loop, seen))

    def _report(self, loop: asyncio.AbstractEventLoop, seen: Progress) -> None:
        call_on(loop, lambda: self._queue.put_nowait(seen))

    async def next_or(self, inbox: Inbox | None) -> Progress | None:
        """The next change; None if a receipt arrived first."""
        if inbox is None:
            return await self._queue.get()
        waits = [asyncio.ensure_future(self._queue.get()), asyncio.ensure_future(inbox.bell.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if inbox.bell.is_set():
                inbox.bell.clear()
                return None
            return waits[0].result()  # type: ignore[return-value]
        finally:
            for wait in waits:
                wait.cancel()

    def close(self) -> None:
        self._fleet.forget(self._task_id)


def task_id_of(fire: Fire, attempt: int) -> str:
    return fire.idempotency_key if attempt <= 1 else f"{fire.idempotency_key}.{attempt}"


def _headers(fire: Fire) -> dict[str, str]:
    headers = {
        "wakeful_key": fire.idempotency_key,
        "wakeful_run": str(fire.run_id),
        "wakeful_slug": fire.slug,
        "wakeful_attempt": str(fire.attempt),
        "wakeful_planned_at": format_instant(fire.planned_at),
        **trace_header(fire.traceparent),
    }
    return headers if fire.receipt_url is None else {**headers, "wakeful_receipt_url": fire.receipt_url}


def _result(seen: Progress) -> Result:
    match seen.state:
        case "SUCCESS":
            return Done(output=text_of(seen.result, OUTPUT_MAX))
        case "FAILURE":
            return Failed(_error(seen.result), rung="finished", output=seen.traceback)
        case "REVOKED" | "REJECTED":
            return Failed(f"the task was {seen.state.lower()}", rung="accepted")
        case "IGNORED":
            return Unconfirmed("the task ended without a result (it raised Ignore)")
        case _:
            return Lost(WORKER_LOST, f"the result is unknown: {seen.trouble}")


def _error(result: Any) -> str:
    if isinstance(result, BaseException):
        return f"{type(result).__name__}: {result}"
    if isinstance(result, dict) and "exc_type" in result:
        message = result.get("exc_message")
        said = " ".join(map(str, message)) if isinstance(message, list | tuple) else str(message)
        return f"{result['exc_type']}: {said}"
    return str(result)


def _is_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("celery") is not None


async def _awaited(future: "asyncio.Future[Any]") -> Any:
    return await future
