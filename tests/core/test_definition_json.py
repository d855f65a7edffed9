"""One JSON shape for a definition: read whole, refused whole, written so that equal definitions are equal texts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampling import examples
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.schedule.actions import METHODS, ActionSpec, Call, Command, Event, Http, Prompt
from wakeful.core.schedule.definition import Definition, DeliverTo, check_slug, retry_of, usual_retry
from wakeful.core.schedule.definition_json import (
    ACTIONS,
    OPTIONS,
    READ_BACK,
    action_from_json,
    decode_definition,
    definition_from_json,
    definition_from_parts,
    definition_to_json,
    encode_definition,
    encode_many,
)
from wakeful.core.schedule.policies import CATCH_UP_LIMIT, CatchUp, OnCrash, Overlap, Retry
from wakeful.core.time.active_hours import ActiveHours
from wakeful.core.time.instants import DAY, HOUR, INSTANT_MAX, MINUTE
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times
from wakeful.core.time.timing_json import timing_to_store

BASE: dict[str, Any] = {"slug": "a", "schedule": {"type": "manual"}, "call": {"target": "x:y"}}


def read(data: Any, slug: str | None = None) -> Definition:
    return definition_from_json(data, default_zone="Europe/Berlin", slug=slug)


def faults(data: Any, slug: str | None = None) -> dict[str, str]:
    """Each refused field with its message; none may be named twice for one fault."""
    with pytest.raises(Invalid) as refused:
        read(data, slug)
    errors = refused.value.errors
    assert len({error.field for error in errors}) == len(errors)
    return {error.field: error.message for error in errors}


# -- random valid definitions -----------------------------------------------------------------------------------------

TEXTS = st.text(st.sampled_from("abc XYZ09äß中😀\n\t\"'\\{}<>&;$"), min_size=1, max_size=12).filter(str.strip)
LOOSE = st.text(st.sampled_from("abc ä😀\n"), max_size=6)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | LOOSE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LOOSE, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(LOOSE, PLAIN, max_size=3)
DURATIONS = st.integers(1, 300 * DAY)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
INSTANTS = st.integers(0, INSTANT_MAX)
CLOCK_TIMES = st.sampled_from(["00:00", "02:30", "09:00", "17:45", "23:59"])
TIMINGS = st.one_of(
    st.builds(Once, INSTANTS),
    st.builds(Every, st.integers(1, 400 * DAY), INSTANTS),
    st.builds(Cron, st.sampled_from(["0 9 * * 1-5", "*/20 2 * * *", "30 0 9 1,15 * MON#2", "@daily"]), ZONES),
    st.builds(Times, st.lists(CLOCK_TIMES, min_size=1, unique=True).map(tuple), ZONES),
    st.builds(AfterReset, TEXTS, st.integers(0, 1000).map(lambda minutes: minutes * MINUTE)),
    st.just(Manual()),
)
HEADERS = st.dictionaries(LOOSE, LOOSE, max_size=2)
ACTIONS_DRAWN: st.SearchStrategy[ActionSpec] = st.one_of(
    st.builds(Call, TEXTS, OBJECTS, st.sampled_from([None, "process"])),
    st.builds(
        Command,
        st.tuples(TEXTS, LOOSE),
        st.none() | LOOSE,
        HEADERS,
        st.none() | LOOSE,
        st.sampled_from([0, 100, 64 * 1024]),
    ),
    st.builds(Http, st.sampled_from(METHODS), st.just("https://example.org:8443/in?a=b"), HEADERS, PLAIN),
    st.builds(Prompt, TEXTS, st.sampled_from(["default", "coder"]), OBJECTS),
    st.builds(Event, TEXTS, st.none() | LOOSE),
)
ADDRESSEES = st.builds(DeliverTo, TEXTS, st.none() | LOOSE)
DEFINITIONS = st.builds(
    Definition,
    slug=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,63}", fullmatch=True).filter(lambda slug: slug != "heartbeat"),
    timing=TIMINGS,
    action=ACTIONS_DRAWN,
    enabled=st.sampled_from([None, True, False]),
    deliver=st.none() | ADDRESSEES | st.lists(ADDRESSEES, min_size=1, max_size=20, unique=True).map(tuple),
    catch_up=st.sampled_from(get_args(CatchUp)),
    catch_up_max=st.integers(1, CATCH_UP_LIMIT),
    lateness_max=st.none() | DURATIONS,
    overlap=st.sampled_from(get_args(Overlap)),
    timeout=DURATIONS,
    on_crash=st.sampled_from(get_args(OnCrash)),
    retry=st.none() | st.builds(Retry, st.none() | st.integers(0, 100), DURATIONS),
    errors_max=st.integers(0, 1000),
    active_hours=st.none() | st.builds(ActiveHours, CLOCK_TIMES, CLOCK_TIMES | st.just("24:00"), ZONES),
    stagger=st.integers(0, DAY),
    success=st.sampled_from([None, "accepted", "started", "finished"]),
    slot=st.none() | TEXTS,
    lane=st.none() | TEXTS,
)


def normal(definition: Definition) -> Definition:
    """Saying what is usual is saying nothing."""
    if definition.retry == usual_retry(definition.action):
        return replace(definition, retry=None)
    return definition


def said(definition: Definition) -> Definition:
    """What its writer said of it: not the anchor that it was given."""
    timing = definition.timing
    if isinstance(timing, Every) and timing.anchor_written is None:
        return replace(definition, timing=replace(timing, anchor=None))
    return definition


slow = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


@slow
@given(DEFINITIONS)
def test_what_is_written_reads_back_equal(definition: Definition) -> None:
    """Short and spelt out, through JSON text."""
    for full in (False, True):
        written = json.loads(json.dumps(definition_to_json(definition, full=full)))
        enabled = definition.enabled is not False if full or definition.enabled is False else None
        assert read(written) == replace(said(normal(definition)), enabled=enabled)


@slow
@given(DEFINITIONS)
def test_the_stored_text_is_canonical(definition: Definition) -> None:
    """Whichever way it was written, decoded or read, the same definition is the same text: an edit to it is none."""
    text = encode_definition(definition)
    assert encode_definition(decode_definition(text)) == text
    assert encode_definition(read(definition_to_json(definition, full=True))) == encode_definition(said(definition))
    assert encode_definition(read(definition_to_json(definition))) == encode_definition(said(definition))
    assert "enabled" not in json.loads(text)
    assert decode_definition(text) == replace(normal(definition), enabled=None)


@slow
@given(DEFINITIONS)
def test_spelt_out_names_everything_and_decides_the_same(definition: Definition) -> None:
    """What people read has every option in it."""
    written = definition_to_json(definition, full=True)
    assert set(OPTIONS.names) <= set(written)
    assert retry_of(read(written)) == retry_of(definition)


def test_the_shape_in_the_contract_reads_back_as_it_stands() -> None:
    """Word for word."""
    contract = {
        "slug": "daily-standup",
        "enabled": True,
        "schedule": {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Asia/Shanghai"},
        "prompt": "Summarise yesterday's commits",
        "agent": "default",
        "sessionConfig": {"model": "some-model", "persistSession": True},
        "deliver": {"channel": "last"},
        "catchUp": "once",
        "catchUpMax": 10,
        "maxLateness": None,
        "overlap": "skip",
        "timeout": "2h",
        "onCrash": "retry",
        "retry": {"times": None, "delay": "30m"},
        "maxConsecutiveErrors": 5,
        "activeHours": None,
        "stagger": "0s",
        "success": None,
        "slot": None,
        "lane": None,
        "alert": None,
        "budget": None,
        "check": None,
        "exclude": None,
        "runOn": None,
        "expiresAt": None,
    }
    assert definition_to_json(read(contract), full=True) == contract


def test_a_bare_definition_has_the_usual_everything() -> None:
    """Schedule and one action are all one must write."""
    assert read({"schedule": {"type": "manual"}, "prompt": "hi"}, slug="a") == Definition("a", Manual(), Prompt("hi"))
    assert encode_definition(read(BASE)) == '{"slug":"a","schedule":{"type":"manual"},"call":{"target":"x:y"}}'


def test_reading_back_and_writing_again_changes_nothing() -> None:
    """Read-back fields are ignored in a write; retry spelt out as it is anyway is not another definition."""
    first = read({**BASE, "call": None, "prompt": "hi"})
    answer = definition_to_json(first, full=True) | dict.fromkeys(READ_BACK, "whatever")
    assert encode_definition(read(answer)) == encode_definition(first)


@pytest.mark.parametrize("junk", [None, 5, [], {}, "x", {"deep": [1]}], ids=repr)
def test_read_back_fields_may_hold_anything(junk: Any) -> None:
    """They are ours, not the writer's."""
    assert read(BASE | dict.fromkeys(READ_BACK, junk)) == read(BASE)


