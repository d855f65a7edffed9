"""The tasks of the workers in the tests: `celery -A fleet_tasks worker`. The broker is in `FLEET_BROKER`."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from celery import Celery

app = Celery("fleet", broker=os.environ["FLEET_BROKER"], backend=os.environ["FLEET_BROKER"])
app.conf.update(
    task_track_started=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": 10},  # what a dead worker had only received goes to another one
    worker_cancel_long_running_tasks_on_connection_loss=False,
)


def _note(task: Any, word: str) -> None:
    """One appended line: word, key, attempt, task id."""
    headers = task.request.headers or {}
    line = f"{word} {headers.get('wakeful_key')} {headers.get('wakeful_attempt')} {task.request.id}\n"
    with Path(os.environ["FLEET_LOG"]).open("a") as file:
        file.write(line)


@app.task(bind=True, name="fleet.work")
def work(self: Any, seconds: float = 0.0, fail: str | None = None, dies_at: str | None = None) -> dict[str, Any]:
    """Take a moment, then succeed or fail; or take the whole worker along, in the first attempt."""
    _note(self, "begin")
    _die(self, "begin", dies_at)
    time.sleep(seconds)
    if fail is not None:
        raise ValueError(fail)
    _note(self, "end")
    _die(self, "end", dies_at)
    return {"took": seconds}


def _die(task: Any, moment: str, dies_at: str | None) -> None:
    if moment == dies_at and task.request.headers["wakeful_attempt"] == "1":
        os.killpg(0, signal.SIGKILL)


@app.task(bind=True, name="fleet.receipted", ignore_result=True)
def receipted(self: Any) -> None:
    """Report the end by the receipt alone."""
    import json
    from urllib.request import Request, urlopen

    _note(self, "begin")
    url = self.request.headers["wakeful_receipt_url"]
    body = json.dumps({"rung": "finished", "text": "done by receipt"}).encode()
    urlopen(Request(url, body, {"Content-Type": "application/json"}), timeout=10).close()
    _note(self, "end")
