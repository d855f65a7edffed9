"""Whether Wakeful can open a store of this kind; exits with 3 and one line on standard error if not."""

import argparse
import asyncio
import sys

from bench.ours.setup import make_app

NOT_AVAILABLE = 3


async def probe(store: str) -> None:
    async with make_app(store, lambda: None, tick=False) as app:
        await app.list(limit=1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    try:
        asyncio.run(probe(parser.parse_args().store))
    except (ImportError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(NOT_AVAILABLE)


if __name__ == "__main__":
    main()
