"""Shapes of export and apply."""

from typing import Annotated

from pydantic import Field

from wakeful.server.http.shapes import Shape

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