def test_null_is_leaving_out() -> None:
    """For every option and every other action."""
    others = [name for name in ACTIONS if name != "call"]
    assert read(BASE | dict.fromkeys([*OPTIONS.names, *others, "agent", "sessionConfig"])) == read(BASE)


def test_the_usual_retry_given_in_python_is_the_usual_text() -> None:
    """An equal definition is an equal text, however it came about."""
    for action in (Call("x:y"), Prompt("hi")):
        plain = Definition("a", Manual(), action)
        assert encode_definition(replace(plain, retry=usual_retry(action))) == encode_definition(plain)


def test_an_empty_text_is_not_a_missing_one() -> None:
    """It reads back as it was written."""
    for action in (Event("x", ""), Command(("x",), "", {}, "")):
        assert decode_definition(encode_definition(Definition("a", Manual(), action))).action == action


def test_aliases_and_spelling_are_kept() -> None:
    """Read back as written."""
    for schedule in (
        {"type": "interval", "intervalMinutes": 90, "anchor": "2026-01-30T09:00:00.000Z"},
        {"type": "every", "every": "120m", "anchor": "2026-01-30T09:00:00+02:00"},
        {"type": "at", "at": "2026-01-30T09:00:00", "timezone": "Europe/Berlin"},
    ):
        assert definition_to_json(decode_definition(encode_definition(read(BASE | {"schedule": schedule}))))[
            "schedule"
        ] == (schedule)


