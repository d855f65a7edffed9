"""An agent for virtual worlds: hears every prompt, and answers as it is told."""

from collections.abc import Mapping
from typing import Any

from features.kit import Bench, World, short
from wakeful.core.run.results import Busy, Done, Failed, Result
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import Prompt
from wakeful.features.heartbeat.action import Notes
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.integrations.channels.program import DeliverFunction
from wakeful.ports.action import Action, Fire, Ladder
from wakeful.ports.channel import OutgoingMessage

OK = "HEARTBEAT_OK"
BUSY = Busy("Session busy")
NO = Failed("the model is down")


class Voice:
    """Performs prompts. `script` holds what the next turns do, `usual` what all others do: a text is the reply, a
    number takes so many milliseconds and then says OK, a result is handed back, anything callable is called with the
    fire."""

    is_local = False

    def __init__(self, world: World, usual: Any = OK) -> None:
        self._world = world
        self.usual = usual
        self.script: list[Any] = []
        self.heard: list[str] = []
        self.began: list[str] = []
        self.fires: list[Fire] = []

    def proves(self, spec: Prompt) -> RungName:
        return "finished"

    def check(self, spec: Prompt) -> str | None:
        return None

    async def perform(self, spec: Prompt, fire: Fire, ladder: Ladder) -> Result:
        self.heard.append(spec.text)
        self.began.append(short(self._world.now))
        self.fires.append(fire)
        await ladder.climb("sent")
        act = self.script.pop(0) if self.script else self.usual
        if isinstance(act, int):
            await self._world.clock.sleep(act)
            act = OK
        if callable(act):
            answer = act(fire)
            act = await answer if hasattr(answer, "__await__") else answer
        return Done(reply=act, session_id=f"session-{fire.slug}") if isinstance(act, str) else act

    async def close(self) -> None: ...


async def beating(
    world: World,
    voice: Action,
    terms: HeartbeatTerms | None = None,
    *,
    said: list[Any] | None = None,
    notes: Notes | None = None,
    people: Mapping[str, DeliverFunction] | None = None,
    **settings: Any,
) -> Bench:
    """An app whose heart beats every half hour. `said` takes every letter that is delivered, `notes` reads
    HEARTBEAT.md, `people` are further channels."""
    feature = HeartbeatFeature(terms or HeartbeatTerms(enabled=True), notes=notes)
    bench = world.bench(actions={Prompt: voice}, heartbeat=feature, **settings)
    bench.feature = feature  # type: ignore[attr-defined]  # so that a test can change its terms
    for name, person in (people or {}).items():
        bench.register_channel(name, None, person)
    if said is not None:

        async def hear(text: str, letter: OutgoingMessage) -> None:
            said.append(letter)

        bench.register_channel("phone", None, hear)
    await bench.start()
    return bench
