"""A home folder in which everything moves, for a first look: `wakeful up --demo`.

`home` makes the folder with its settings; `things` tells what is written into it over the API, as a user would, once
the daemon answers; `programs` are the small programs that pretend to be the outside.
"""

from wakeful.server.demo.home import DEMO_HOME, NotTheDemo, prepare
from wakeful.server.demo.things import PAUSED, UNHEARD, DemoItem, things

__all__ = ["DEMO_HOME", "PAUSED", "UNHEARD", "DemoItem", "NotTheDemo", "prepare", "things"]
