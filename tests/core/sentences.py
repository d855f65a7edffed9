"""Fifty sentences that say what should happen and when, and what each must mean.

They were written down before the reader of sentences was. Half of them are ours; the other half say in our words what
people asked other schedulers, task managers and assistants for, in their issue trackers. Where a sentence could mean
two things, the right answer is a question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from wakeful.core.time.instants import parse_instant

NOW: Final = parse_instant("2026-11-16T17:45:00Z")  # a Monday, 18:45 in Berlin
BERLIN: Final = "Europe/Berlin"
CHANNELS: Final = ("phone", "telegram", "inbox")


@dataclass(frozen=True, slots=True)
class Understood:
    """The definition that the sentence stands for; `assumed` are parts of what must be said about it."""

    schedule: dict[str, Any]
    prompt: str
    deliver: str | None = None
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A part of the question, and of each option that is offered."""

    about: str
    options: tuple[str, ...] = ()


def cron(expression: str, zone: str = BERLIN) -> dict[str, Any]:
    return {"type": "cron", "expression": expression, "timezone": zone}


def times(*given: str) -> dict[str, Any]:
    return {"type": "times", "times": list(given), "timezone": BERLIN}


def once(at: str) -> dict[str, Any]:
    return {"type": "once", "at": at, "timezone": BERLIN}


def every(length: str, anchor: str | None = None) -> dict[str, Any]:
    anchored = {} if anchor is None else {"anchor": anchor, "timezone": BERLIN}
    return {"type": "every", "every": length, **anchored}


OURS: Final[tuple[tuple[str, Understood | Asked], ...]] = (
    (
        "every weekday at 9 summarise my mail, send to phone",
        Understood(cron("0 9 * * 1-5"), "summarise my mail", "phone"),
    ),
    ("every morning check the backups", Understood(times("08:00"), "check the backups", assumed=("08:00",))),
    (
        "every other day at 7 write the plant report",
        Understood(every("2d", "2026-11-17T07:00"), "write the plant report", assumed=("2026-11-17", "clock")),
    ),
    ("last day of the month close the books", Understood(cron("0 8 L * *"), "close the books", assumed=("08:00",))),
    (
        "twice a day look at the error log",
        Understood(times("08:00", "20:00"), "look at the error log", assumed=("20:00",)),
    ),
    (
        "every 15 minutes between 9 and 17 check the queue",
        Understood(cron("*/15 9-16 * * *"), "check the queue", assumed=("16:45",)),
    ),
    (
        "at 9 on weekdays in New York read me the agenda",
        Understood(cron("0 9 * * 1-5", "America/New_York"), "read me the agenda", assumed=("America/New_York",)),
    ),
    (
        "on the first Monday draft the newsletter",
        Understood(cron("0 8 * * 1#1"), "draft the newsletter", assumed=("every month", "08:00")),
    ),
    (
        "in 20 minutes remind me to move the car",
        Understood(once("2026-11-16T18:05:00.000Z"), "remind me to move the car"),
    ),
    ("tomorrow at noon order lunch", Understood(once("2026-11-17T12:00"), "order lunch")),
    (
        "remind me tomorrow at 18:30 to call the dentist",
        Understood(once("2026-11-17T18:30"), "remind me to call the dentist"),
    ),
    (
        "Summarise the team channel every Friday at 16:00 and send it to Telegram.",
        Understood(cron("0 16 * * 5"), "Summarise the team channel", "telegram"),
    ),
    ("every day at 5 feed the cat", Asked("at 5", ("05:00", "17:00"))),
    ("0 6 * * 1-5 rotate the keys", Understood(cron("0 6 * * 1-5"), "rotate the keys")),
    ("every evening at 8 tell me what is due tomorrow", Understood(times("20:00"), "tell me what is due tomorrow")),
    ("on monday at 9:00 prepare the meeting", Asked("monday", ("every monday", "2026-11-23"))),
    ("next friday at 10:00 send the invoice", Asked("next friday", ("2026-11-20", "2026-11-27"))),
    ("run seo", Asked("When")),
    ("every weekday at 9", Asked("What")),
    (
        "every 2 hours on weekdays check the site",
        Understood(cron("0 */2 * * 1-5"), "check the site", assumed=("00:00",)),
    ),
    ("every day at 9 except fridays check the site", Asked("except fridays")),
    ("weekdays at 9 and 17:30 check the prices", Asked("17:30")),
    (
        'every day at 9 "tell me what happens on monday at 10:00"',
        Understood(times("09:00"), "tell me what happens on monday at 10:00"),
    ),
    ("every day at 9:00 write a poem and send it to Bob", Asked("Bob", ("phone", "telegram", "inbox"))),
    ("tell me the weather every day at 9 in Lisbon", Asked("in Lisbon", ("Europe/Lisbon",))),
)

