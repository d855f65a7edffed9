"""The fire goes where a function asks for it, and replaces no default."""

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Union

import pytest

import wakeful
from embedding import asked_jobs
from wakeful import Fire, Wakeful, every, manual
from wakeful import sync as blocking
from wakeful.testing import virtual

START = "2026-03-28T12:00Z"
HERE = Path(__file__)


@pytest.fixture
def app(tmp_path: Path) -> Wakeful:
    return Wakeful(tmp_path / "wakeful.db", timezone="UTC")


def kind(value: object) -> str:
    return "fire" if isinstance(value, Fire) else repr(value)


async def output_of(app: Wakeful, function: Callable[..., Any], **args: Any) -> str | None:
    """What one run of a declared function returned."""
    app.job(manual(), "it", args=args)(function)
    async with app:
        run = await app.run_now("it", wait=True)
    assert run.outcome == "succeeded", run.error
    return run.output


def default(days: int = 30) -> str:
    return kind(days)


def wide_default(days: int | None = None) -> str:
    return kind(days)


def two_defaults(days=30, dry=False) -> str:  # type: ignore[no-untyped-def]
    return f"{kind(days)} {kind(dry)}"


def keyword_default(*, days=30) -> str:  # type: ignore[no-untyped-def]
    return kind(days)


def named_last(days: int = 30, fire: object = None) -> str:
    return f"{kind(days)} {kind(fire)}"


def named_keyword(days: int = 30, *, fire: object = None) -> str:
    return f"{kind(days)} {kind(fire)}"


def named_positional(days: int = 30, fire: object = None, /) -> str:
    return f"{kind(days)} {kind(fire)}"


def annotated(days: int = 30, event: Fire | None = None) -> str:
    return f"{kind(days)} {kind(event)}"


def annotated_union(days: int = 30, event: Union["Fire", None] = None) -> str:
    return f"{kind(days)} {kind(event)}"


def annotated_more(days: int = 30, event: Annotated[Fire | None, "documented"] = None) -> str:
    return f"{kind(days)} {kind(event)}"


def annotated_list(days: int = 30, events: list[Fire] | None = None) -> str:
    return f"{kind(days)} {kind(events)}"


def one_required(event: Any, days: int = 30) -> str:
    return f"{kind(event)} {kind(days)}"


def rest(*args: Any) -> str:
    return " ".join(map(kind, args))


def default_and_rest(days: int = 30, *args: Any) -> str:
    return " ".join(map(kind, (days, *args)))


def keywords(**given: Any) -> str:
    return " ".join(given) or "none"


class Caller:
    def __call__(self, days: int = 30) -> str:
        return kind(days)


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return inner


@pytest.mark.parametrize(
    ("function", "args", "output"),
    [
        (default, {}, "30"),
        (default, {"days": 7}, "7"),
        (wide_default, {}, "None"),
        (two_defaults, {}, "30 False"),
        (two_defaults, {"dry": True}, "30 True"),
        (keyword_default, {}, "30"),
        (named_last, {}, "30 fire"),
        (named_last, {"days": 7}, "7 fire"),
        (named_last, {"fire": "mine"}, "30 'mine'"),
        (named_keyword, {}, "30 fire"),
        (named_positional, {}, "30 fire"),
        (annotated, {}, "30 fire"),
        (annotated_union, {}, "30 fire"),
        (annotated_more, {}, "30 fire"),
        (annotated_list, {}, "30 None"),
        (asked_jobs.by_name, {}, "30 Fire"),
        (asked_jobs.by_optional, {}, "30 Fire"),
        (asked_jobs.by_other, {}, "30 None"),
        (one_required, {}, "fire 30"),
        (one_required, {"days": 7}, "fire 7"),
        (rest, {}, "fire"),
        (default_and_rest, {}, "30"),
        (keywords, {}, "none"),
        (Caller(), {}, "30"),
        (functools.partial(default, days=7), {}, "7"),
        (functools.partial(named_last, fire="mine"), {}, "30 'mine'"),
        (logged(default), {}, "30"),
        (logged(named_last), {}, "30 fire"),
    ],
)
async def test_the_fire_goes_only_where_it_is_asked_for(
    app: Wakeful, function: Callable[..., Any], args: dict[str, Any], output: str
) -> None:
    """By name, by annotation, as the single required parameter, or in `*args`; any other default is kept."""
    assert await output_of(app, function, **args) == output


