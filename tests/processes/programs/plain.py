"""A plain script over the blocking API: no async anywhere."""

import threading

from wakeful import NotFound, every, manual
from wakeful.sync import Wakeful

app = Wakeful("wakeful.db", every_min="100ms")
called = threading.Event()


@app.job(every("200ms"))
def beat(fire):
    called.set()
    return f"hello from {threading.current_thread().name != 'MainThread'}"


with app:
    assert called.wait(120)
    assert app._is_ticking
    assert app.get("beat").status in ("idle", "running")
    slug = app.add(None, manual(), command=["sh", "-c", "echo $WAKEFUL_SLUG"])
    run = app.run_now(slug, wait=True)
    assert (run.outcome, run.output) == ("succeeded", f"{slug}\n"), run
    app.pause("beat")
    app.resume("beat")
    app.update("beat", timeout="5s")
    assert app.stats("beat").counts["succeeded"] >= 1
    assert len(app.next_times("beat", 3)) == 3
    assert len(app.runs("beat", limit=1)) == 1
    app.remove(slug)
    try:
        app.get(slug)
    except NotFound as error:
        print(error)
    print(sorted(view.slug for view in app.list()))