OF_OTHERS: Final[tuple[tuple[str, Understood | Asked], ...]] = (
    ("every monday 9am triage the inbox", Understood(cron("0 9 * * 1"), "triage the inbox")),
    ("every 9am post the standup", Understood(times("09:00"), "post the standup")),
    ("Monday, Wednesday at 9am list the blockers", Understood(cron("0 9 * * 1,3"), "list the blockers")),
    ("every 15th of the month send the invoice list", Understood(cron("0 8 15 * *"), "send the invoice list")),
    (
        "every other friday check the contracts",
        Understood(every("14d", "2026-11-20T08:00"), "check the contracts", assumed=("2026-11-20", "08:00", "clock")),
    ),
    ("every last friday of the month write the digest", Understood(cron("0 8 * * 5L"), "write the digest")),
    ("on the third Tuesday of every month at 10am review access", Understood(cron("0 10 * * 2#3"), "review access")),
    ("on 1st Monday of the month at 13:00 every 3 months audit the keys", Asked("every 3 months")),
    ("every tuesday and thurs until next month post the menu", Asked("until next month")),
    ("schedule the meeting for every other tuesday at noon", Asked("for")),
    (
        "remind me to check the washer is open every Tuesday",
        Understood(cron("0 8 * * 2"), "remind me to check the washer is open", assumed=("08:00",)),
    ),
    (
        "remind me to take the garbage out tomorrow at 9 am",
        Understood(once("2026-11-17T09:00"), "remind me to take the garbage out"),
    ),
    ("summarise my inbox at 8am every weekday", Understood(cron("0 8 * * 1-5"), "summarise my inbox")),
    ("run the backup check at 2am", Asked("2am", ("every day", "tomorrow"))),
    ("On Thursdays, search for events in Lisbon", Understood(cron("0 8 * * 4"), "search for events in Lisbon")),
    ("Once a month, search for concerts", Asked("Once a month", ("1st",))),
    (
        "Remind me to write the tests in five minutes",
        Understood(once("2026-11-16T17:50:00.000Z"), "Remind me to write the tests"),
    ),
    ("remind me to drink water every 5 minutes", Understood(every("5m"), "remind me to drink water")),
    ("remind me at 11 PM tonight to lock the door", Understood(once("2026-11-16T23:00"), "remind me to lock the door")),
    ("every night copy the photos", Asked("every night")),
    ("every 3 days from next monday water the garden", Asked("from next monday")),
    ("Pay insurance every Sept 28", Understood(cron("0 8 28 9 *"), "Pay insurance", assumed=("08:00",))),
    (
        "every 30 minutes between 9 AM and 5 PM on weekdays check the queue",
        Understood(cron("*/30 9-16 * * 1-5"), "check the queue", assumed=("16:30",)),
    ),
    ("triage every email", Asked("When")),
    ("summarize the 9am standup", Asked("When")),
)

SENTENCES: Final = OURS + OF_OTHERS
