"""Pickles as plain data. Nothing in a pickle is imported, called or created: what it names stays a name.

The opcodes are those that `pickle` writes. What a pickle would call becomes a `Made`: the name, the arguments and the
state that it would get.
"""

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from wakeful.integrations.imports.entries import refuse


@dataclass(frozen=True, slots=True)
class Named:
    """Something that the pickle names, such as a class."""

    module: str
    name: str


@dataclass(slots=True, eq=False)
class Made:
    """What the pickle would create by a call."""

    what: Any
    args: Any
    state: Any = None

    @property
    def kind(self) -> str:
        """The name of its class, or of what is called."""
        return self.what.name if isinstance(self.what, Named) else ""


_MARK: Final = object()
_KEYS: Final = (str, int, float, bool, bytes, type(None), Named)
_VALUES: Final = frozenset({
    "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG", "BINFLOAT", "FLOAT", "SHORT_BINUNICODE",
    "BINUNICODE", "BINUNICODE8", "UNICODE", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "SHORT_BINSTRING", "BINSTRING",
    "STRING", "BYTEARRAY8",
})  # fmt: skip
_CONSTANTS: Final = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_NOTHING: Final = frozenset({"PROTO", "FRAME"})


@dataclass(slots=True)
class _Machine:
    """The stack and the memo while a pickle is read."""

    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def since_mark(self) -> list[Any]:
        at = max(number for number, value in enumerate(self.stack) if value is _MARK)
        taken = self.stack[at + 1 :]
        del self.stack[at:]
        return taken

    def several(self, count: int) -> list[Any]:
        taken = self.stack[-count:]
        del self.stack[-count:]
        if len(taken) != count:
            raise IndexError
        return taken

    def call(self) -> None:
        what, args = self.several(2)
        self.stack.append(Made(what, args))

    def call_with_keywords(self) -> None:
        what, args, keywords = self.several(3)
        self.stack.append(Made(what, (args, keywords)))

    def build(self) -> None:
        state = self.stack.pop()
        made = self.stack[-1]
        if isinstance(made, Made):
            made.state = state

    def name(self) -> None:
        module, name = self.several(2)
        self.stack.append(Named(str(module), str(name)))

    def set_items(self, pairs: list[Any]) -> None:
        holder = self.stack[-1]
        if isinstance(holder, dict):
            holder.update((key, value) for key, value in zip(pairs[::2], pairs[1::2], strict=True) if _is_key(key))

    def add(self, values: list[Any]) -> None:
        if isinstance(self.stack[-1], list):
            self.stack[-1].extend(values)


def _is_key(value: Any) -> bool:
    return isinstance(value, _KEYS)


_STEPS: Final[dict[str, Callable[[_Machine], object]]] = {
    "MARK": lambda machine: machine.stack.append(_MARK),
    "EMPTY_DICT": lambda machine: machine.stack.append({}),
    "EMPTY_LIST": lambda machine: machine.stack.append([]),
    "EMPTY_SET": lambda machine: machine.stack.append([]),
    "MEMOIZE": lambda machine: machine.memo.__setitem__(len(machine.memo), machine.stack[-1]),
    "STACK_GLOBAL": _Machine.name,
    "NEWOBJ": _Machine.call,
    "REDUCE": _Machine.call,
    "NEWOBJ_EX": _Machine.call_with_keywords,
    "BUILD": _Machine.build,
    "SETITEM": lambda machine: machine.set_items(machine.several(2)),
    "SETITEMS": lambda machine: machine.set_items(machine.since_mark()),
    "APPEND": lambda machine: machine.add(machine.several(1)),
    "APPENDS": lambda machine: machine.add(machine.since_mark()),
    "ADDITEMS": lambda machine: machine.add(machine.since_mark()),
    "FROZENSET": lambda machine: machine.stack.append(machine.since_mark()),
    "TUPLE": lambda machine: machine.stack.append(tuple(machine.since_mark())),
    "LIST": lambda machine: machine.stack.append(machine.since_mark()),
    "TUPLE1": lambda machine: machine.stack.append(tuple(machine.several(1))),
    "TUPLE2": lambda machine: machine.stack.append(tuple(machine.several(2))),
    "TUPLE3": lambda machine: machine.stack.append(tuple(machine.several(3))),
    "POP": lambda machine: machine.stack.pop(),
}


def read_pickle(data: bytes) -> Any:
    """What a pickle holds, as plain data. Refuses what is no pickle, or has something that `pickle` does not write."""
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return machine.stack[-1]
            _step(machine, opcode.name, argument)
    except (ValueError, IndexError, KeyError, RecursionError, TypeError) as error:
        refuse(f"its pickle cannot be read ({str(error)[:80] or type(error).__name__})")
    return refuse("its pickle has no end")


def _step(machine: _Machine, name: str, argument: Any) -> None:
    if name in _VALUES:
        machine.stack.append(argument)
    elif name in _CONSTANTS:
        machine.stack.append(_CONSTANTS[name])
    elif name in ("BINGET", "LONG_BINGET", "GET"):
        machine.stack.append(machine.memo[argument])
    elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
        machine.memo[argument] = machine.stack[-1]
    elif name == "GLOBAL":
        module, _, inner = str(argument).partition(" ")
        machine.stack.append(Named(module, inner))
    elif name in _STEPS:
        _STEPS[name](machine)
    elif name not in _NOTHING:
        refuse(f"its pickle has {name}, which is not read")
