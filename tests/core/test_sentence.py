"""Sentences such as `every weekday at 9 summarise my mail`: what they mean, and what is asked back."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.core.sentences import (
    BERLIN,
    CHANNELS,
    NOW,
    OF_OTHERS,
    OURS,
    SENTENCES,
    Asked,
    Understood,
    cron,
    every,
    once,
    times,
)
from tests.core.test_when import TEXTS as STRICT_TEXTS

from wakeful.core.schedule import sentence
from wakeful.core.schedule.definition_json import definition_from_json
from wakeful.core.schedule.sentence import Understood as Meaning
from wakeful.core.schedule.sentence import understand
from wakeful.core.time import spoken_pieces
from wakeful.core.time.instants import DAY, HOUR, MINUTE, parse_instant
from wakeful.core.time.timing import next_n, resolve
from wakeful.core.time.when import read_when


def meaning(text: str) -> Meaning:
    return understand(text, now=NOW, zone=BERLIN, channels=CHANNELS)


def test_there_are_fifty_sentences_half_of_them_by_others() -> None:
    assert len(OURS) == len(OF_OTHERS) == len({text for text, _ in SENTENCES}) / 2 == 25


@pytest.mark.parametrize(("text", "expected"), SENTENCES)
def test_a_sentence_is_understood_or_asked_back_about(text: str, expected: Understood | Asked) -> None:
    """None is understood wrongly."""
    found = meaning(text)
    match expected:
        case Understood(schedule, prompt, deliver, assumed):
            delivered = {} if deliver is None else {"deliver": {"channel": deliver}}
            definition = found.definition
            assert definition == {
                "slug": (definition or {}).get("slug"),
                "schedule": schedule,
                "prompt": prompt,
                **delivered,
            }
            assert definition_from_json(definition, default_zone="UTC").slug
            assert all(part in "; ".join(found.assumed) for part in assumed), found.assumed
        case Asked(about, options):
            (question,) = found.unclear
            assert found.definition is None
            assert about in question.question
            assert "\n" not in question.question
            assert all(any(part in option for option in question.options) for part in options), question.options


@pytest.mark.parametrize(
    ("text", "schedule", "prompt"),
    [
        ("from 9 to 17 every 15 minutes check the queue", cron("*/15 9-16 * * *"), "check the queue"),
        ("every hour from 9 to 5 check the queue", cron("0 9-17 * * *"), "check the queue"),
        ("every hour between 8:30 and 17 check the queue", cron("30 8-16 * * *"), "check the queue"),
        ("every second day at 9 do it", every("2d", "2026-11-17T09:00"), "do it"),
        ("every 2 weeks on monday at 10:00 plan", every("14d", "2026-11-23T10:00"), "plan"),
        ("every 2 weeks on monday at 20:00 plan", every("14d", "2026-11-16T20:00"), "plan"),
        ("on the 1st and 15th of every month at 6pm pay", cron("0 18 1,15 * *"), "pay"),
        ("last working day of the month pay", cron("0 8 LW * *"), "pay"),
        ("on the first of every month pay rent", cron("0 8 1 * *"), "pay rent"),
        ("every year on 24 december at 18:00 sing", cron("0 18 24 12 *"), "sing"),
        ("9am every weekday, check mail", cron("0 9 * * 1-5"), "check mail"),
        ("every day at 9: 10 ideas for dinner", times("09:00"), "10 ideas for dinner"),
        ("every day at 9.30 check mail", times("09:30"), "check mail"),
        ("check mail every day at 9.30am", times("09:30"), "check mail"),
        ("every weekday at nine check mail", cron("0 9 * * 1-5"), "check mail"),
        ("9 o'clock every day ring", times("09:00"), "ring"),
        ("every other hour check mail", every("2h"), "check mail"),
        ("can you check my mail every morning?", times("08:00"), "can you check my mail"),
        ("every week day at 9 check mail", cron("0 9 * * 1-5"), "check mail"),
        ("9am briefing every weekday", cron("0 9 * * 1-5"), "briefing"),
        ("every day at 18:00 summarise the mail of today", times("18:00"), "summarise the mail of today"),
        ("every morning send me ideas for 2 people", times("08:00"), "send me ideas for 2 people"),
        ("every weekday at 9, 12 and 17 check mail", cron("0 9,12,17 * * 1-5"), "check mail"),
        ("weekly report every friday at 4pm", cron("0 16 * * 5"), "weekly report"),
        ("every friday at 4pm: report of the last 7 days", cron("0 16 * * 5"), "report of the last 7 days"),
        ('translate "see you at 10" every day at 9:00', times("09:00"), 'translate "see you at 10"'),
        ("every day at 9:00 Berlin time check mail", times("09:00"), "check mail"),
        ("every day at 9:00 tell me the weather in Lisbon", times("09:00"), "tell me the weather in Lisbon"),
        ("every day at 9:00 prepare my monday", times("09:00"), "prepare my monday"),
        ("every night at 3 tidy up", times("03:00"), "tidy up"),
        ("at 8 in the evening on sundays call mum", cron("0 20 * * 0"), "call mum"),
        ("in half an hour stop the oven", once("2026-11-16T18:15:00.000Z"), "stop the oven"),
        ("every 90 minutes stretch", every("1h30m"), "stretch"),
        ("@hourly check mail", cron("@hourly"), "check mail"),
    ],
)
def test_other_sentences_that_are_understood(text: str, schedule: dict[str, Any], prompt: str) -> None:
    assert (meaning(text).definition or {}) | {"slug": None} == {"slug": None, "schedule": schedule, "prompt": prompt}


@pytest.mark.parametrize(
    "text",
    [
        *("every day at 9 EST check mail", "every day at 9:00 Pacific time check mail"),
        *("every day at half past 9 check mail", "every morning, before 9, read the mail"),
        *("every day at 9 check the site except on fridays", "check mail every morning and every evening"),
        *("every weekday post the menu until next month", "every day at noon or midnight check"),
        *("daily standup summary at 9", "every day at 8:00 prepare the agenda for monday at 10:00"),
        *("every 45 minutes on weekdays check", "every 2 hours in Lisbon check the surf", "today at 9 check mail"),
        *("the day after tomorrow at 9:00 call Bob", "every morning at 9pm check", "every day at 25:00 check"),
        *("every second friday check", "on the 15th pay", "twice a week run", "every day between 9 and 17 check"),
        *("between 9 and 17 check", "every 15 minutes from 22 to 6 check", "every 15 minutes between 6 and 10 check"),
        *(
            "",
            "   ",
            "every",
            "at",
            "remind me",
            "remind me every day at 9",
            '"every day at 9"',
            "every 0 minutes check",
        ),
    ],
)
def test_other_sentences_that_are_asked_back_about(text: str) -> None:
    found = meaning(text)
    (question,) = found.unclear
    assert question.question
    assert found.definition is None
    assert found.assumed == ()


WORDS = """every each weekday monday fridays day morning night at 9 9:00 5 noon and , on the first last of month in
20 minutes Berlin UTC tomorrow between 17 twice a other check my mail "buy milk at 10" send to phone until next"""
TEXTS = st.lists(st.sampled_from(re.findall(r'"[^"]+"|\S+', WORDS)), max_size=10).map(" ".join)


@given(TEXTS)
@example("every day at 5 send to bob")
@example("tell me the weather every day at 9 in Lisbon")
def test_each_option_is_clear_about_what_was_asked(text: str) -> None:
    for question in meaning(text).unclear:
        for option in question.options:
            assert question.question not in [more.question for more in meaning(option).unclear], option


@given(TEXTS)
def test_no_word_is_lost(text: str) -> None:
    """What is understood accounts for each word: it says when, what or where to."""
    found = meaning(text)
    if found.definition is not None:
        known = Counter(re.findall(r"\w+", f"{found.when} {found.prompt}"))
        lost = Counter(re.findall(r"\w+", text)) - known
        assert set(lost) <= ({"and", "send", "to", "phone"} if found.channel else set())


@given(TEXTS, st.sampled_from(CHANNELS))
def test_a_task_in_quotes_is_not_read(task: str, channel: str) -> None:
    quoted = task.replace('"', "'").replace(",", "").strip()
    found = meaning(f'every day at 9:00 "{quoted}", send it to {channel}')
    assert found.prompt == " ".join(quoted.split())
    assert found.channel == (channel if quoted else None)


@given(STRICT_TEXTS)
def test_a_strict_text_means_the_same_in_a_sentence(text: str) -> None:
    """There is one reader of timings: what is understood in a sentence is what `--when` understands."""
    found = meaning(f"{text} tidy up")
    if found.timing is not None:
        strict = resolve(read_when(text, now=NOW, default_zone=BERLIN), now=NOW, default_zone=BERLIN)
        assert resolve(found.timing, now=NOW, default_zone=BERLIN) == strict


@given(st.text(max_size=80))
def test_any_text_is_understood_or_asked_back_about(text: str) -> None:
    found = meaning(text)
    assert (found.definition is None) == bool(found.unclear)


def test_options_keep_the_channel_the_reminder_and_what_is_quoted() -> None:
    (question,) = meaning("remind me every day at 9:00 to sing until friday, send to phone").unclear
    assert question.options == ('every day at 9:00 "remind me to sing until friday", send to phone',)
    (question,) = meaning('say "good day" every day at 9:00 in Lisbon, send to phone').unclear
    assert question.options[0] == 'every day at 9:00 Europe/Lisbon say "good day", send to phone'
    (question,) = meaning('say "good day" for every other friday, send to phone').unclear
    assert question.options == ('every other friday say "good day", send to phone',)


@pytest.mark.parametrize("words", ["at 9 ", "every day ", "a/", "every 15th, ", "1, ", 'x"', "monday, ", "send to "])
def test_a_long_sentence_is_read_quickly(words: str) -> None:
    """The work grows with its length, not with its square: each word is looked at a few times."""
    looks = 0
    find = spoken_pieces.piece_at

    def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return find(*args)

    text = (words * 2_000)[:2_000]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spoken_pieces, "piece_at", counted)
        patch.setattr(sentence, "piece_at", counted)
        meaning(text)
    assert looks < 40 * len(text)


@given(
    st.sampled_from(
        [(5, "minutes"), (15, "minutes"), (30, "minutes"), *((hours, "hours") for hours in (1, 2, 3, 6, 8, 12))]
    ),
    st.integers(1, 22),
    st.integers(2, 23),
)
@example((12, "hours"), 8, 20)
@example((8, "hours"), 4, 23)
def test_an_interval_between_two_hours_begins_with_the_first_and_stays_within(
    step: tuple[int, str], first: int, last: int
) -> None:
    found = meaning(f"every {step[0]} {step[1]} between {first}:00 and {last}:00 look")
    if first >= last:
        assert found.definition is None
        return
    assert found.timing is not None
    length = step[0] * (MINUTE if step[1] == "minutes" else HOUR)
    midnight = parse_instant("2026-11-17T00:00", BERLIN)
    times = [at - midnight for at in next_n(found.timing, midnight - 1, 400) if at < midnight + DAY]
    until = last * HOUR + (0 if step[1] == "minutes" else 1)  # a rhythm of hours includes the last hour
    assert times == list(range(first * HOUR, until, length))