def test_active_hours_without_a_zone_get_the_default_one_by_name() -> None:
    """So that reading the stored text needs no settings."""
    stored = encode_definition(read(BASE | {"activeHours": {"start": "09:00", "end": "17:00"}}))
    assert decode_definition(stored).active_hours == ActiveHours("09:00", "17:00", "Europe/Berlin")


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [None, 5, "x", [], [BASE], True], ids=repr)
def test_a_definition_is_an_object(data: Any) -> None:
    """Nothing else is one."""
    assert faults(data) == {"": "a definition is a JSON object; write {…}"}


def test_every_fault_is_found_at_once() -> None:
    """A person corrects a file once, not once per mistake."""
    wrong = {
        "slug": "Über",
        "schedule": {"type": "cron", "expression": "99 9 * * *", "timezone": "Mars/Olympus"},
        "http": {"method": "BREW", "url": "ftp://x", "headers": {"A": 1}, "hedaers": {}},
        "enabled": "yes",
        "deliver": {"to": 5},
        "catchUp": "never",
        "catchUpMax": 0,
        "maxLateness": 5,
        "overlap": "both",
        "timeout": "0s",
        "onCrash": "cry",
        "retry": {"times": -1, "delay": "0s", "dleay": "5m"},
        "maxConsecutiveErrors": -1,
        "activeHours": {"start": "25:00", "end": "x", "timezone": "Nowhere"},
        "stagger": "soon",
        "success": "claimed",
        "slot": "",
        "lane": 5,
        "catchup": "once",
    }
    assert set(faults(wrong)) == {
        *("slug", "schedule.expression", "schedule.timezone", "http.method", "http.url", "http.headers.A"),
        *("http.hedaers", "enabled", "deliver.channel", "deliver.to", "catchUp", "catchUpMax", "maxLateness"),
        *("overlap", "timeout", "onCrash", "retry.times", "retry.delay", "retry.dleay", "maxConsecutiveErrors"),
        *("activeHours.start", "activeHours.end", "activeHours.timezone", "stagger", "success", "slot", "lane"),
        "catchup",
    }


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"schedule": None}, "schedule", 'missing; say when, for example {"type": "every", "every": "2h"}'),
        ({"schedule": "hourly"}, "schedule", "'hourly' is not an object"),
        ({"schedule": {"type": "often"}}, "schedule.type", "'often' is not a kind of schedule"),
        ({"schedule": {"type": "every", "every": 5}}, "schedule.every", "5 is not"),
        ({"call": {}}, "call.target", "is missing; name a registered callable or module:function"),
        ({"call": {"target": " "}}, "call.target", "is empty; name a registered callable or module:function"),
        ({"call": "x:y"}, "call", "'x:y' is not an object; write {…}"),
        ({"call": {"target": "x:y", "isolate": "thread"}}, "call.isolate", "'thread' is not one of null, process"),
        ({"call": {"target": "x:y", "args": [1]}}, "call.args", "[1] is not an object; write {…}"),
        ({"call": None, "prompt": "  "}, "prompt", "is empty; write the prompt for the agent"),
        ({"call": None, "prompt": 5}, "prompt", "5 is not a string; put it in quotes"),
        ({"call": None, "prompt": "hi", "agent": 5}, "agent", "5 is not a string; put it in quotes"),
        ({"call": None, "prompt": "hi", "sessionConfig": "x"}, "sessionConfig", "'x' is not an object; write {…}"),
        ({"agent": "coder"}, "agent", "only works with a prompt; leave it out with call"),
        ({"call": None, "command": {"argv": "make report"}}, "command.argv", "must be a list of strings"),
        ({"call": None, "command": {"argv": []}}, "command.argv", "must be a list of strings"),
        ({"call": None, "command": {"argv": ["x", 5]}}, "command.argv", "must be a list of strings"),
        ({"call": None, "command": {"argv": [""]}}, "command.argv", "must be a list of strings"),
        ({"call": None, "command": {"argv": ["x\0"]}}, "command.argv[0]", "NUL"),
        ({"call": None, "command": {"argv": ["x"], "env": {"A": 1}}}, "command.env.A", "1 is not a string"),
        ({"call": None, "command": {"argv": ["x"], "outputMax": -1}}, "command.outputMax", "-1 is too small"),
        ({"call": None, "http": {}}, "http.url", "is missing; write for example http://127.0.0.1:9000/in"),
        ({"call": None, "http": {"url": "http://"}}, "http.url", "is not an http or https address"),
        ({"call": None, "http": {"url": "http://x:99999/"}}, "http.url", "is not an http or https address"),
        ({"call": None, "http": {"url": "http://[x/"}}, "http.url", "is not an http or https address"),
        ({"call": None, "http": {"url": "file:///etc/passwd"}}, "http.url", "is not an http or https address"),
        (
            {"call": None, "http": {"url": "http://x", "method": "BREW"}},
            "http.method",
            "'BREW' is not one of GET, POST",
        ),
        ({"call": None, "event": {"text": ""}}, "event.text", "is empty; write what the heartbeat should look at"),
        ({"deliver": {"channel": ""}}, "deliver.channel", "is empty; name a channel, or last"),
        ({"deliver": "telegram"}, "deliver", "'telegram' is not an object; write {…}"),
        ({"deliver": []}, "deliver", "has 0 items; give 1 to 20: name one or more, like "),
        ({"deliver": [{"channel": "phone"}, "mail"]}, "deliver[1]", "'mail' is not an object; write {…}"),
        (
            {"deliver": [{"channel": "phone"}, {"channel": "x", "too": "7"}]},
            "deliver[1].too",
            "unknown field; did you mean ",
        ),
        ({"deliver": [{"channel": "a"}, {"channel": "a"}]}, "deliver[1]", "'a' is named twice; remove one of them"),
        ({"retry": 3}, "retry", "3 is not an object; write {…}"),
        ({"catchUpMax": 10**9}, "catchUpMax", "1000000000 is too large; give at most 1000"),
        ({"timeout": "9000d"}, "timeout", "'9000d' is too long; give at most 3653d"),
        ({"timeOut": "5m"}, "timeOut", "unknown field; did you mean 'timeout'?"),
        ({"promt": "hi"}, "promt", "unknown field; did you mean 'prompt'?"),
    ],
)
def test_a_bad_field_is_refused_by_name_with_its_cure(changes: dict[str, Any], field: str, message: str) -> None:
    """And alone: one mistake, one complaint."""
    found = faults(BASE | changes)
    assert list(found) == [field]
    assert message in found[field]


