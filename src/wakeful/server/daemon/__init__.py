"""The daemon: one home folder, one clock, one API.

Heavy modules are imported lazily: the command line uses `holder_of` to find the daemon.
"""

from wakeful.server.daemon.file_systems import network_file_system
from wakeful.server.daemon.home import Holder, HomeHeld, holder_of
from wakeful.server.daemon.process import OnReady, run, serve
from wakeful.server.daemon.refusal import DaemonRefused
from wakeful.server.daemon.sockets import Listening

__all__ = [
    "DaemonRefused",
    "Holder",
    "HomeHeld",
    "Listening",
    "OnReady",
    "holder_of",
    "network_file_system",
    "run",
    "serve",
]
