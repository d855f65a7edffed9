"""Parameters that several nouns have."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypeAlias

from wakeful.api.parameters import Param
from wakeful.api.reading import (
    NEW_SLUG,
    OWNER_SCHEMA,
    SLUG_SCHEMA,
    known_owner,
    known_slug,
    patience,
    read_text,
    run_cursor,
    slug_cursor,
    slugs_of,
)  # fmt: skip
from wakeful.core.errors import refuse
from wakeful.core.returned import At
from wakeful.core.run.runs import Outcome

Limit: TypeAlias = Annotated[int, Param("maximum number of items", least=1, most=1_000)]
SlugCursor: TypeAlias = Annotated[str | None, Param("`next` of the previous page", read=slug_cursor)]
IdCursor: TypeAlias = Annotated[
    int | None, Param("`next` of the previous page", schema={"type": "string"}, read=run_cursor)
]
OfOutcome: TypeAlias = Annotated[Outcome | None, Param("only runs with this outcome")]
Searched: TypeAlias = Annotated[
    str | None, Param("only schedules with this text in the slug or the action", longest=200)
]
Slugs: TypeAlias = Annotated[
    Sequence[str] | None,
    Param(
        "only these slugs, separated by commas, at most 100; other filters are ignored",
        schema={"type": "string"},
        longest=7_000,
        read=slugs_of,
    ),
]
SlugPath: TypeAlias = Annotated[str, Param(owned=known_slug, schema=SLUG_SCHEMA)]
NewSlug: TypeAlias = Annotated[str, Param(owned=NEW_SLUG, schema=SLUG_SCHEMA)]
OwnerPath: TypeAlias = Annotated[str, Param(owned=known_owner, schema=OWNER_SCHEMA)]
IfMatch: TypeAlias = Annotated[str | None, Param("write only if the ETag still matches", "If-Match", "header")]
IfNoneMatch: TypeAlias = Annotated[
    str | None, Param("* : write only if it does not exist yet", "If-None-Match", "header")
]
DryRun: TypeAlias = Annotated[
    bool, Param("check the definition and return the next five times; change nothing", where="query")
]
Until: TypeAlias = Annotated[datetime | str | None, Param(schema=At.__metadata__[0].schema, read=read_text("until"))]
Patience: TypeAlias = Annotated[
    str,
    Param(
        "how long to wait, at most 60s",
        "timeout",
        "query",
        schema={"type": "string", "examples": ["10s"]},
        read=patience,
    ),
]


def filled(name: str, cure: str) -> Param:
    """A text that must not be empty; `cure` says what to write."""

    def read(text: str) -> str:
        if not text.strip():
            refuse(name, f"is empty; {cure}")
        return text

    return Param(schema={"type": "string", "minLength": 1}, read=read, missing=cure)
