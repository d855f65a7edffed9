"""The mirror's reports."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

log = logging.getLogger("wakeful.server.mirror")

Kind: TypeAlias = Literal["created", "edited", "adopted", "forced", "refused", "trouble", "recovered"]
BAD: Final[frozenset[Kind]] = frozenset({"refused", "trouble"})


@dataclass(frozen=True, slots=True)
class Report:
    """One event about the definition files. Without a slug it concerns the folder."""

    kind: Kind
    message: str
    slug: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        place = "/".join(part for part in (self.slug, self.file) if part is not None)
        return f"{place}: {self.message}" if place else self.message


OnReport: TypeAlias = Callable[[Report], None]


def to_log(report: Report) -> None:
    """The default report handler: the log."""
    log.log(logging.WARNING if report.kind in BAD else logging.INFO, "definition files: %s", report)
