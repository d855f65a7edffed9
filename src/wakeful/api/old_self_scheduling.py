"""Names of 0.2 for what agents do with their own schedules, and for people's decisions; all are deprecated."""

from datetime import tzinfo
from typing import TYPE_CHECKING, Any, cast

from wakeful.api.actors import ONLY_WAKES, Actor, Agent, Refused
from wakeful.api.deprecation import warn_of
from wakeful.api.people import People
from wakeful.api.schedules import Schedules
from wakeful.app import calling, owned_writing
from wakeful.app.owned_writing import AgentWritten
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.self_scheduling.proposals import Decision
from wakeful.core.self_scheduling.slugs import owned_slug
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Timing
from wakeful.features.schedules.approval_views import DECIDED, PROPOSAL
from wakeful.features.schedules.views import ScheduleView

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful

_AS_AGENT = 'use Schedules(app, Actor("agent", agent=…)), from wakeful.api.schedules and wakeful.api.actors'


class OldSelfScheduling:
    """What 0.2 had as methods of the app."""

    async def proposals(self) -> list[dict[str, Any]]:
        """Deprecated: `app.people.proposals`."""
        warn_of("proposals", "people.proposals")
        return [PROPOSAL.write(one) for one in (await self._wakeful.people.proposals()).proposals]

    async def decide(self, proposal_id: str, decision: Decision, *, by: str) -> dict[str, Any]:
        """Deprecated: `app.people.decide`."""
        warn_of("decide", "people.decide")
        return DECIDED.write(await People(self._wakeful, Actor(name=by)).decide(proposal_id, decision))

    @property
    def self_scheduling(self) -> SelfSchedulingTerms:
        """Deprecated: the option of the same name."""
        warn_of("self_scheduling", instead="keep the limits that the app was created with")
        return self._wakeful._self_scheduling.value

    async def actor_of_run(self, run_id: int) -> Agent:
        """Deprecated: an agent's token, over REST."""
        warn_of("actor_of_run", instead="use the REST API with the token of the run")
        return await calling.actor_of_run(self._wakeful, run_id)

    async def actor_of_agent(self, agent: str) -> Agent:
        """Deprecated: an agent's token, over REST."""
        warn_of("actor_of_agent", instead="use the REST API with the token of the agent")
        return await calling.actor_of_agent(self._wakeful, agent)

    async def put_as_agent(self, actor: Agent, slug: str, definition: Any, *, note: str | None = None) -> AgentWritten:
        """Deprecated: `put` of the schedules of an agent."""
        warn_of("put_as_agent", instead=_AS_AGENT)
        if not actor.is_agent_run:
            raise Refused(ONLY_WAKES)
        full = owned_slug(actor.agent, slug)
        return await owned_writing.put_owned(self._wakeful, actor, full, definition, note=note)

    async def list_as_agent(self, actor: Agent, contains: str | None = None) -> list[ScheduleView]:
        """Deprecated: `list` of the schedules of an agent."""
        warn_of("list_as_agent", instead=_AS_AGENT)
        return (await self._own(actor).list(q=contains)).schedules

    async def get_as_agent(self, actor: Agent, slug: str) -> ScheduleView:
        """Deprecated: `get` of the schedules of an agent."""
        warn_of("get_as_agent", instead=_AS_AGENT)
        return await self._own(actor).get(slug)

    async def pause_as_agent(self, actor: Agent, slug: str) -> ScheduleView:
        """Deprecated: `pause` of the schedules of an agent."""
        warn_of("pause_as_agent", instead=_AS_AGENT)
        return await self._own(actor).pause(slug)

    async def resume_as_agent(self, actor: Agent, slug: str) -> ScheduleView:
        """Deprecated: `resume` of the schedules of an agent."""
        warn_of("resume_as_agent", instead=_AS_AGENT)
        return await self._own(actor).resume(slug)

    async def remove_as_agent(self, actor: Agent, slug: str) -> str:
        """Deprecated: `remove` of the schedules of an agent."""
        warn_of("remove_as_agent", instead=_AS_AGENT)
        await self._own(actor).remove(slug)
        return owned_slug(actor.agent, slug)

    async def wake_me(self, actor: Agent, when: str, text: str) -> AgentWritten:
        """Deprecated: `wake_me` of the tools of an agent."""
        where = "from wakeful.api.agent_tools and wakeful.api.actors"
        warn_of("wake_me", instead=f'use Tools(app, Actor("agent", agent=…)).wake_me, {where}')
        return await owned_writing.wake_me(self._wakeful, actor, when, text)

    def read_when(self, text: str, timezone: str | tzinfo | None = None) -> Timing:
        """Deprecated: timings as text, wherever one is taken."""
        warn_of("read_when", "add, which takes the text")
        return owned_writing.timing_of_text(self._wakeful, text, timezone)

    def times_after_now(self, timing: Timing) -> tuple[Instant, ...]:
        """Deprecated: `app.next_times`."""
        warn_of("times_after_now", "next_times")
        return owned_writing.times_after_now(self._wakeful, timing)

    def _own(self, actor: Agent) -> Schedules:
        return Schedules(self._wakeful, Actor("agent", agent=actor))

    @property
    def _wakeful(self) -> "Wakeful":
        return cast("Wakeful", self)
