"""Reads the source: what is called from where."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import wakeful

SOURCE: Final = Path(wakeful.__file__).parent


@cache
def callers() -> Mapping[str, set[str]]:
    """For everything that is called in the source, the functions that call it, or hand it on as `partial` does."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        tree = ast.parse(path.read_text("utf-8"))
        known = dict(_known(tree, module))
        for caller, called in _calls(tree, module):
            names = _names(called)
            found[known.get(names[0], names[0]) if len(names) == 1 else ".".join(names[-2:])].add(caller)
    return found


def replaced() -> Iterator[tuple[str, str]]:
    """The functions that call `_replace`, and the columns that they change by it."""
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        yield from _replaced(ast.parse(path.read_text("utf-8")), module)


def _replaced(node: ast.AST, inside: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield from _replaced(child, f"{inside}.{name}")
                continue
            case ast.Call(func=ast.Attribute(attr="_replace"), keywords=keywords):
                yield from ((inside, keyword.arg) for keyword in keywords if keyword.arg is not None)
        yield from _replaced(child, inside)


def _known(tree: ast.Module, module: str) -> Iterator[tuple[str, str]]:
    """The functions of this module, and those it imports from others of ours, with their full names."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name):
                yield name, f"{module}.{name}"
            case ast.ImportFrom(module=str(origin), names=names) if origin.startswith("wakeful."):
                for alias in names:
                    yield alias.asname or alias.name, f"{origin.removeprefix('wakeful.')}.{alias.name}"


def _calls(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.expr]]:
    """What is called below this node, and the function it is called in."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield from _calls(child, f"{inside}.{name}")
                continue
            case ast.Call(func=ast.Name(id="partial"), args=[called, *_]) | ast.Call(func=called):
                yield inside, called
        yield from _calls(child, inside)


def _names(node: ast.AST) -> list[str]:
    """`a.b[c].d` as a, b, d."""
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Attribute(value=value, attr=name):
            return [*_names(value), name]
        case ast.Subscript(value=value):
            return _names(value)
        case _:
            return ["?"]
