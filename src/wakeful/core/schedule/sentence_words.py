"""Words in a sentence that decide whether a time belongs to the timing or to the task.

In all patterns, words are separated by one space, as `sentence` leaves them.
"""

from __future__ import annotations

import re
from typing import Final

from wakeful.core.time.when_words import COUNT, MONTH, WEEKDAY, WEEKDAY_SHORT


def _any(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


REMIND: Final = re.compile(r"(?:please )?remind me ", re.IGNORECASE)
CHANNEL: Final = re.compile(
    r"(?:[,;.] ?(?:(?:and|then) )*| (?:and|then) |^)"
    r"(?P<clause>(?:send|deliver|post|message)(?: (?:it|that|this|them|me|the (?:result|answer|reply|summary)))*"
    r" (?:to|via|on|over) (?:(?:my|the) )?(?P<channel>[\w.-]*\w)(?: channel)?)[.!? ]*$",
    re.IGNORECASE,
)

# Before a time, these make it part of the task: `the 9am standup`, `what is due tomorrow`.
OWNED: Final = re.compile(
    rf"(?:^|\W){_any('a an the my our your his her its their this that these those last past')}$", re.IGNORECASE
)
LEADS_ON: Final = re.compile(
    rf"(?:^|\W){_any('for of about since before after by than to is are was were due within through during next')}$",
    re.IGNORECASE,
)

# Before a time, these say something about the timing that is not understood.
LIMITS: Final = re.compile(
    rf"(?:^|\W){_any('from until till except excluding starting beginning but not unless only and or between')}$"
    rf"|(?:^|\W){_any('every each first second third fourth half quarter past on in at')}$",
    re.IGNORECASE,
)

# Anywhere in the task, these may limit the timing: `until june`, `for 2 weeks`, `skip weekends`, `at around 9`.
_DAY: Final = (
    rf"(?:{WEEKDAY}|{WEEKDAY_SHORT}|{MONTH}|(?:(?:bank|public|school) )?holidays?"
    rf"|{_any('next this end now today tomorrow weekdays? weekends? workdays? working business further')}|\d)"
)
_CLOCK: Final = r"(?:\d{1,2}[:.]\d{2}|\d{1,2} ?[ap]\.?m|noon|midnight|\d{1,2}(?=[.,!?]?$))"
_LIMIT: Final = (
    f"(?:{_any('until till except excluding starting beginning ending unless only skip skipping without')}"
    "|but not|not on|not in)"
)
LIMITED: Final = re.compile(
    rf"\b{_LIMIT}(?: {_any('on from for in the is')})* {_DAY}\b(?: [\w:]+)?"
    rf"|\bfor (?:the next )?{COUNT} (?:hour|day|week|month|year|time)s?\b"
    rf"|\b{COUNT} times\b"
    rf"|\b{_any('during within outside in of')} {_any('office working work business school opening daylight')} hours\b"
    rf"|\bat {_any('around about roughly approximately half quarter')}\b"
    rf"|\b{_any('before after around by')} {_CLOCK}"
    rf"|^(?:from|as of) {_DAY}\b",
    re.IGNORECASE,
)

# Directly after the timing, these go on with it.
_ZONES: Final = _any(
    "utc gmt [ecmp][sd]t cest cet bst ist jst msk ae[sd]t pacific eastern central mountain local server"
)
_ON: Final = _any(
    "until till through except excluding besides apart without but unless or and only starting beginning ending from to"
    " between during within while before after past half quarter for at on in of this next every each not around about"
    " sharp am pm once twice"
)
GOES_ON: Final = re.compile(
    rf"(?:(?i:{_ON}|{_ZONES})\b|[A-Z]{{1,3}}[SD]?T\b|(?:[A-Z]\w* )+time\b|\d|[&+/])\S*(?: [\w:'-]+){{0,2}}"
    rf"|[,;] ?\d\S*|, (?i:{_any('before after around about by at on in between from')}) (?:\d|noon\b|midnight\b)\S*"
)
