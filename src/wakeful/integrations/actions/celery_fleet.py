"""Celery workers behind one broker: sends tasks, watches them, revokes them. All of it blocks, and runs in threads.

The state of a task is in the result backend. Before a task is sent, we store the state `SENT` under its id, so that a
result that was lost (the backend was emptied, or it expired) is not mistaken for a task that no worker has begun:
without a record the state is `PENDING`. A task that is `STARTED` names its worker, which is asked from time to time
whether it still works on it; a worker that died never says so itself. Its silence proves that only if it would answer
while it works. That depends on its pool, so all workers are asked for theirs as soon as a task is watched, and
regularly after that: a worker may die before it is asked about its first task.
"""

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from wakeful.core.schedule.actions import Celery

log = logging.getLogger("wakeful.dispatch")

SENT: Final = "SENT"
PENDING: Final = "PENDING"
READY: Final = frozenset({"SUCCESS", "FAILURE", "REVOKED", "REJECTED", "IGNORED"})
CONNECT_WITHIN: Final = 5.0
POLL_MIN: Final = 0.1
POLL_MAX: Final = 2.0
ASK_EVERY: Final = 5.0
"""How often the worker of a started task is asked whether it still works on it."""
ASK_WITHIN: Final = 1.5
LEARN_EVERY: Final = 30.0
"""How often all workers are asked for their pool."""
SILENT_MAX: Final = 3
"""A worker that answers while it works, and then misses this many requests in a row, is gone."""
SOLO: Final = "celery.concurrency.solo:TaskPool"
"""A worker with this pool does not answer while it works."""
DENIED_MAX: Final = 2
"""A worker that denies this many times in a row that it works on a started task has lost it."""


class Unsent(Exception):
    """The task did not reach the broker: nothing was sent."""


class Uncertain(Exception):
    """The connection broke while the task was being sent: it may have arrived."""


class Progress(NamedTuple):
    """What is known about a task."""

    state: str
    result: Any = None
    traceback: str | None = None
    worker: str | None = None
    trouble: str | None = None  # why nothing more will be known: its worker died, or its record is gone

    @property
    def is_final(self) -> bool:
        return self.state in READY or self.trouble is not None


Listener = Callable[[Progress], None]


class _Watched:
    """A task that is being watched."""

    __slots__ = ("asked_at", "denied", "listener", "state", "was_recorded")

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.state = ""
        self.was_recorded = False
        self.asked_at = 0.0
        self.denied = 0


