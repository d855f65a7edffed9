"""The parameters of an operation: their kinds, their limits, and how they are read from outside.

The annotation of a parameter says its type; a `Param` in it adds what people need to know, and how text from outside is
checked. Python callers pass values, which are not checked again.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NoReturn, TypeAlias, Union, get_args, get_origin

from wakeful.core.description import Object, camel
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import shown

Where: TypeAlias = Literal["path", "query", "header", "body", "document"]


@dataclass(frozen=True, slots=True, eq=False)  # hashable: it stands in annotations
class Param:
    """What a parameter's annotation adds to its type."""

    says: str = ""
    name: str = ""  # outside Python, if it is not the attribute's in camel case
    where: Where | None = None
    least: int | None = None
    most: int | None = None
    longest: int | None = None
    pattern: str = ""
    example: str = ""
    schema: Mapping[str, Any] | None = None  # in place of the type's
    read: Callable[[Any], Any] | None = None  # reads what came from outside; raises Invalid
    owned: Callable[[str], str] | None = None  # names what an agent may own: checks the name that a person gives
    inner: tuple[Object[Any], ...] = ()  # objects that the schema names
    missing: str = ""  # what to do if it is left out
    refusal: str = ""  # the text if it is left out; default: it is missing
    unchecked: bool = False  # the function refuses wrong values itself


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation."""

    attribute: str
    name: str
    where: Where
    type: Any
    is_optional: bool  # may be None
    is_required: bool
    default: Any
    about: Param

    @property
    def if_left_out(self) -> str:
        """The refusal if it is required and left out."""
        return self.about.refusal or f"is missing; {self.about.missing or 'give it'}"

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        about = self.about
        if about.schema is not None:
            one = dict(about.schema)
        elif get_origin(self.type) is Literal:
            one = {"type": "string", "enum": list(get_args(self.type))}
        else:
            one = {"type": _WORDS[self.type][0]}
        limits = {"minimum": about.least, "maximum": about.most, "maxLength": about.longest}
        one |= {key: limit for key, limit in limits.items() if limit is not None}
        one |= {"pattern": about.pattern} if about.pattern else {}
        return {"anyOf": [one, {"type": "null"}]} if self.is_optional else one

    def of_text(self, text: str) -> Any:
        """Its value from text, as in a URL or on a command line."""
        if self.type is bool:
            if text.lower() not in _FLAGS:
                self._refuse(text, "input should be a valid boolean, unable to interpret input")
            return _FLAGS[text.lower()]
        if self.type is int and self.about.read is None:
            try:
                number = int(text)
            except ValueError:
                self._refuse(text, "input should be a valid integer, unable to parse string as an integer")
            return self.checked(number)
        return self.checked(text)

    def checked(self, value: Any) -> Any:
        """The value, if it is within the limits; read, if it has a reader."""
        about = self.about
        if about.unchecked or (value is None and (self.is_optional or self.default is None)):
            return value
        is_choice = get_origin(self.type) is Literal
        if self.where == "body" and (is_choice or self.type is str) and not isinstance(value, str):
            raise Invalid(FieldError(self.name, f"{shown(value)} is not a string; put it in quotes"))
        if self.where == "body" and self.type is bool and not isinstance(value, bool):
            raise Invalid(FieldError(self.name, f"{shown(value)} is not true or false"))
        if is_choice and about.read is None and value not in (options := get_args(self.type)):
            words = [repr(option) for option in options]
            self._refuse(value, f"input should be {', '.join(words[:-1])} or {words[-1]}")
        if about.least is not None and value < about.least:
            self._refuse(value, f"input should be greater than or equal to {about.least}", str(value))
        if about.most is not None and value > about.most:
            self._refuse(value, f"input should be less than or equal to {about.most}", str(value))
        if about.longest is not None and isinstance(value, str) and len(value) > about.longest:
            self._refuse(value, f"string should have at most {about.longest} characters")
        return value if about.read is None else about.read(value)

    def _refuse(self, value: Any, text: str, given: str | None = None) -> NoReturn:
        raise Invalid(FieldError(self.name, f"{shown(given or value)}: {text}"))


_WORDS: Final[Mapping[Any, tuple[str, str]]] = {
    str: ("string", "a text"), int: ("integer", "a whole number"), bool: ("boolean", "true or false"),
    float: ("number", "a number"),
}  # fmt: skip
_FLAGS: Final = dict.fromkeys(("true", "1", "on", "yes", "t", "y"), True) | dict.fromkeys(
    ("false", "0", "off", "no", "f", "n"), False
)


def parameter_of(given: inspect.Parameter, hint: Any, method: str, path: str) -> Parameter:
    """The parameter that an annotation describes. Unless it says so, its place follows from the route."""
    about, kind, is_optional = Param(), hint, False
    while get_origin(kind) in (Annotated, Union, UnionType):
        if get_origin(kind) is Annotated:
            about = next((note for note in kind.__metadata__ if isinstance(note, Param)), about)
            kind = kind.__origin__
        else:
            options = [option for option in get_args(kind) if option is not NoneType]
            is_optional, kind = len(options) < len(get_args(kind)), options[-1]
    name = about.name or camel(given.name)
    place: Where = "path" if f"{{{name}}}" in path else "query" if method in ("GET", "DELETE") else "body"
    is_required = given.default is inspect.Parameter.empty
    return Parameter(given.name, name, about.where or place, kind, is_optional, is_required, given.default, about)
