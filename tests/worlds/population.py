"""Who lives in a world beside its schedules."""

from pathlib import Path
from typing import Final

from worlds.conversations import Conversations
from worlds.faults import Climate, streams
from worlds.heartbeat import NAME as HEARTBEAT
from worlds.heartbeat import Beating
from worlds.inhabitants import Inhabitant, Surroundings
from worlds.money import NAME as MONEY
from worlds.money import Purse
from worlds.outbox import NAME as OUTBOX
from worlds.outbox import Outbox
from worlds.scheduling import NAME as AGENTS
from worlds.scheduling import Agents
from worlds.slots import NAME as SLOTS
from worlds.slots import Keys
from worlds.source import NAME as SOURCE
from worlds.source import Source
from worlds.trouble import Troubles
from worlds.workflows import FUNCTIONS, Post
from worlds.workflows import NAME as WORKFLOWS

FIRST: Final = frozenset({OUTBOX, HEARTBEAT, SLOTS, WORKFLOWS, MONEY})
NEWCOMERS: Final = frozenset({AGENTS, SOURCE})
"""They are drawn apart, so that the worlds that were there before them have the same inhabitants beside them."""
EVERYBODY: Final = FIRST | NEWCOMERS | {FUNCTIONS}
NEWCOMERS_SHARE: Final = 0.2
"""In how many worlds each of them lives."""

CALM: Final = frozenset({OUTBOX, HEARTBEAT})
"""Those that do nothing for days when nobody asks them to: they can live in a world of a year."""
HEARD_MAX: Final = 2
"""How many days several nodes may listen to people: the lease of the one that listens is renewed every ten seconds."""
TOGETHER_MAX: Final = 2
"""How many live in most worlds: enough to disturb one another."""


def draw_inhabitants(seed: int, who: frozenset[str]) -> frozenset[str]:
    """Who of these lives in the world of a seed: one or two of them; in one world of eight, all."""
    rng, later = streams(seed, "inhabitants", "newcomers")
    names = sorted(who & FIRST)
    if rng.random() < 1 / 8:
        return who
    there = frozenset(rng.sample(names, min(TOGETHER_MAX, len(names) - 1)))
    there |= {name for name in sorted(who & NEWCOMERS) if later.random() < NEWCOMERS_SHARE}
    (elsewhere,) = streams(seed, FUNCTIONS)
    return there | {name for name in who & {FUNCTIONS} if WORKFLOWS in there and elsewhere.random() < 1 / 2}


def settle_in(seed: int, climate: Climate, world: Surroundings, folder: Path) -> list[Inhabitant]:
    """The inhabitants that a climate names, each with a generator of its own."""
    there: list[Inhabitant] = []
    outbox, heartbeat, slots, workflows, money, alerts, talk = streams(
        seed, OUTBOX, HEARTBEAT, SLOTS, WORKFLOWS, MONEY, "alerts", "talk"
    )
    conversations = Conversations(talk, world, lease=climate.lease)
    days, per_day = climate.days, climate.deeds_per_day
    if OUTBOX in climate.inhabitants:
        is_heard = climate.nodes == 1 or days <= HEARD_MAX
        troubles = Troubles(alerts, world)
        there.append(Outbox(outbox, world, troubles, conversations, days=days, per_day=per_day, is_heard=is_heard))
    if HEARTBEAT in climate.inhabitants:
        pace, nodes = 2 * climate.pace, climate.nodes
        there.append(Beating(heartbeat, world, conversations, days=days, per_day=per_day, pace=pace, nodes=nodes))
    if SLOTS in climate.inhabitants:
        there.append(Keys(slots, world, days=days, per_day=per_day, lease=climate.lease, folder=folder))
    if WORKFLOWS in climate.inhabitants:
        (functions,) = streams(seed, FUNCTIONS)
        elsewhere = functions if FUNCTIONS in climate.inhabitants else None
        pace, lease = climate.pace, climate.lease
        there.append(Post(workflows, world, days=days, per_day=per_day, pace=pace, lease=lease, elsewhere=elsewhere))
    if MONEY in climate.inhabitants:
        agent = next((one for one in there if one.name == HEARTBEAT), None)
        there.append(Purse(money, world, agent, days=days, per_day=per_day))
    source, agents = streams(seed, SOURCE, AGENTS)
    if AGENTS in climate.inhabitants:
        there.append(Agents(agents, world, days=days, per_day=per_day, pace=climate.pace))
    if SOURCE in climate.inhabitants:
        there.append(Source(source, world, days=days, per_day=per_day))
    return there
