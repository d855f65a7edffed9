"""The call agent: a Python callable handles the prompt.

It is called with the fire, `prompt`, `session_id` and `model`, or as many of them as it accepts; only `prompt` is
required. It returns the reply as text, None for no reply, the result object of an agent framework, or an `AgentReply`
with usage and session. Anything else is no reply: the work may be done, so the run is unconfirmed.
"""

import inspect
import logging
from collections.abc import Mapping
from typing import Any, Final

from wakeful.core.run.agent_reply import AgentReply
from wakeful.core.run.results import Busy, Done, Failed, Result, Throttled, Unconfirmed
from wakeful.core.run.runs import RungName
from wakeful.core.run.usage import usage_of
from wakeful.core.schedule.actions import Call
from wakeful.core.time.instants import Duration
from wakeful.integrations.actions.arguments import NotCallable, fill
from wakeful.integrations.actions.call import CallAction
from wakeful.integrations.actions.invoke import TEXT_OF, attribute_of, outcome_of, text_of
from wakeful.integrations.actions.registry import CallRegistry, UnknownCallable
from wakeful.integrations.actions.reply import reply_of
from wakeful.integrations.actions.sessions import END_GRACE
from wakeful.integrations.agents.one_shot import OneShot
from wakeful.integrations.agents.reply import marked, session_id_of
from wakeful.integrations.system.threads import in_thread
from wakeful.ports.action import Ladder
from wakeful.ports.agent import Answer, Exchange, Fate, Replied, Turn

log = logging.getLogger("wakeful")

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
        self._action = CallAction(registry, grace=grace, read=reply_from)

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
                case Failed() | Busy() | Throttled() | Unconfirmed():
                    return result
                case _:
                    return Failed(
                        f"it returned {type(result).__name__}; return text, None or AgentReply", permanent=True
                    )

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


def reply_from(value: object) -> Result:
    """What a function returned: a result it created itself, or its text as the reply."""
    if isinstance(value, AgentReply):
        trouble = value.trouble()
        if trouble is not None:
            log.warning("an agent's function returned an AgentReply whose usage is not counted: %s", trouble)
        return value.as_reply()
    if value is None or isinstance(value, str | Result) or inspect.isgenerator(value) or inspect.isasyncgen(value):
        return outcome_of(value)
    text = text_of(value)
    return outcome_of(text) if text is not None else Unconfirmed(_no_reply(value))


def _no_reply(value: object) -> str:
    kind, is_graph = type(value).__name__, isinstance(value, Mapping) and "messages" in value
    parts = {name: part for name in TEXT_OF if (part := attribute_of(value, name)) is not None}
    inside = "".join(f", whose .{name} is of type {type(part).__name__}" for name, part in parts.items())
    example = " such as result['messages'][-1].content" if is_graph else ""
    return (
        f"the agent's function returned an object of type {kind}{inside}, which is no reply; "
        f"return text{example}, or None if there is nothing to report"
    )


def _replied(done: Done) -> Replied | Unconfirmed:
    said: object = done.output if done.reply is None else done.reply
    output = None if done.reply is None else done.output
    text, usage = text_of(said), usage_of(done.usage)
    if said is not None and text is None:
        return Unconfirmed(_no_reply(said), session_id_of(done.session_id), usage, output)
    return Replied(reply_of(text), session_id_of(done.session_id), usage, output)
