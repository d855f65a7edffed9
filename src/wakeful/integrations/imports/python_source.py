"""Settings in Python source, read from its syntax tree. Nothing of it is imported or run."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wakeful.integrations.imports.entries import SourceFile, SourceRefused, refuse

_OPERATIONS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_TIMEDELTA: Final = {
    "weeks": 604_800_000, "days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000,
    "milliseconds": 1, "microseconds": 0.001,
}  # fmt: skip
_IN_ORDER: Final = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")
_NUMBER_MAX: Final = 1e12


@dataclass(frozen=True, slots=True)
class Called:
    """A call in the source: the dotted name, and what it is given."""

    name: str
    args: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The last part of its name."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Unknown:
    """What only running the source could tell."""

    text: str


def tree_of(file: SourceFile) -> ast.Module:
    """The syntax tree of a file."""
    try:
        return ast.parse(file.text)
    except SyntaxError as error:
        raise SourceRefused(file.place, f"it is not Python ({error.msg})", error.lineno) from None
    except (RecursionError, ValueError, MemoryError):
        raise SourceRefused(file.place, "it is not Python, or nested too deeply") from None


def constants_of(tree: ast.Module) -> dict[str, Any]:
    """The names that the module gives a value to, where this is known without running it."""
    names: dict[str, Any] = {}
    for statement in tree.body:
        for target, value in assigned(statement):
            if isinstance(target, ast.Name):
                names[target.id] = value_of(value, names)
    return names


def assigned(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, with the value."""
    if isinstance(statement, ast.Assign):
        yield from ((target, statement.value) for target in statement.targets)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield statement.target, statement.value


def value_of(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression, as far as it can be told."""
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Set():
            return [value_of(part, names) for part in node.elts]
        case ast.Tuple():
            return tuple(value_of(part, names) for part in node.elts)
        case ast.Dict():
            return {
                key.value: value_of(value, names)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            }
        case ast.Call():
            keywords = {word.arg: value_of(word.value, names) for word in node.keywords if word.arg is not None}
            called = Called(dotted(node.func), tuple(value_of(part, names) for part in node.args), keywords)
            return dict(keywords) if called.name == "dict" and not called.args else called
        case ast.Name():
            return names.get(node.id, Unknown(node.id))
        case ast.UnaryOp(op=ast.USub()):
            inner = value_of(node.operand, names)
            return -inner if isinstance(inner, int | float) else Unknown(ast.unparse(node))
        case ast.BinOp():
            return _computed(node, names)
        case _:
            return Unknown(ast.unparse(node)[:200])


def _computed(node: ast.BinOp, names: Mapping[str, Any]) -> Any:
    left, right = value_of(node.left, names), value_of(node.right, names)
    operation = _OPERATIONS.get(type(node.op))
    are_numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if operation is None or not are_numbers or max(abs(left), abs(right)) > _NUMBER_MAX or right == 0:
        return Unknown(ast.unparse(node)[:200])
    return operation(left, right)


def dotted(node: ast.expr) -> str:
    """`a.b.c` as text; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else node.attr
    return ""


def milliseconds_of(value: Any) -> int | None:
    """A timedelta in milliseconds; None if it is none."""
    if not isinstance(value, Called) or value.last != "timedelta":
        return None
    given = {**dict(zip(_IN_ORDER, value.args, strict=False)), **value.keywords}
    if not all(name in _TIMEDELTA and isinstance(number, int | float) for name, number in given.items()):
        refuse("its interval is computed by the program")
    length: float = sum(_TIMEDELTA[name] * number for name, number in given.items())
    return round(length)


def written(value: Any) -> str:
    """A value as the source has it."""
    if isinstance(value, Called):
        given = [*map(written, value.args), *(f"{name}={written(inner)}" for name, inner in value.keywords.items())]
        return f"{value.last}({', '.join(given)})"
    return value.text if isinstance(value, Unknown) else repr(value)


def plain(value: Any) -> bool:
    """Whether a value is known entirely."""
    if isinstance(value, Called | Unknown):
        return False
    if isinstance(value, dict):
        return all(plain(part) for part in value.values())
    return all(plain(part) for part in value) if isinstance(value, list | tuple) else True