async def test_a_function_of_another_process_is_asked_the_same_way(app: Wakeful) -> None:
    async with app:
        await app.add("kept", manual(), call=default, isolate="process")
        await app.add("asked", manual(), call=named_last, isolate="process")
        kept, asked = [await app.run_now(slug, wait=True) for slug in ("kept", "asked")]
    assert (kept.output, asked.output) == ("30", "30 fire")


async def test_the_handler_of_schedules_without_an_action(app: Wakeful) -> None:
    app.on_due(default)
    async with app:
        await app.add("it", manual())
        assert (await app.run_now("it", wait=True)).output == "30"


async def test_an_agent_may_take_it_by_name(app: Wakeful) -> None:
    """`def answer(prompt, fire)` is how the documentation orders them."""

    @app.agent()
    async def answer(prompt: str, history: tuple[str, ...] = (), *, fire: Fire) -> str:
        return f"{prompt} {history} {fire.slug}"

    async with app:
        await app.add("it", manual(), prompt="hello")
        assert (await app.run_now("it", wait=True)).reply == "[scheduler:it] hello () it"


async def test_stand_ins_on_a_virtual_clock_ask_the_same_way(app: Wakeful) -> None:
    """A replacement for commands keeps its defaults, and gets the fire where it asks."""

    def kept(command: Any, days: int = 30) -> str:
        return kind(days)

    def asked(command: Any, fire: Any) -> str:
        return f"{command.argv[0]} {kind(fire)}"

    for function, output in ((kept, "30"), (asked, "true fire")):
        async with virtual(app, start=START, store=None, on_command=function):
            await app.add("it", manual(), command=["true"])
            assert (await app.run_now("it", wait=True)).output == output


async def test_two_required_parameters_are_refused(app: Wakeful) -> None:
    """Nothing says which of them is the fire."""

    def copy(source: str, target: str) -> None: ...

    app.job(manual())(copy)
    with pytest.raises(wakeful.Invalid, match=r"missing a required argument: 'source'\); correct its args"):
        await app.start()


# --- programs of 0.2 --------------------------------------------------------------------------------------------------


def legacy(event=None) -> str:  # type: ignore[no-untyped-def]
    return kind(event)


@pytest.mark.parametrize("declare", ["job", "on_due", "add", "add by name"])
async def test_an_only_parameter_with_a_default_still_gets_it_with_a_warning(app: Wakeful, declare: str) -> None:
    """The warning is given at the declaration, and points at the function."""
    line = legacy.__code__.co_firstlineno
    with pytest.warns(DeprecationWarning, match=r"legacy gets the fire in 'event'.*Rename the parameter") as seen:
        if declare == "job":
            app.job(manual(), "it")(legacy)
        elif declare == "on_due":
            app.on_due(legacy)
        async with app:
            if declare == "add":
                await app.add("it", manual(), call=legacy)
            elif declare == "add by name":
                await app.add("it", manual(), call="embedding.asked_jobs:legacy")
            elif declare == "on_due":
                await app.add("it", manual())
            run = await app.run_now("it", wait=True)
    assert run.output == ("Fire" if declare == "add by name" else "fire")
    (warning,) = seen
    if declare != "add by name":
        assert (Path(warning.filename), warning.lineno) == (HERE, line)


def test_the_warning_points_at_the_function_through_the_blocking_app(tmp_path: Path) -> None:
    with blocking.Wakeful(tmp_path / "wakeful.db") as app:
        with pytest.warns(DeprecationWarning) as seen:
            app.job(every("1h"))(legacy)
        assert Path(seen[0].filename) == HERE


@pytest.mark.parametrize("function", [default, named_last, one_required, rest, keywords, two_defaults])
def test_no_other_function_is_warned_about(app: Wakeful, function: Callable[..., Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        app.job(every("1h"), "it")(function)


def test_the_fire_has_its_public_name() -> None:
    """`Fire` is exported, and what a function gets is one."""
    assert Fire.__name__ == "Fire" and "Fire" in wakeful.__all__
