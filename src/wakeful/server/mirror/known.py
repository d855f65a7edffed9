"""The digests of what we wrote into the definition files, kept in the store.

Theory of operation
-------------------
A file that differs from what we wrote was edited. So what we wrote must be known across restarts, and before the write:
the digest of a text is stored *before* the file gets that text, together with the digest of its current content, and
alone once the new name is durable. Whenever the process dies, the file has one of the stored digests and is never
mistaken for an edit; nor does a stale digest remain that would hide a real edit.

An applied edit is recorded in the same transaction: it counts once, and until the file is written again it counts as
written by us.

Stored with the digest are values that only count if a person changed them: `enabled` of a definition, `nextRun` and
`sessionId` of a last run. `nextRun` moves into the past by itself, which is not a request to run.

Slugs share a bounded number of rows in the store, because a slug may be used once and never again.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from wakeful.ports.meta import Meta
from wakeful.ports.store import Tx

BUCKET: Final = "mirror:"


class KnownText(NamedTuple):
    """One text that a file may contain."""

    digest: str
    said: Mapping[str, Any]


Known: TypeAlias = Mapping[str, tuple[KnownText, ...]]
"""By file name, the texts it may contain without having been edited."""


def digest_of(content: bytes) -> str:
    """The digest of the text."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def recall(tx: Tx, slugs: Iterable[str]) -> dict[str, Known]:
    """The known texts of each slug's files; empty for most."""
    known: dict[str, Known] = {}
    for name, members in _by_bucket(slugs).items():
        bucket = _load(tx, name)
        known |= {slug: _decoded(bucket[slug]) if slug in bucket else {} for slug in members}
    return known


def remember(tx: Tx, changes: Mapping[str, Known]) -> None:
    """Replace the known texts of these slugs; an empty entry takes no space."""
    for name, members in _by_bucket(changes).items():
        bucket = _load(tx, name)
        for slug in members:
            bucket.pop(slug, None)
            kept = {file: written for file, written in changes[slug].items() if written}
            if kept:
                bucket[slug] = {file: [[text.digest, dict(text.said)] for text in kept[file]] for file in sorted(kept)}
        tx[Meta].set(name, json.dumps(bucket, ensure_ascii=False, separators=(",", ":")))


def _by_bucket(slugs: Iterable[str]) -> dict[str, list[str]]:
    buckets: dict[str, list[str]] = {}
    for slug in sorted(slugs):
        buckets.setdefault(BUCKET + digest_of(slug.encode())[:3], []).append(slug)
    return buckets


def _load(tx: Tx, name: str) -> dict[str, Any]:
    bucket: dict[str, Any] = json.loads(tx[Meta].value(name) or "{}")
    return bucket


def _decoded(entry: Mapping[str, Any]) -> Known:
    return {file: tuple(KnownText(digest, said) for digest, said in texts) for file, texts in entry.items()}
