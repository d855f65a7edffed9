"""Usage: the tokens and the cost of one run, with one set of names.

Theory of operation
-------------------
Every provider uses its own names. Here there is one set: `input` is everything that was sent, including the part read
from a cache (`cachedInput`); `output` is everything that was generated, including the part used for thinking
(`reasoning`); `total` is both. `cost` is in US dollars. An unknown field is left out, never written as 0. `complete`
returns the external shape, with null for unknown fields. `priced` says where a cost comes from.

Some programs report totals of a whole session; for these, `since` subtracts what was known before.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, TypedDict, cast

from wakeful.core.returned import returned

Priced: TypeAlias = Literal["reported", "table", "settings", "unknown"]


class Usage(TypedDict, total=False):
    """What a run used; unknown fields are left out."""

    input: int
    cachedInput: int
    output: int
    reasoning: int
    total: int
    model: str
    cost: float
    priced: Literal["table", "settings"]
    # from a table of prices, or the agent's `cost_per_run`; left out: the program reported the cost
    listPrice: bool  # the cost is what the tokens would cost; a subscription is paid differently


COUNTS: Final = ("input", "cachedInput", "output", "reasoning", "total")
COUNT_MAX: Final = 10**12
COST_MAX: Final = 10_000.0
"""Figures above these are treated as errors, and the usage as unknown: totals of such figures would overflow."""
MODEL_MAX: Final = 200

# Names that other providers use for the same counts; the first one present is used.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("input", "inputTokens", "input_tokens", "prompt_tokens", "promptTokens", "promptTokenCount"),
    "cachedInput": ("cachedInput", "cachedInputTokens", "cached_input_tokens", "cached_tokens"),
    "output": ("output", "outputTokens", "output_tokens", "completion_tokens", "completionTokens"),
    "reasoning": ("reasoning", "reasoningTokens", "reasoning_output_tokens", "reasoning_tokens"),
    "total": ("total", "totalTokens", "total_tokens"),
}
_NESTED: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "cachedInput": (("prompt_tokens_details", "cached_tokens"), ("input_tokens_details", "cached_tokens")),
    "reasoning": (
        ("completion_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "thinking_tokens"),
    ),
}
_OWN: Final = frozenset(Usage.__annotations__)
_COSTS: Final = ("cost", "costUsd", "cost_usd", "total_cost_usd", "costUSD")
# Anthropic's names. There, cache reads and writes are counted in addition to the input.
_CACHE_READ: Final = ("cache_read_input_tokens", "cacheReadInputTokens")
_CACHE_WRITE: Final = ("cache_creation_input_tokens", "cacheCreationInputTokens")


def usage_of(counts: object) -> Usage | None:
    """The usage these counts represent, under any of the known names; other values are ignored."""
    if not isinstance(counts, Mapping):
        return None
    if counts.keys() <= _OWN:  # our own names alone: one that was read before, in most cases
        own = {field: count for field in COUNTS if is_count(count := counts.get(field))}
        return _usage_with(own, counts, counts.get("cost"))
    known: dict[str, Any] = {}
    for field in COUNTS:
        count = _first(counts, _NAMES[field])
        if count is None:
            count = _nested(counts, _NESTED.get(field, ()))
        if count is not None:
            known[field] = count
    read, written = _first(counts, _CACHE_READ), _first(counts, _CACHE_WRITE)
    if "input" in known and (read is not None or written is not None):
        known["input"] += (read or 0) + (written or 0)
        known.setdefault("cachedInput", read or 0)
    return _usage_with(known, counts, next((counts[name] for name in _COSTS if is_cost(counts.get(name))), None))


def _usage_with(known: dict[str, Any], counts: Mapping[Any, Any], cost: Any) -> Usage | None:
    model = counts.get("model")
    total = usage(**known, model=model if isinstance(model, str) else None, cost=cost if is_cost(cost) else None)
    return None if total is None else _labelled(total, counts)


def usage(
    *,
    input: int | None = None,
    cachedInput: int | None = None,  # noqa: N803 - likewise
    output: int | None = None,
    reasoning: int | None = None,
    total: int | None = None,
    model: str | None = None,
    cost: float | None = None,
) -> Usage | None:
    """A usage with the known fields; None if there are none. A total that was not reported is the sum."""
    if total is None and input is not None and output is not None:
        total = input + output
    given = {"input": input, "cachedInput": cachedInput, "output": output, "reasoning": reasoning, "total": total}
    known: dict[str, Any] = {name: count for name, count in given.items() if count is not None}
    if cost is not None:
        known["cost"] = cost
    if known and model:
        known["model"] = model[:MODEL_MAX]
    return cast(Usage, known) if known else None


def added(first: Usage | None, second: Usage | None) -> Usage | None:
    """The sum of two usages. The model is kept if both name the same one."""
    if first is None or second is None:
        return first or second
    sums: dict[str, Any] = {}
    for name in (*COUNTS, "cost"):
        known = [value for value in (first.get(name), second.get(name)) if value is not None]
        if known:
            sums[name] = sum(known)
    if not all("total" in part for part in (first, second)):
        sums.pop("total", None)
        if "input" in sums and "output" in sums:
            sums["total"] = sums["input"] + sums["output"]
    models = {part["model"] for part in (first, second) if "model" in part}
    if len(models) == 1:
        sums["model"] = models.pop()
    for part in (first, second):
        _labelled(sums, part)
    return cast(Usage, sums)


def since(total: Usage | None, before: Usage | None) -> Usage | None:
    """The usage since `before`, for counts that only grow; a smaller one means that the program restarted at 0."""
    if total is None or before is None:
        return total
    left, known = dict(total), cast(Mapping[str, Any], before)
    if any(left.get(name, 0) < known.get(name, 0) for name in COUNTS):
        return total
    for name in (*COUNTS, "cost"):
        if name in left:
            left[name] = max(left[name] - known.get(name, 0), 0)
    return cast(Usage, left)


class CompleteUsage(TypedDict):
    input: Annotated[int | None, "input tokens, including cached ones"]
    cachedInput: Annotated[int | None, "input tokens read from a cache"]
    output: Annotated[int | None, "output tokens, including reasoning"]
    reasoning: int | None
    total: int | None
    model: str | None
    cost: Annotated[float | None, "in US dollars"]
    priced: Priced
    listPrice: Annotated[bool, "the cost is the list price of the tokens; a subscription is paid differently"]


USAGE: Final = returned(CompleteUsage, name="Usage", says="Tokens and cost of one run; null if unknown.")


def complete(kept: object) -> CompleteUsage | None:
    """The external shape of what is stored on a run. Rows written by 0.1 use other names for the counts."""
    known = usage_of(kept)
    if known is None:
        return None
    fields = {name: known.get(name) for name in (*COUNTS, "model", "cost")}
    return cast(CompleteUsage, {**fields, "priced": priced(known), "listPrice": known.get("listPrice", False)})


def priced(known: Usage | None) -> Priced:
    """How the cost is known."""
    return "unknown" if known is None or known.get("cost") is None else known.get("priced", "reported")


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX


def is_cost(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= COST_MAX


def _labelled(known: Any, counts: Mapping[Any, Any]) -> Any:
    """Keep where a cost comes from."""
    if known.get("cost") is not None:
        if counts.get("priced") in ("table", "settings"):
            known["priced"] = counts["priced"]
        if counts.get("listPrice") is True:
            known["listPrice"] = True
    return known


def _first(counts: Mapping[Any, Any], names: tuple[str, ...]) -> int | None:
    return next((counts[name] for name in names if is_count(counts.get(name))), None)


def _nested(counts: Mapping[Any, Any], places: tuple[tuple[str, str], ...]) -> int | None:
    for outer, inner in places:
        details = counts.get(outer)
        if isinstance(details, Mapping) and is_count(details.get(inner)):
            return int(details[inner])
    return None