class Fleet:
    """The workers behind one broker and backend. Connections are made when needed, and kept."""

    def __init__(self, broker: str, backend: str | None) -> None:
        from celery import Celery as CeleryApp  # the extra `wakeful[celery]`

        self._secrets = [part for url in (broker, backend or "") if (part := urlsplit(url).password)]
        self.has_backend = backend is not None
        self._app = CeleryApp("wakeful", broker=broker, backend=backend, set_as_current=False)
        self._app.conf.update(
            accept_content=["json"],
            result_accept_content=["json"],
            broker_connection_timeout=CONNECT_WITHIN,
            broker_connection_retry=False,
            broker_transport_options={
                "socket_connect_timeout": CONNECT_WITHIN,
                "socket_timeout": 2 * CONNECT_WITHIN,
                "confirm_publish": True,
                "max_retries": 1,  # else a control command tries for ever to reach the broker
                "interval_start": 0,
            },
            redis_socket_connect_timeout=CONNECT_WITHIN,
            redis_socket_timeout=2 * CONNECT_WITHIN,
            redis_retry_on_timeout=False,
            result_backend_always_retry=False,
            result_backend_transport_options={"retry_policy": {"max_retries": 0, "timeout": CONNECT_WITHIN}},
            worker_hijack_root_logger=False,
        )
        self._watched: dict[str, _Watched] = {}
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._thread: threading.Thread | None = None
        self._learner: threading.Thread | None = None
        self._newcomer = threading.Event()  # a worker whose pool is unknown has answered
        self._pools: dict[str, str] = {}  # by worker
        self._silent: dict[str, int] = {}

    # --- sending and asking ------------------------------------------------------------------------------------------

    def send(self, task_id: str, spec: Celery, headers: dict[str, str]) -> None:
        """Send a task; returns when the broker has it. Raises `Unsent` or `Uncertain`."""
        if self.has_backend:
            self._record(task_id)
        with contextlib.ExitStack() as stack:
            try:
                producer = stack.enter_context(self._app.producer_pool.acquire(block=True, timeout=CONNECT_WITHIN))
                producer.connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_WITHIN)
            except Exception as error:
                raise Unsent(f"the broker cannot be reached: {self._plain(error)}") from error
            try:
                self._app.send_task(
                    spec.task,
                    args=list(spec.args),
                    kwargs=dict(spec.kwargs),
                    task_id=task_id,
                    queue=spec.queue,
                    headers=headers,
                    producer=producer,
                    retry=False,
                    add_to_parent=False,
                    ignore_result=not self.has_backend,
                )
            except (TypeError, ValueError) as error:
                raise Unsent(f"the task cannot be encoded: {self._plain(error)}") from error
            except Exception as error:
                producer.connection.close()  # a broken connection must not be used again
                raise Uncertain(f"the connection to the broker broke: {self._plain(error)}") from error

    def look(self, task_id: str) -> Progress:
        """The backend's current state of a task. Raises whatever the backend raises."""
        meta = self._app.backend._get_task_meta_for(task_id)
        state, result = str(meta.get("status") or PENDING), meta.get("result")
        worker = result.get("hostname") if state == "STARTED" and isinstance(result, dict) else None
        trace = meta.get("traceback")
        return Progress(state, result, None if trace is None else self._plain(trace), worker)

    def revoke(self, task_id: str) -> None:
        """Ask all workers to end the task, or not to begin it."""
        self._app.control.revoke(task_id, terminate=True, signal="SIGTERM")

    def _record(self, task_id: str) -> None:
        try:
            self._app.backend.store_result(task_id, None, SENT)
        except Exception as error:
            raise Unsent(f"the result backend cannot be reached, so nothing was sent: {self._plain(error)}") from error

    def _plain(self, error: object) -> str:
        text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    # --- watching ----------------------------------------------------------------------------------------------------

    def watch(self, task_id: str, listener: Listener) -> None:
        """Report each change of a task, until one is final or `forget` is called. Listeners are called in a thread."""
        with self._lock:
            self._watched[task_id] = _Watched(listener)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch_all, name="wakeful-celery", daemon=True)
                self._thread.start()
            if self._learner is None or not self._learner.is_alive():
                self._learner = threading.Thread(target=self._learn_pools, name="wakeful-celery-pools", daemon=True)
                self._learner.start()
        self._news.set()

    def forget(self, task_id: str) -> None:
        with self._lock:
            self._watched.pop(task_id, None)

    def close(self) -> None:
        with self._lock:
            self._watched.clear()
        self._news.set()
        self._newcomer.set()
        with contextlib.suppress(Exception):
            self._app.close()

    def _watch_all(self) -> None:
        pause = POLL_MIN
        while watched := self._snapshot():
            is_change = False
            for task_id, task in watched.items():
                try:
                    is_change = self._look_at(task_id, task) or is_change
                except Exception as error:  # the backend is unreachable; the run's timeout limits how long
                    log.warning("the result of task %s cannot be read: %s", task_id, self._plain(error))
                    break
            self._ask_workers(self._snapshot())
            pause = POLL_MIN if is_change else min(2 * pause, POLL_MAX)
            if self._news.wait(pause):
                self._news.clear()
                pause = POLL_MIN

    def _snapshot(self) -> dict[str, _Watched]:
        """The watched tasks; without any, the thread ends, and the next `watch` starts another."""
        with self._lock:
            if not self._watched:
                self._thread = None
            return dict(self._watched)

    def _look_at(self, task_id: str, task: _Watched) -> bool:
        seen = self.look(task_id)
        if seen.state == PENDING and task.was_recorded:
            return self._end(task_id, task, seen._replace(trouble="its record in the result backend is gone"))
        task.was_recorded = seen.state != PENDING
        if seen.is_final:
            return self._end(task_id, task, seen)
        if seen.state == task.state:
            return False
        task.state = seen.state
        task.listener(seen)
        return True

    def _end(self, task_id: str, task: _Watched, seen: Progress) -> bool:
        self.forget(task_id)
        task.listener(seen)
        return True

    def _learn_pools(self) -> None:
        """Ask all workers for their pool, as long as a task is watched. This has a thread of its own: how many workers
        there are is unknown, so it always takes as long as they may answer."""
        while self._watched:
            try:
                answers = self._app.control.inspect(timeout=ASK_WITHIN).stats() or {}
            except Exception as error:
                log.warning("the workers cannot be asked: %s", self._plain(error))
                answers = {}
            for worker, stats in answers.items():
                self._pools[worker] = str(stats.get("pool", {}).get("implementation", SOLO))
            self._newcomer.wait(LEARN_EVERY)
            self._newcomer.clear()

    def _ask_workers(self, watched: dict[str, _Watched]) -> None:
        """Ask the workers of started tasks whether they still work on them."""
        now = time.monotonic()
        due = {
            key: task for key, task in watched.items() if task.state == "STARTED" and now >= task.asked_at + ASK_EVERY
        }
        if not due:
            return
        try:
            places = {key: self.look(key).worker for key in due}
            workers = {worker for worker in places.values() if worker is not None}
            answers = self._app.control.inspect(destination=sorted(workers), timeout=ASK_WITHIN).active() or {}
        except Exception as error:
            log.warning("the workers cannot be asked: %s", self._plain(error))
            return
        if answers.keys() - self._pools.keys():
            self._newcomer.set()
        for worker in workers:
            self._silent[worker] = 0 if worker in answers else self._silent.get(worker, 0) + 1
        for task_id, task in due.items():
            task.asked_at = now
            if (place := places[task_id]) is not None:
                self._judge(task_id, task, place, answers.get(place))

    def _judge(self, task_id: str, watched: _Watched, worker: str, active: Iterable[Any] | None) -> None:
        if active is not None:
            watched.denied = 0 if any(task.get("id") == task_id for task in active) else watched.denied + 1
        is_gone = active is None and self._silent[worker] >= SILENT_MAX and self._pools.get(worker, SOLO) != SOLO
        if not is_gone and watched.denied < DENIED_MAX:
            return
        seen = self.look(task_id)  # it may have ended meanwhile
        if seen.state == "STARTED" and seen.worker == worker:
            problem = "no longer responds" if is_gone else "no longer works on it"
            seen = seen._replace(trouble=f"its worker {worker} {problem}")
        if seen.is_final:
            self._end(task_id, watched, seen)


def text_of(result: Any, limit: int) -> str | None:
    """A task's result as the output of a run: text as it is, anything else as JSON."""
    if result is None:
        return None
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[:limit]}…"
