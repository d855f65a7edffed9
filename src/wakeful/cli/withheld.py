"""Which environment variables are withheld from which programs, for `wakeful check`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.config.load import Loaded


@dataclass(frozen=True, slots=True)
class Withheld:
    """Which secret variables one kind of program gets."""

    to: str
    withheld: list[str]
    passed: list[str]

    def to_json(self) -> dict[str, Any]:
        return {"to": self.to, "withheld": self.withheld, "passed": self.passed}


def withheld_by(loaded: Loaded) -> list[Withheld]:
    """Commands, then every agent and quota slot that starts a program."""
    from wakeful.config.slots import CommandSlot
    from wakeful.integrations.agents.from_settings import environment_of

    withheld = [_kept_from("commands", loaded, (), {})]
    for name, agent in loaded.settings.agents.items():
        given = environment_of(agent)
        if given is not None:
            withheld.append(_kept_from(f"agent {name}", loaded, *given))
    withheld += [
        _kept_from(f"slot {name}", loaded, (), dict.fromkeys(slot.env, ""))
        for name, slot in loaded.settings.slots.items()
        if isinstance(slot, CommandSlot)
    ]
    return withheld


def _kept_from(to: str, loaded: Loaded, pass_env: Sequence[str], env: Mapping[str, str]) -> Withheld:
    from wakeful.integrations.actions.environment import is_secret_variable, withheld

    named = loaded.secret_variables
    kept = withheld(lambda name: is_secret_variable(name, named), pass_env, env)
    passed = sorted(name for name in {*pass_env} if name in os.environ and is_secret_variable(name, named))
    return Withheld(to, kept, passed)