def test_there_is_exactly_one_action() -> None:
    """None and two are refused alike, naming the choices."""
    choices = "give exactly one of prompt, command, http, call, dispatch, event"
    assert faults(BASE | {"call": None}) == {"action": f"missing; say what to do: {choices}"}
    both = BASE | {"prompt": "hi", "event": {"text": "x"}}
    assert faults(both) == {"event": f"prompt and call and event are mutually exclusive: {choices}"}


@pytest.mark.parametrize(
    "slug",
    ["../../x", "..", ".hidden", "A", "Über", "", " ", "a b", "a/b", "a\n", "-a", "_a", "x" * 65, "a\0", 5, [], {}],
    ids=repr,
)
def test_what_is_no_slug_is_refused(slug: Any) -> None:
    """It becomes a folder and a part of an address."""
    assert list(faults(BASE | {"slug": slug})) == ["slug"]


@pytest.mark.parametrize("slug", ["a", "0", "x" * 64, "a.b_c-d", "a..b", "heartbeat2"])
def test_what_is_a_slug_is_accepted(slug: str) -> None:
    """1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit."""
    assert read(BASE | {"slug": slug}).slug == slug


def test_the_heartbeat_s_slug_is_ours() -> None:
    """In JSON and in Python."""
    assert faults(BASE | {"slug": "heartbeat"}) == {"slug": "'heartbeat' is reserved; choose another name"}
    with pytest.raises(Invalid, match="reserved"):
        check_slug("heartbeat")


