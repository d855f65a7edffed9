"""Sets of minutes, hours, days and so on as one cron expression, for schedulers in which the date and the day of the
week must both match."""

from collections.abc import Collection, Iterable
from typing import Final

from wakeful.integrations.imports.entries import refuse

_WEEKS: Final = {tuple(range(7 * n - 6, min(7 * n, 31) + 1)): n for n in range(1, 6)}


def cron_text(
    minutes: Iterable[int],
    hours: Iterable[int],
    days: Collection[int] | None,
    months: Iterable[int] | None,
    weekdays: Collection[int] | None,
    *,
    seconds: Collection[int] = (0,),
    source: str,
) -> str:
    """The expression, with a field for seconds if it needs one; Sunday is 0, None matches anything. Refuses what cron
    cannot express, with the text of the source."""
    day, weekday = _day_fields(days, weekdays, source)
    fields = [_list(minutes, 60), _list(hours, 24), day, _list(months, 12, low=1), weekday]
    if set(seconds) != {0}:
        fields.insert(0, _list(seconds, 60))
    return " ".join(fields)


def weekday_list(weekdays: Iterable[int] | None) -> str:
    """The field of the day of the week; Sunday is 0."""
    return "*" if weekdays is None else ",".join(map(str, sorted(weekdays)))


def with_days(expression: str, day: str, weekday: str) -> str:
    """The expression with these fields for the day of the month and of the week."""
    *before, _, month, _ = expression.split()
    return " ".join([*before, day, month, weekday])


def _day_fields(days: Collection[int] | None, weekdays: Collection[int] | None, source: str) -> tuple[str, str]:
    named = weekday_list(weekdays)
    if days is None:
        return "*", named
    numbers = tuple(sorted(days))
    if weekdays is None:
        return ",".join(map(str, numbers)), "*"
    if numbers in _WEEKS:
        return "*", ",".join(f"{day}#{_WEEKS[numbers]}" for day in sorted(weekdays))
    if 1 not in numbers:
        refuse(f"'{source}' needs a weekday and a date at once, which cron cannot express")
    return ",".join(["*/31", *map(str, numbers[1:])]), named  # a day field that begins with `*`: both must match


def _list(values: Iterable[int] | None, size: int, *, low: int = 0) -> str:
    """A cron field for these values."""
    if values is None:
        return "*"
    numbers = sorted(values)
    if len(numbers) == size:
        return "*"
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 0
    if len(numbers) > 3 and numbers == list(range(low, low + size, step)):
        return f"*/{step}"
    return ",".join(map(str, numbers))
