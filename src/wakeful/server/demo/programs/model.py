"""`model.py NAME`: stands in for a command-line agent in the demo.

It reads a prompt on stdin, and prints JSON with a reply, its tokens and its cost. The agent `reviewer` fails: its key
has expired.
"""

import json
import random
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

VERSION = "demo-model 1.0"
EXPIRED = "401 Unauthorized: the API key has expired (simulated); renew it, then run: wakeful agents test reviewer"
NOTHING = "HEARTBEAT_OK"
DOLLARS_PER_TOKEN = 4e-6
EVENT = re.compile(r"^> (.+)$", re.MULTILINE)

HAIKUS = (
    "Red digits blinking,\nthe neighbour's dog is awake.\nFive more minutes, please.",
    "Before the first light\na small bell argues with sleep.\nThe bell has never lost.",
    "Snow on the window.\nThe alarm rings in the dark\nfor the two of us.",
    "Set it once, trust it:\nthe hour comes by itself\nand knocks very softly.",
    "Clocks go back tonight.\nOne hour happens two times.\nOnly one bell rings.",
    "The battery died.\nAll morning a quiet room\nforgives no one's plans.",
)
STAND_UPS = (
    "Yesterday, 7 commits:\n- the importer retries a 503 instead of giving up\n- two flaky tests wait for a "
    "condition now\n"
    "- the French texts are complete\nOpen: the slow search is still under review.",
    "Yesterday, 4 commits:\n- search uses the new index: 900 ms became 40 ms\n- the old endpoint says that it "
    "will go\n"
    "Blocked: the staging certificate expires on Friday, and nobody owns it.",
    "Yesterday, 11 commits, most of them small:\n- exports larger than 2 GB no longer fail\n- the settings "
    "page remembers "
    "its tab\nRisk: the migration has only been tried on a copy of last month's data.",
)
EVENINGS = (
    "Three things are open:\n1. Reply to the landlord about the boiler (asked twice).\n2. The report for "
    "Thursday has no "
    "figures for October yet.\n3. Tickets for the 14th: the price goes up tomorrow.",
    "Two things are open:\n1. The invoice of the print shop, due in two days.\n2. Nobody has confirmed the "
    "room for the "
    "workshop.\nEverything else on today's list is done.",
)
OVERNIGHTS = (
    "Quiet night. Of the twelve shares you watch, nine moved less than 1 %. The largest move: +2.4 %, after the "
    "quarterly figures at 06:00. No orders are waiting. (simulated)",
    "The index opened 0.6 % lower and recovered by 09:20. One alarm of yours was reached: the currency pair "
    "crossed the "
    "limit at 07:41, and returned. (simulated)",
)
NEWSLETTERS = (
    'Draft: "What we learned from 10,000 alarms". Three short parts: the alarms that nobody needed, the one that saved '
    "a weekend, and how to write a prompt that still makes sense in a month. About 400 words; a picture is missing.",
)
CHANGELOGS = (
    "## This week\n- Exports larger than 2 GB no longer fail.\n- Search is twenty times as fast.\n- Fixed: a "
    "retry could "
    "start before the first attempt had ended.",
    "## This week\n- The importer retries when the other side is busy.\n- New: French texts.\n- Fixed: the "
    "settings page "
    "forgot its tab.",
)
REVIEWS = (
    "Two pull requests are open. #214 is fine to merge. #217 changes the retry: it should keep the "
    "idempotency key; I left "
    "a comment.",
    "One pull request is open, #221. The test waits a fixed second instead of a condition; the rest is good.",
)
OTHERS = ("I read your message, and there is nothing to do.", "Noted. I will mention it in the evening note.")
REPLIES = {
    "haiku": HAIKUS,
    "commits": STAND_UPS,
    "open today": EVENINGS,
    "overnight": OVERNIGHTS,
    "newsletter": NEWSLETTERS,
    "changelog": CHANGELOGS,
    "pull requests": REVIEWS,
}


def reply_to(prompt: str, at: float) -> str:
    """The agent's reply, which varies with the time."""
    if NOTHING in prompt:
        return beat(EVENT.findall(prompt))
    known = next((texts for word, texts in REPLIES.items() if word in prompt.lower()), OTHERS)
    return random.Random(int(at)).choice(known)  # noqa: S311 - a demo's reply, not a secret


def beat(events: Sequence[str]) -> str:
    """The reply to a heartbeat: what happened since the last one."""
    if not events:
        return NOTHING
    happened = " ".join(dict.fromkeys(events))
    return f"Since the last beat: {happened} Nothing needs you."


def usage_of(prompt: str, reply: str, at: float) -> dict[str, Any]:
    """Tokens and cost, similar to those of a small model."""
    read, written = 900 + len(prompt) + int(at) % 300, 40 + len(reply) // 3
    cost = round(DOLLARS_PER_TOKEN * (read + 4 * written), 6)
    return {"input_tokens": read, "output_tokens": written, "model": "demo-small", "cost": cost}


def main(name: str, *options: str) -> int:
    if "--version" in options:
        sys.stdout.write(f"{VERSION}\n")
        return 0
    prompt, now = sys.stdin.read(), time.time()
    if name == "reviewer":
        sys.stderr.write(f"{EXPIRED}\n")
        return 1
    reply = reply_to(prompt, now)
    json.dump({"reply": reply, "usage": usage_of(prompt, reply, now)}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