def test_the_slug_in_the_body_must_be_that_of_the_path() -> None:
    """Or be left out."""
    assert read({**BASE, "slug": None}, slug="b").slug == "b"
    assert read(BASE, slug="a").slug == "a"
    assert "does not match 'b' in the path" in faults(BASE, slug="b")["slug"]
    assert "is not a slug" in faults({**BASE, "slug": None})["slug"]


@pytest.mark.parametrize("name", ["sessionConfig", "timeout", "schedule", "slug", "version"])
def test_what_is_deep_or_huge_is_refused_shortly(name: str) -> None:
    """Never a crash, and never a message as long as the value."""
    deep: Any = 1
    for _ in range(900):
        deep = {"a": deep}
    base = {**BASE, "call": None, "prompt": "hi"}
    (message,) = faults(base | {name: deep}).values()
    assert message == "is nested deeper than 64 levels; make it flatter"
    if name not in ("sessionConfig", "version"):
        assert len(str(faults(base | {name: ["x" * 10**6] * 3}))) < 500


def test_a_thousand_faults_are_told_as_a_hundred() -> None:
    """With how many there are beyond."""
    env = {f"V{number}": number for number in range(1000)}
    found = faults(BASE | {"call": None, "command": {"argv": ["x"], "env": env}})
    assert (len(found), found[""]) == (101, "and 900 more errors")


@pytest.mark.parametrize("text", ["\ud800", "a\0b"], ids=["half a character", "NUL"])
@pytest.mark.parametrize("place", ["prompt", "lane", "sessionConfig"])
def test_text_that_cannot_be_stored_is_refused(text: str, place: str) -> None:
    """Accepted, it would fail in the store, or be lost there (L7)."""
    base = {**BASE, "call": None, "prompt": "hi"}
    value: Any = {"a": [text]} if place == "sessionConfig" else text
    assert list(faults(base | {place: value})) == ["sessionConfig.a[0]" if place == "sessionConfig" else place]


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.sampled_from("a0 \0\ud800é.:/*-@m"), max_size=6)
    | st.sampled_from(["5m", "0 9 * * *", "UTC", "manual", "every", "cron", "9" * 5000 + "s", "http://x", 10**400]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "every", "at", "times", "target", "argv", "url", "text", "channel", "delay", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)
NAMES = ["slug", "schedule", *ACTIONS, "agent", "sessionConfig", *OPTIONS.names, *READ_BACK[:2], "unknown"]


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(NAMES), JUNK, max_size=6), st.booleans())
def test_whatever_json_is_sent_is_read_or_refused(junk: dict[str, Any], is_on_top_of_a_good_one: bool) -> None:
    """Nothing but Invalid is ever raised; what is accepted can be stored and read again."""
    data = {**BASE, **junk} if is_on_top_of_a_good_one else junk
    try:
        definition = read(data)
    except Invalid as refused:
        assert refused.errors
        str(refused).encode()
        assert len(str(refused)) < 20_000
        return
    text = encode_definition(definition)
    text.encode()
    assert encode_definition(decode_definition(text)) == text


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_part_of_a_good_definition_may_be_replaced_by_anything(data: st.DataObject) -> None:
    """The same, deeper inside."""
    written = json.loads(json.dumps(definition_to_json(data.draw(DEFINITIONS), full=True)))
    target: Any = written
    while True:
        key = data.draw(st.sampled_from(sorted(target))) if isinstance(target, dict) else len(target) - 1
        if not isinstance(target[key], dict | list) or not target[key] or data.draw(st.booleans()):
            break
        target = target[key]
    target[key] = data.draw(JUNK)
    try:
        encode_definition(read(written)).encode()
    except Invalid as refused:
        str(refused).encode()


# -- the same for a Python program ------------------------------------------------------------------------------------


