"""A program that schedules its own work: one SQLite file next to it, no server.

The report is written every two hours and once now. A crash may cost a second attempt at the same instant; it has the
same idempotency key, so the file shows whether the report was already written.
"""

import asyncio
import sys
from pathlib import Path

from wakeful import Wakeful, every

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
app = Wakeful(FOLDER / "report.db")


@app.job(every("2h"), timeout="10m")
def report(fire):  # a plain function runs in a thread
    file = FOLDER / f"report-{fire.idempotency_key.replace('/', '-')}.txt"
    if file.exists():
        return
    file.write_text(f"planned for {fire.planned_at}, attempt {fire.attempt}\n")
    print(f"wrote {file.name}")


async def main():
    async with app:
        run = await app.run_now("report", wait=True)
        print(f"{run.slug} {run.outcome}")
        print((await app.why("report")).sentence)
        for at in await app.next_times("report"):
            print(f"next: {at}")


if __name__ == "__main__":
    asyncio.run(main())  # a program that does nothing else calls app.run() instead
