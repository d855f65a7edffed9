"""A workflow: a producer finds mail, a consumer waits for three letters and sends one digest for them.

Nothing is lost if the process dies at any point, and the digest is not sent twice: `mutate` is the only phase with a
side effect, and it gets an idempotency key.
"""

import asyncio
import sys
from pathlib import Path

from wakeful import Prepare, Produced, Publish, Wakeful, every

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
LETTERS = ("an invoice", "an invitation", "a reminder")

app = Wakeful(FOLDER / "mail.db")
mail = app.workflow("mail")


@mail.producer(every("5m"), publishes=["letters"])
async def poll(ctx):
    """Read what is new in the mailbox since the last time; here it has three letters."""
    seen = (ctx.state or {}).get("seen", 0)
    new = [Publish("letters", str(number), {"subject": LETTERS[number]}) for number in range(seen, len(LETTERS))]
    return Produced(new, state={"seen": len(LETTERS)})


@mail.consumer(subscribe=["letters"])
async def digest(ctx):
    """Reserve three letters, or nothing until there are three."""
    letters = ctx.messages.get("letters", [])[:3]
    if len(letters) < 3:
        return Prepare({})
    return Prepare(
        {"letters": [letter.id for letter in letters]}, data=[letter.payload["subject"] for letter in letters]
    )


@digest.mutate
async def send(ctx):
    """The side effect. The file stands in for a mail server that supports idempotency keys."""
    (FOLDER / "digest.txt").write_text(f"{ctx.idempotency_key}: {', '.join(ctx.prepared['data'])}\n")


async def main():
    async with app:
        async with asyncio.timeout(120):
            while not (FOLDER / "digest.txt").exists():
                await asyncio.sleep(0.05)
        print((FOLDER / "digest.txt").read_text(), end="")


if __name__ == "__main__":
    asyncio.run(main())
