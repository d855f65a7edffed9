"""The law about the functions of workflows, and a witness of who runs what: some boots load none of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wakeful.core.errors import FieldError
from wakeful.core.run.results import Result
from wakeful.core.run.runs import RungName
from wakeful.features.workflows.handler_action import HandlerSpec
from wakeful.ports.action import Action, Fire, Ladder
from worlds.inhabitants import Boot


def runs_what_it_has(run_id: int, workflow: str, boot: Boot, *, has_functions: bool) -> Iterator[str]:
    """L9: no node claims a run it has no function for."""
    if not has_functions:
        yield f"L9 functions: {boot.name} claimed run {run_id} of {workflow}, and has not loaded its functions"


class Watched:
    """The action of handlers on one boot, which reports what it is asked to run."""

    is_local = False

    def __init__(
        self, inner: Action, boot: Boot, has_functions: Callable[[], bool], report: Callable[[Sequence[str]], None]
    ) -> None:
        self._inner = inner
        self._boot = boot
        self._has_functions = has_functions
        self._report = report

    def proves(self, spec: Any) -> RungName:
        return self._inner.proves(spec)

    def check(self, spec: Any) -> str | FieldError | None:
        return self._inner.check(spec)

    async def perform(self, spec: HandlerSpec, fire: Fire, ladder: Ladder) -> Result:
        has = self._has_functions()
        self._report(list(runs_what_it_has(fire.run_id, spec.workflow, self._boot, has_functions=has)))
        return await self._inner.perform(spec, fire, ladder)

    async def close(self) -> None:
        await self._inner.close()
