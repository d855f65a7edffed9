"""A demo home with frequent schedules, for a first look: `wakeful up --demo`.

`home` creates the folder with its settings; `things` lists what is created over the API, as a user would, once the
daemon responds; `programs` are small programs that stand in for external services.
"""

from wakeful.server.demo.home import DEMO_HOME, TOKEN_FILE, NotTheDemo, prepare
from wakeful.server.demo.things import AT_ONCE, PAUSED, PROPOSAL, PROPOSER, PROPOSER_WORK, UNHEARD, DemoItem, things

__all__ = [
    "AT_ONCE",
    "DEMO_HOME",
    "PAUSED",
    "PROPOSAL",
    "PROPOSER",
    "PROPOSER_WORK",
    "TOKEN_FILE",
    "UNHEARD",
    "DemoItem",
    "NotTheDemo",
    "prepare",
    "things",
]
