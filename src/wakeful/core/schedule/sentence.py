"""A sentence that says what should happen and when: `every weekday at 9 summarise my mail, send to phone`.

Theory of operation: the timing stands at the beginning, after `remind me`, at the end, or in two of these places; a
channel may be named at the end. What is left is the task, word for word: it becomes a prompt, never a command. Words
that could belong to the timing but were not understood (`until june`, `except fridays`) are asked about, so that none
of them is silently lost. What stands in quotes is the task, whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from wakeful.core.schedule.sentence_words import CHANNEL, GOES_ON, LEADS_ON, LIMITED, LIMITS, OWNED, REMIND
from wakeful.core.slug import slug_of
from wakeful.core.time.instants import Instant
from wakeful.core.time.spoken import timing_said
from wakeful.core.time.spoken_pieces import Piece, piece_at, pieces_at, zone_named
from wakeful.core.time.spoken_saying import Unclear
from wakeful.core.time.timing import Timing
from wakeful.core.time.timing_json import timing_to_json

SENTENCE_MAX: Final = 2_000
"""Characters."""
TRAILING_MAX: Final = 30
"""How many words at the end may say when."""
LEAD_MAX: Final = 20
"""Characters of the word before a time."""

_WORD: Final = re.compile(r"(?<![\w'-])[\w@(]")
_ADVERBS: Final = frozenset({"daily", "hourly", "weekly", "monthly", "quarterly", "yearly", "annually"})
_MODIFIES: Final = frozenset({"length", "count", "step", "window", "delay", "time", "part", "date", "days", "open"})
_EDGES: Final = " ,;:-\u2013\u2014"
_STRAIGHT: Final = {0x201C: '"', 0x201D: '"', 0x201E: '"', 0x2018: "'", 0x2019: "'"}
_NOT_IN_SLUGS: Final = re.compile(r"(?:please|remind me|tell me|to|that|the|my|an?|and) ", re.IGNORECASE)
_SLUG_WORDS: Final = 4


@dataclass(frozen=True, slots=True)
class Question:
    """The part of a sentence that is not clear, a question of one line, and sentences that are clear about it."""

    text: str
    question: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Understood:
    """What a sentence means, or what is asked back about it."""

    when: str | None  # the words that say when
    timing: Timing | None = None
    prompt: str = ""
    channel: str | None = None
    assumed: tuple[str, ...] = ()
    unclear: tuple[Question, ...] = ()

    @property
    def definition(self) -> dict[str, Any] | None:
        """The definition in JSON, with a slug made of the task; None if something is unclear."""
        if self.timing is None:
            return None
        delivered = {} if self.channel is None else {"deliver": {"channel": self.channel}}
        return {
            "slug": _slug(self.prompt),
            "schedule": timing_to_json(self.timing),
            "prompt": self.prompt,
            **delivered,
        }


class _Asked(Exception):
    def __init__(self, text: str, question: str, *options: str) -> None:
        super().__init__(question)
        self.question = Question(text, question, options)


def understand(text: str, *, now: Instant, zone: str, channels: Collection[str]) -> Understood:
    """What the sentence means. Times are in this zone unless it names another; `channels` are those that exist."""
    sentence = _Sentence(" ".join(text.split()), channels)
    try:
        return sentence.understood(now, zone)
    except _Asked as asked:
        return Understood(sentence.when, unclear=(asked.question,))
    except Unclear as unclear:
        options = tuple(sentence.with_when(reading) for reading in unclear.readings)
        return Understood(sentence.when, unclear=(Question(unclear.text, unclear.question, options),))


class _Sentence:
    """A sentence, divided into the timing, the task and the channel."""

    def __init__(self, text: str, channels: Collection[str]) -> None:
        self.text, self.channels = text, channels
        plain = text.translate(_STRAIGHT)
        self.flat = re.sub(r'"[^"]*"', lambda quoted: f'"{"_" * (len(quoted[0]) - 2)}"', plain)  # of the same length
        self.begin, self.end = 0, len(text)  # of the task
        self.clause = self.channel = ""
        self.leading: Sequence[Piece] = ()
        self.trailing: Sequence[Piece] = ()
        self.reminder = ""

    @property
    def when(self) -> str | None:
        return " ".join(piece.text for piece in (*self.leading, *self.trailing)) or None

    @property
    def task(self) -> str:
        task = self.text[self.begin : self.end].strip(_EDGES)
        is_quoted = re.fullmatch(r'"[^"]*"', self.flat[self.begin : self.end].strip(_EDGES))
        return f"{self.reminder}{task[1:-1] if is_quoted else task}"

    def with_when(self, when: str) -> str:
        """The sentence with another text of when."""
        return f"{when} {self.task}{self._delivered}".strip()

    def quoted(self, task: str) -> str:
        """Timing and task, with the task in quotes: whatever it says, it is the task."""
        task = task.replace('"', "'")
        return f'{self.when} "{task}"'

    @property
    def _delivered(self) -> str:
        return f", {self.clause}" if self.clause else ""

    def understood(self, now: Instant, zone: str) -> Understood:
        self._take_channel()
        self._take_leading()
        self._take_trailing()
        self._take_channel()
        if self.when is None:
            raise _Asked("", "When should it run? Say for example 'every weekday at 9' or 'in 20 minutes'.")
        self._refuse_more_times()
        said = timing_said([*self.leading, *self.trailing], now=now, zone=zone)
        channel = self._known_channel()
        if not self.task.removeprefix(self.reminder):
            raise _Asked("", f"What should happen {self.when}?")
        return Understood(self.when, said.timing, self.task, channel, said.assumed)

    # --- the timing ---------------------------------------------------------------------------------------------------

    def _take_leading(self) -> None:
        remind = REMIND.match(self.flat)
        begin = 0 if remind is None else remind.end()
        pieces = pieces_at(self.flat[: self.end], begin)
        if not pieces or (len(pieces) == 1 and self._is_adjective(pieces[0])):
            return
        self.leading, self.begin = pieces, pieces[-1].end
        self.reminder = "" if remind is None else self.text[:begin]
        rest = self.flat[self.begin : self.end].lstrip(" ")
        if self.reminder and re.match(r"(?:to|about|that|of)\b", rest):
            return
        more = GOES_ON.match(rest) or LIMITED.match(rest.lstrip(_EDGES))
        if more is not None:
            words = more[0].strip(_EDGES)
            raise _Asked(words, f"'{words}' is not understood; when should it run, without it?")

    def _is_adjective(self, piece: Piece) -> bool:
        """`Daily standup summary at 9:00` does not say that it is daily."""
        return piece.text.lower() in _ADVERBS and bool(re.match(r" \w", self.flat[piece.end :]))

    def _take_trailing(self) -> None:
        flat = self.flat[: self.end].rstrip(" .!?,")
        starts = [start.start() for start in _WORD.finditer(flat, self.begin + bool(self.leading))]
        for start in starts[-TRAILING_MAX:]:
            pieces = pieces_at(flat, start)
            if pieces and pieces[-1].end == len(flat) and self._is_of_timing(pieces, start):
                self.trailing, self.end = pieces, start
                return

    def _is_of_timing(self, pieces: Sequence[Piece], start: int) -> bool:
        """Whether the pieces at the end, from `start` on, say when, and are no part of the task."""
        text, before = " ".join(piece.text for piece in pieces), self.flat[:start].rstrip()
        if not before or (not self.leading and before.lower() in ("remind me", "please remind me")):
            return False
        if OWNED.search(before) or pieces[0].form == "after":
            return False
        is_place = pieces[-1].form == "in" and pieces[-1].says == "zone"
        if is_place and len(pieces) == 1:
            return False
        if LEADS_ON.search(before):
            if self.leading:
                return False
            self.trailing = pieces
            task, _, word = self.text[:start].rstrip().rpartition(" ")
            self._ask_whose(f"{word} {text}", f"{text} {task}{self._delivered}")
        if LIMITS.search(before):
            limit = f"{before.rpartition(' ')[2]} {text}"
            if self.leading:
                self._ask_about_task(limit)
            raise _Asked(limit, f"'{limit}' is not understood; when should it run, without it?")
        if self.leading and [piece.says for piece in pieces] == ["date"] and "date" in pieces[0].given:
            return not any(piece.says in ("days", "part", "length", "step", "count") for piece in self.leading)
        if is_place:
            self.trailing = pieces
            place, zone = pieces[-1].text, zone_named(pieces[-1].given)
            when = " ".join(piece.text for piece in (*self.leading, *pieces[:-1]))
            task = f"{self.reminder}{self.text[self.begin : start].strip(_EDGES)}"
            with_place = f"{task} {place}".replace('"', "'")
            options = f"{when} {zone} {task}{self._delivered}", f'{when} "{with_place}"{self._delivered}'
            raise _Asked(place, f"Is '{place}' the time zone {zone}, or part of the task?", *options)
        return True

    def _ask_whose(self, text: str, *options: str) -> NoReturn:
        raise _Asked(text, f"Does '{text}' say when it should run, or is it part of the task?", *options)

    def _ask_about_task(self, text: str) -> NoReturn:
        self._ask_whose(text, f"{self.quoted(self.task)}{self._delivered}")

    def _refuse_more_times(self) -> None:
        """Ask about times inside the task that could change when it runs."""
        task = self.flat[: self.end]
        limited = LIMITED.search(task[self.begin :].strip(_EDGES))
        if limited is not None:
            self._ask_about_task(limited[0])
        for start in _WORD.finditer(task, self.begin):
            piece = piece_at(task, start.start())
            if piece is None or not self._is_modifier(piece):
                continue
            before = task[max(0, start.start() - LEAD_MAX) : start.start()].rstrip()
            if not OWNED.search(before) and not LEADS_ON.search(before):
                self._ask_about_task(piece.text)

    def _is_modifier(self, piece: Piece) -> bool:
        if piece.says not in _MODIFIES or piece.text.lower() in _ADVERBS:
            return False
        if piece.says == "date":
            return False  # `the weather today`
        return (
            piece.form != "names" or "each" in piece.given or " " in piece.text or piece.text.lower().endswith("days")
        )

    # --- the channel --------------------------------------------------------------------------------------------------

    def _take_channel(self) -> None:
        match = None if self.clause else CHANNEL.search(self.flat, self.begin, self.end)
        if match is not None:
            self.end = match.start()
            self.clause, self.channel = self.text[match.start("clause") : match.end("clause")], match["channel"]

    def _known_channel(self) -> str | None:
        if not self.channel:
            return None
        for name in self.channels:
            if name.casefold() == self.channel.casefold():
                return name
        task, clause = self.task, self.clause
        options = [f"{self.when} {task}, send to {name}" for name in self.channels]
        question = f"There is no channel '{self.channel}'; which one should it be, or is it part of the task?"
        raise _Asked(clause, question, *options, self.quoted(f"{task} and {clause}"))


def _slug(task: str) -> str:
    while (shorter := _NOT_IN_SLUGS.sub("", task, count=1) if _NOT_IN_SLUGS.match(task) else task) != task:
        task = shorter
    return slug_of(" ".join(task.split()[:_SLUG_WORDS]))
