"""What we wrote into the definition files, remembered in the store.

Theory of operation
-------------------
A file that is not as we left it is somebody's edit. So what we left there must be known across restarts, and known
before it is there: the digest of a text is remembered *before* the file gets that text, beside the digest of what it
holds until then, and alone once the new name is durable. Whenever the process dies, the file is one of those
remembered, and never mistaken for an edit; nor does a remembered text linger that would hide a real one.

An edit that was taken in is remembered in the transaction that took it in: it counts once, and until the file is
written again it is as good as written by us.

Beside the digest stand the values that mean something only where a person changed them: `enabled` of a definition,
`nextRun` and `sessionId` of a last run. Time alone moves `nextRun` into the past, and that is nobody's wish to run.

Slugs share a bounded number of facts in the store, because a slug may be used once and never again.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from wakeful.ports.store import Tx

BUCKET: Final = "mirror:"


class KnownText(NamedTuple):
    """One text that a file of ours may hold."""

    digest: str
    said: Mapping[str, Any]


Known: TypeAlias = Mapping[str, tuple[KnownText, ...]]
"""By the file's name, the texts it may hold without having been edited."""


def digest_of(content: bytes) -> str:
    """What tells two texts apart."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def recall(tx: Tx, slugs: Iterable[str]) -> dict[str, Known]:
    """What is known of each slug's files; nothing, for most."""
    found: dict[str, Known] = {}
    for name, members in _by_bucket(slugs).items():
        bucket = _load(tx, name)
        found |= {slug: _decoded(bucket[slug]) if slug in bucket else {} for slug in members}
    return found


def remember(tx: Tx, changes: Mapping[str, Known]) -> None:
    """Replace what is known of these slugs; a slug of which nothing is known takes no room."""
    for name, members in _by_bucket(changes).items():
        bucket = _load(tx, name)
        for slug in members:
            bucket.pop(slug, None)
            kept = {file: written for file, written in changes[slug].items() if written}
            if kept:
                bucket[slug] = {file: [[one.digest, dict(one.said)] for one in kept[file]] for file in sorted(kept)}
        tx.meta.set(name, json.dumps(bucket, ensure_ascii=False, separators=(",", ":")))


def _by_bucket(slugs: Iterable[str]) -> dict[str, list[str]]:
    buckets: dict[str, list[str]] = {}
    for slug in sorted(slugs):
        buckets.setdefault(BUCKET + digest_of(slug.encode())[:3], []).append(slug)
    return buckets


def _load(tx: Tx, name: str) -> dict[str, Any]:
    bucket: dict[str, Any] = json.loads(tx.meta.get(name) or "{}")
    return bucket


def _decoded(entry: Mapping[str, Any]) -> Known:
    return {file: tuple(KnownText(digest, said) for digest, said in texts) for file, texts in entry.items()}
