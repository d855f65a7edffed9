"""A provider whose quota is printed as JSON by a program."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from wakeful.config.slots import CommandSlot
from wakeful.core.run.results import Done, Failed
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import Command
from wakeful.core.slot.slot import FailureKind, ReadFailure, Reading
from wakeful.core.time.instants import Instant
from wakeful.integrations.actions.command import CommandAction
from wakeful.integrations.providers.keys import Key
from wakeful.integrations.providers.reading import plain_reading
from wakeful.integrations.system.text import one_line, parse_json
from wakeful.ports.action import Fire, Ladder, Process, Withholds
from wakeful.ports.clock import Clock
from wakeful.ports.quota import WakeFailure

OUTPUT_MAX: Final = 64 * 1024
_UNREACHABLE: Final = f"exited with {os.EX_TEMPFAIL}"
"""Exit code 75 (`EX_TEMPFAIL` of sysexits) means that the program could not reach its provider."""


class _NoLadder:
    """A reading is not in the ledger, so its progress is not recorded."""

    async def climb(self, rung: RungName, *, process: Process | None = None) -> None: ...


class CommandProvider:
    """A slot read by programs. They are ended with their whole session on timeout."""

    has_statistics = False

    def __init__(
        self, slot: str, written: CommandSlot, *, home: Path, clock: Clock, withholds: Withholds | None = None
    ) -> None:
        self._slot = slot
        self._written = written
        self._env = {name: secret.reveal() for name, secret in written.env.items()}
        self._key = Key(self._env.values())
        self._home = str(home)
        self._clock = clock
        self._withholds = withholds
        self._action = CommandAction()
        self.can_wake = written.wake_argv is not None
        identity = json.dumps([written.quota_argv, written.wake_argv, sorted(self._env.items())])
        self.mark = hashlib.sha256(identity.encode()).hexdigest()[:24]

    async def read(self, action: str) -> Reading | ReadFailure:
        now = self._clock.read().now
        slug, key = f"slot:{self._slot}", f"{self._slot}-{now}"
        fire = Fire(0, 0, slug, now, now, "schedule", 1, key, withholds=self._withholds)
        result = await self._action.perform(self._command(self._written.quota_argv), fire, _NoLadder())
        if isinstance(result, Failed):
            kind: FailureKind = "unreachable" if _is_unreachable(result) else "unreadable"
            return self._key.clean(ReadFailure(kind, f"{self._written.quota_argv[0]}: {result.error}"))
        output = (result.output or "") if isinstance(result, Done) else ""
        data = parse_json(output.strip())
        if data is None:
            said = one_line(output)[:200]
            return self._key.clean(ReadFailure("unreadable", f"{self._written.quota_argv[0]} printed no JSON: {said}"))
        reading = plain_reading(data, self._written.percentage_key, self._written.reset_key, now)
        return reading if isinstance(reading, Reading) else self._key.clean(reading)

    async def wake(self, action: str, fire: Fire, ladder: Ladder) -> WakeFailure | None:
        result = await self._action.perform(self._command(self._written.wake_argv or ()), fire, ladder)
        if isinstance(result, Failed):
            return WakeFailure(self._key.redact(result.error), is_unreachable=_is_unreachable(result))
        return None if isinstance(result, Done) else WakeFailure(f"it ended as {type(result).__name__}")

    async def statistics(self, reading: Reading, *, now: Instant) -> Mapping[str, Any] | ReadFailure:
        return ReadFailure("unreadable", "this provider has no statistics")

    async def close(self) -> None:
        await self._action.close()

    def _command(self, argv: tuple[str, ...]) -> Command:
        return Command(argv, self._home, self._env, None, OUTPUT_MAX)


def _is_unreachable(result: Failed) -> bool:
    return result.error.partition(":")[0] == _UNREACHABLE
