"""Wakeful for Python programs: schedules in one file, rung by this process."""

from wakeful.app.facade import Wakeful
from wakeful.app.heartbeat_settings import Heartbeat
from wakeful.app.values import Guard, MakeBeside, MakeListener, MakeSink, New, Written
from wakeful.ports.handlers import Beside

__all__ = ["Beside", "Guard", "Heartbeat", "MakeBeside", "MakeListener", "MakeSink", "New", "Wakeful", "Written"]
