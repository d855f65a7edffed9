"""Imports in tests: a context for a person in a zone, and the oracles."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from wakeful.core.time.instants import parse_instant
from wakeful.integrations.imports.catalogue import entries_of
from wakeful.integrations.imports.entries import Context, Entry

CORPUS = Path(__file__).parent / "corpus"
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "UTC")
STARTS = tuple(
    parse_instant(text)
    for text in (
        "2026-11-16T18:00:00Z",
        "2026-10-23T12:00:00Z",
        "2026-10-31T12:00:00Z",
        "2027-03-13T00:00:00Z",
        "2027-03-27T00:00:00Z",
        "2027-04-02T00:00:00Z",
        "2027-04-29T00:00:00Z",
    )
)
BASE = Context(STARTS[0], "Europe/Berlin", user="me", user_home=Path("/home/me"))


def read(kind: str, path: Path | None = None, *, content: str | None = None, **changes: Any) -> list[Entry]:
    return entries_of(kind, content=content, path=path, context=replace(BASE, **changes))
