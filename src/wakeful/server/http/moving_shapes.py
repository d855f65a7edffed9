"""Shapes of export, apply and import."""

from typing import Annotated, Any, Literal

from pydantic import Field

from wakeful.server.http.shapes import At, Shape

Paths = Annotated[list[str], Field(examples=[["schedules/daily-report.json"]])]


class Exported(Shape):
    """All definitions as files."""

    files: Annotated[dict[str, str], Field(description="the text of each file, by its path")]


class Files(Shape):
    """Definitions as files."""

    files: Annotated[
        dict[str, str],
        Field(description="the text of each file, by its path: `schedules/SLUG.json`, `workflows/ID.json`, …"),
    ]
    place: Annotated[str | None, Field(max_length=4096, description="identifies the folder, for `prune`")] = None


class Applied(Shape):
    """What applying the files changes, or changed, by path."""

    create: Paths
    update: Paths
    remove: Paths
    unchanged: Paths
    diff: Annotated[str, Field(description="a unified diff of all changes")]


class ImportSource(Shape):
    """What to import: pasted text, a path on the daemon's machine, or the default locations."""

    kind: Annotated[str, Field(examples=["crontab"])]
    content: Annotated[str | None, Field(description="the text of the source")] = None
    path: Annotated[str | None, Field(description="a file or folder on the daemon's machine")] = None
    only: Annotated[list[str] | None, Field(description="the slugs of the entries to take; without it, all")] = None
    leaving: Annotated[list[str] | None, Field(alias="except", description="the slugs of entries to leave")] = None


class ImportEntry(Shape):
    """One entry of the source, and what it becomes."""

    source: Annotated[str, Field(description="its own text, without secrets")]
    place: Annotated[str, Field(description="the file or system it is from")]
    line: int | None
    slug: str | None
    action: Literal["create", "update", "unchanged", "refused"]
    definition: Annotated[dict[str, Any] | None, Field(description="without secrets")]
    description: Annotated[str | None, Field(description="when it runs, in words")]
    source_next: Annotated[list[At], Field(description="its next times by the rules of the source")]
    next: Annotated[list[At], Field(description="its next times here")]
    not_carried: Annotated[list[str], Field(description="names of what is not carried over")]
    notes: Annotated[list[str], Field(description="what to do about some of them")]
    reason: Annotated[str | None, Field(description="why it is refused")]


class HandoverState(Shape):
    """A takeover: when it happens, and how far it is."""

    id: str
    stage: Literal["written", "switching", "done", "abandoned"]
    hand_at: Annotated[At, Field(description="earlier times belong to the source")]
    problem: str | None


class Imported(Shape):
    """The plan of an import, or what it did."""

    kind: str
    applied: bool
    entries: list[ImportEntry]
    handover: HandoverState | None
