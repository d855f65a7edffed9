"""The call agent: a Python callable handles the prompt.

It is called with the fire, `prompt`, `session_id` and `model`, or as many of them as it accepts; only `prompt` is
required. It returns the reply as text, None for no reply, or a `Done` with reply, usage and session_id.
"""

from collections.abc import Mapping
from typing import Any, Final

from wakeful.core.run.results import Busy, Done, Failed, Throttled
from wakeful.core.run.runs import RungName
from wakeful.core.run.usage import usage_of
from wakeful.core.schedule.actions import Call
from wakeful.core.time.instants import Duration
from wakeful.integrations.actions.call import CallAction
from wakeful.integrations.actions.invoke import NotCallable, fill
from wakeful.integrations.actions.registry import CallRegistry, UnknownCallable
from wakeful.integrations.actions.sessions import END_GRACE
from wakeful.integrations.agents.one_shot import OneShot
from wakeful.integrations.agents.reply import marked, reply_of, session_id_of
from wakeful.integrations.system.threads import in_thread
from wakeful.ports.action import Ladder
from wakeful.ports.agent import Answer, Exchange, Fate, Replied, Turn

_TAKEN: Final = (("prompt", "session_id", "model"), ("prompt", "session_id"), ("prompt", "model"))
"""The arguments a callable may accept, the largest set first."""


class CallAgent:
    """Performs turns through the call action, which handles threads and coroutines."""

    proves: RungName = "finished"
    knows: Mapping[str, type] = {"model": str}

    def __init__(
        self, target: str, registry: CallRegistry, *, model: str | None = None, grace: Duration = END_GRACE
    ) -> None:
        self._target = target
        self._model = model
        self._registry = registry
        self._action = CallAction(registry, grace=grace)

    def check(self, config: Mapping[str, Any]) -> str | None:
        return self._wrong(self._args({"prompt": "", "session_id": None, "model": None}))

    def begin(self, turn: Turn) -> Exchange:
        async def send(ladder: Ladder) -> Answer:
            args = await self._fitting(
                {
                    "prompt": marked(turn.prompt, turn.fire.slug),
                    "session_id": turn.session_id,
                    "model": turn.config.get("model") or self._model,
                }
            )
            result = await self._action.perform(Call(self._target, args), turn.fire, ladder)
            match result:
                case Done():
                    return _replied(result)
                case Failed() | Busy() | Throttled():
                    return result
                case _:
                    return Failed(f"it returned {type(result).__name__}; return text, None or Done", permanent=True)

        return OneShot(send)

    async def ask(self, turn: Turn) -> Fate:
        return None

    async def close(self) -> None:
        await self._action.close()

    async def _fitting(self, given: dict[str, Any]) -> dict[str, Any]:
        if self._registry.at_hand(self._target) is not None:
            return self._args(given)
        # In a thread, because importing it may take long.
        return await in_thread(lambda: self._args(given), name="import")

    def _args(self, given: dict[str, Any]) -> dict[str, Any]:
        # A callable without sessions and models is a valid agent.
        for names in _TAKEN:
            args = {name: given[name] for name in names}
            if self._wrong(args) is None:
                return args
        return {"prompt": given["prompt"]}

    def _wrong(self, args: Mapping[str, Any]) -> str | None:
        """Why it cannot be called with these arguments."""
        try:
            fill(self._registry.resolve(self._target), None, args)
        except (UnknownCallable, NotCallable) as error:
            return str(error)
        return None


def _replied(done: Done) -> Replied:
    said = done.output if done.reply is None else done.reply
    output = None if done.reply is None else done.output
    return Replied(reply_of(said), session_id_of(done.session_id), usage_of(done.usage), output)
