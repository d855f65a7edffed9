"""Sentences: what should happen and when, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from wakeful.api.operation import Noun, Returns, read
from wakeful.api.parameters import Param
from wakeful.core.errors import Invalid
from wakeful.core.money.spending import MonthlyCost
from wakeful.core.returned import At, kind, returned
from wakeful.core.schedule.sentence import SENTENCE_MAX, Question, understand
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import next_n
from wakeful.core.time.timing_words import describe
from wakeful.core.time.zones import check_zone
from wakeful.features.money.queries import cost_of_schedule
from wakeful.ports.store import Tx

TIMES_SHOWN: Final = 5
SLUGS_TRIED: Final = 100
_DEFINITION: Final = kind({"anyOf": [{"type": "object", "additionalProperties": True}, {"type": "null"}]})


@dataclass(frozen=True, slots=True)
class Unclear:
    """What is asked back."""

    text: Annotated[str, "the part of the sentence that is not clear; empty: something is missing"]
    question: Annotated[str, "one line"]
    options: Annotated[list[str], "sentences that are clear about it"]


@dataclass(frozen=True, slots=True)
class Understanding:
    """How a sentence is understood."""

    definition: Annotated[Mapping[str, Any] | None, _DEFINITION, "null: something is unclear"]
    when: Annotated[str | None, "the words that say when; null: none were found"]
    description: Annotated[str | None, "the timing, as it is understood"]
    next: Annotated[list[At], "the next five times"]
    estimate: Annotated[MonthlyCost | None, "of 30 days, in US dollars"]
    assumed: Annotated[list[str], "what the sentence does not say"]
    unclear: Annotated[list[Unclear], "if `definition` is null"]


class Sentences(Noun):
    """Schedules in words."""

    @read(
        "POST /api/understand",
        "Understand a sentence",
        Returns(returned(Understanding), "How it is understood, or what is asked back."),
        least="operate",
        id="understand",
        body_name="Sentence",
        body_says="What should happen, and when.",
    )
    def understand(
        self,
        tx: Tx,
        now: Instant,
        text: Annotated[
            str, Param("such as: every weekday at 9 summarise my mail, send to phone", longest=SENTENCE_MAX)
        ],
        *,
        timezone: Annotated[str | None, Param("of times without a zone; default: the daemon's")] = None,
    ) -> Understanding:
        """Changes nothing. What it becomes is a prompt, never a command. What could mean two things is asked back in
        `unclear`, and no model is asked."""
        app = self._app
        zone = app._open.conditions.default_zone if timezone is None else check_zone(timezone, "timezone")
        found = understand(text, now=now, zone=zone, channels=app._delivery.registry.names)
        if found.timing is None or found.definition is None:
            return _asking(found.when, found.unclear)
        definition = {**found.definition, "slug": _free_slug(tx, found.definition["slug"])}
        try:
            checked = app._read(definition["slug"], definition, now).definition
        except Invalid as invalid:  # it was understood, but cannot run here: there may be no agent
            return _asking(found.when, [Question("", str(error)) for error in invalid.errors])
        timing = app._terms.starting(checked.timing, checked)
        cost = cost_of_schedule(tx, app._money.terms, None, checked, timing, now=now)
        return Understanding(
            definition=definition,
            when=found.when,
            description=describe(checked.timing),
            next=list(next_n(timing, now, TIMES_SHOWN)),
            estimate=cost.get("perMonth"),
            assumed=list(found.assumed),
            unclear=[],
        )


def _asking(when: str | None, unclear: Sequence[Question]) -> Understanding:
    asked = [Unclear(one.text, one.question, list(one.options)) for one in unclear]
    return Understanding(None, when, None, [], None, [], asked)


def _free_slug(tx: Tx, slug: str) -> str:
    """The slug, with a number if a schedule has it."""
    tried = [slug, *(f"{slug}-{number}" for number in range(2, SLUGS_TRIED))]
    taken = tx.schedules.by_slugs(tried)
    return next((one for one in tried if one not in taken), slug)
