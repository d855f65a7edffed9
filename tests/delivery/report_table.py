"""The table of what people are told: each kind of subject against each kind of trouble.

`TABLE` is what `test_what_is_reported` asserts row by row, and what `docs/alerts.md` shows. Times count from the first
instant. `!` is the report, `ok` is the message that it works again.
"""

from typing import Final, NamedTuple

KINDS: Final = {
    "minutely": "every minute",
    "hourly": "every hour",
    "daily": "every day",
    "once": "one-shot",
    "manual": "manual",
    "heartbeat": "heartbeat, every 30 min",
    "handler": "workflow handler, every 5 min",
    "slot": "quota slot, woken daily",
}

TROUBLES: Final = {
    "once": "fails once",
    "always": "fails from now on",
    "flaps": "fails two of five",
    "timeout": "times out after 20 min",
    "long": "runs 90 min",
    "quota": "waits for quota",
    "paused": "is paused",
}


class Row(NamedTuple):
    """How long the world is watched, and what people are told: `1m !` is a report a minute after the first instant."""

    lasts: str
    told: str = ""


TABLE: Final[dict[tuple[str, str], Row]] = {
    ("minutely", "once"): Row("1h30m"),
    ("minutely", "always"): Row("4h", "1m !"),
    ("minutely", "flaps"): Row("50m", "1m !, 3m ok"),
    ("minutely", "timeout"): Row("3h", "41m !"),
    ("minutely", "long"): Row("4h"),
    ("minutely", "quota"): Row("6h"),
    ("minutely", "paused"): Row("4h"),
    ("hourly", "once"): Row("12h"),
    ("hourly", "always"): Row("1d", "1h !"),
    ("hourly", "flaps"): Row("10h", "1h !, 3h ok, 6h !, 8h ok"),
    ("hourly", "timeout"): Row("1d", "1h1m !"),
    ("hourly", "long"): Row("1d"),
    ("hourly", "quota"): Row("1d"),
    ("hourly", "paused"): Row("1d"),
    ("daily", "once"): Row("3d", "1h1m !, 1d ok"),
    ("daily", "always"): Row("6d", "1h1m !"),
    ("daily", "flaps"): Row("5d", "1h1m !, 2d ok"),
    ("daily", "timeout"): Row("4d", "1h1m !"),
    ("daily", "long"): Row("3d"),
    ("daily", "quota"): Row("3d"),
    ("daily", "paused"): Row("3d"),
    ("once", "once"): Row("1d"),
    ("once", "always"): Row("3d", "1h1m !"),
    ("once", "flaps"): Row("1d"),
    ("once", "timeout"): Row("1d", "1h1m !"),
    ("once", "long"): Row("1d"),
    ("once", "quota"): Row("1d"),
    ("once", "paused"): Row("1d"),
    ("manual", "once"): Row("18h"),
    ("manual", "always"): Row("18h"),
    ("manual", "flaps"): Row("18h"),
    ("manual", "timeout"): Row("18h"),
    ("manual", "long"): Row("18h"),
    ("manual", "quota"): Row("18h"),
    ("manual", "paused"): Row("18h"),
    ("heartbeat", "once"): Row("6h"),
    ("heartbeat", "always"): Row("6h", "30m !"),
    ("heartbeat", "flaps"): Row("6h"),
    ("heartbeat", "timeout"): Row("6h", "1h1m !"),
    ("heartbeat", "long"): Row("6h"),
    ("heartbeat", "quota"): Row("12h"),
    ("heartbeat", "paused"): Row("6h"),
    ("handler", "once"): Row("2h"),
    ("handler", "always"): Row("6h", "5m !"),
    ("handler", "flaps"): Row("50m"),
    ("handler", "timeout"): Row("6h", "1h1m !"),
    ("handler", "long"): Row("6h"),
    ("handler", "quota"): Row("12h"),
    ("handler", "paused"): Row("6h"),
    ("slot", "once"): Row("2d"),
    ("slot", "always"): Row("2d", "9m !"),
    ("slot", "flaps"): Row("2d"),
    ("slot", "timeout"): Row("2d", "19m !"),
    ("slot", "long"): Row("2d", "19m !"),
    ("slot", "quota"): Row("2d"),
    ("slot", "paused"): Row("2d"),
}


def table_of_docs() -> str:
    """The table as `docs/alerts.md` has it."""
    lines = [["", *TROUBLES.values()], ["---"] * (len(TROUBLES) + 1)]
    for kind, name in KINDS.items():
        lines.append([name, *(_cell(TABLE[kind, trouble].told) for trouble in TROUBLES)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cell(told: str) -> str:
    return told.replace(" !", " report").replace(" ok", " works again") or "-"
