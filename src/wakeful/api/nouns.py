"""The table of all operations: the nouns, by their tag in OpenAPI."""

from collections.abc import Mapping
from typing import Final

from wakeful.api.ledger import Ledger
from wakeful.api.money import Money
from wakeful.api.operation import Noun
from wakeful.api.people import People
from wakeful.api.schedules import Schedules
from wakeful.api.slots import Slots
from wakeful.api.system import System
from wakeful.api.turns import Turns
from wakeful.api.workflows import Workflows

NOUNS: Final[Mapping[str, type[Noun]]] = {
    "schedules": Schedules,
    "runs": Ledger,
    "workflows": Workflows,
    "quota": Slots,
    "people": People,
    "money": Money,
    "turns": Turns,
    "daemon": System,
}