def test_options_in_python_have_their_json_names_and_rules() -> None:
    """All faults at once, the slug among them."""
    every = Every(HOUR, 0)
    made = definition_from_parts("a", every, Call("x:y"), {"timeout": "5m", "catchUp": "all"}, default_zone="UTC")
    assert made == Definition("a", every, Call("x:y"), timeout=5 * MINUTE, catch_up="all")
    with pytest.raises(Invalid) as refused:
        definition_from_parts("A", every, Call("x:y"), {"timeout": 5, "catchup": "all"}, default_zone="UTC")
    assert {error.field for error in refused.value.errors} == {"slug", "timeout", "catchup"}


@pytest.mark.parametrize(
    "action", [Call("x:y", {"a": object()}), Prompt("a\0"), Command(("x", "\ud800")), Http("POST", "http://x", {}, {1})]
)
@pytest.mark.parametrize("options", [{}, {"timeout": "5m"}], ids=["bare", "with options"])
def test_what_an_action_carries_must_be_plain_json(action: ActionSpec, options: dict[str, Any]) -> None:
    """It is stored, and another process may run it."""
    with pytest.raises(Invalid):
        definition_from_parts("a", Manual(), action, options, default_zone="UTC")


def test_one_action_by_the_name_of_its_field() -> None:
    """As the Python API takes it."""
    assert action_from_json("command", {"argv": ["make"]}) == Command(("make",))
    with pytest.raises(Invalid) as refused:
        action_from_json("http", {"url": "x", "method": 5})
    assert FieldError("http.method", "5 is not a string; put it in quotes") in refused.value.errors


@slow
@given(DEFINITIONS)
def test_what_was_written_is_shown_like_what_is_stored(definition: Definition) -> None:
    """The response to a PUT shows the definition that was given, a GET the one that is read; `enabled` is state."""
    given_, read = definition_to_json(definition, full=True), decode_definition(encode_definition(definition))
    assert given_ | {"enabled": True} == definition_to_json(read, full=True)


@slow
@given(DEFINITIONS)
def test_the_stored_text_is_what_the_json_shape_says(definition: Definition) -> None:
    """It is put together from parts; read as JSON it is the shape itself, in the same order, but for `enabled` and the
    anchor that nobody wrote."""
    shape = definition_to_json(definition) | {"schedule": timing_to_store(definition.timing)}
    shape.pop("enabled", None)
    assert encode_definition(definition) == json.dumps(shape, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize(
    "spellings",
    [
        [
            {"type": "every", "every": "2h"},
            {"type": "every", "every": "120m"},
            {"type": "interval", "intervalMinutes": 120},
        ],
        [{"type": "once", "at": "2030-01-01T00:00:00Z"}, {"type": "at", "at": "2030-01-01T01:00:00+01:00"}],
        [
            {"type": "every", "every": "2h", "anchor": "2030-01-01T00:00:00Z"},
            {"type": "every", "every": "2h", "anchor": "2030-01-01T01:00:00+01:00"},
            {"type": "every", "every": "2h", "anchor": "2030-01-01T00:00:00Z", "timezone": "Europe/Berlin"},
        ],
    ],
)
def test_equal_timings_are_stored_as_each_was_written(spellings: list[dict[str, Any]]) -> None:
    """What is remembered of one is not handed out for another that only means the same."""
    for schedule in (*spellings, *spellings):
        definition = read(BASE | {"schedule": schedule})
        assert json.loads(encode_definition(definition))["schedule"] == schedule


def test_many_texts_are_those_of_each_alone() -> None:
    """In a row of definitions that look the same: other arguments that compare equal, another spelling, an option."""
    noon = Once(43_200_000, written="1970-01-01T12:00:00Z")
    call = Call("m:f", {})
    row = [
        Definition("a", noon, call),
        Definition("b", noon, Call("m:f", {})),
        Definition("c", Once(43_200_000, written="noon"), call),
        Definition("d", noon, Call("m:f", {"n": 1})),
        Definition("e", noon, Call("m:f", {"n": True})),
        Definition("f", noon, call, lane="desk"),
        Definition("g", noon, call, lane="desk"),
        Definition("h", noon, call),
    ]
    encoded = encode_many(row, [one.slug for one in row])
    assert [one.text for one in encoded] == [encode_definition(one) for one in row]
    assert [one.model.slug for one in encoded] == ["a", "a", "c", "d", "e", "f", "f", "h"]
