"""A program with the workflow `inbox`, as a process: `program.py STORE FILE`. Each message is one line in FILE.

It ticks, or waits for the clock, until SIGTERM.
"""

import os
import sys

from wakeful import Context, Prepare, Wakeful

store, file = sys.argv[1:3]
app = Wakeful(store, timezone="UTC", name="program", shutdown_grace="5s")
inbox = app.workflow("inbox")


@inbox.consumer(subscribe=["mail"])
async def digest(ctx: Context) -> Prepare:
    ids = [one.id for one in ctx.messages["mail"][:1]]
    return Prepare({"mail": ids} if ids else {}, data=ids)


@digest.mutate
async def send(ctx: Context) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{ctx.run_id} {' '.join(ctx.prepared['data'])}\n".encode())
    finally:
        os.close(handle)


app.run()
