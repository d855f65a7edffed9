"""The environment of a process that an attempt starts."""

import os
from collections.abc import Mapping
from typing import Final

from wakeful.core.instants import format_instant
from wakeful.ports.action import Fire

RUN_ID: Final = "WAKEFUL_RUN_ID"
_RECEIPT_URL: Final = "WAKEFUL_RECEIPT_URL"


def environment(fire: Fire, extra: Mapping[str, str]) -> dict[str, str]:
    """Ours, the definition's over it, and the facts of this attempt over both."""
    merged = {**os.environ, **extra}
    # A daemon that was itself started by a command would hand its own receipt on to a stranger.
    merged.pop(_RECEIPT_URL, None)
    return merged | _facts(fire)


def _facts(fire: Fire) -> dict[str, str]:
    facts = {
        "WAKEFUL_SLUG": fire.slug,
        RUN_ID: str(fire.run_id),
        "WAKEFUL_PLANNED_AT": format_instant(fire.planned_at),
        "WAKEFUL_ATTEMPT": str(fire.attempt),
        "WAKEFUL_IDEMPOTENCY_KEY": fire.idempotency_key,
    }
    return facts if fire.receipt_url is None else {**facts, _RECEIPT_URL: fire.receipt_url}
