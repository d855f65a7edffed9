"""Wakeful for Python programs: a scheduler in this process over one store."""

from wakeful.app.facade import Wakeful
from wakeful.app.heartbeat_settings import Heartbeat
from wakeful.app.values import Guard, MakeBeside, MakeListener, MakeSink, New, WrittenSchedule
from wakeful.ports.handlers import BackgroundService

__all__ = [
    "BackgroundService",
    "Guard",
    "Heartbeat",
    "MakeBeside",
    "MakeListener",
    "MakeSink",
    "New",
    "Wakeful",
    "WrittenSchedule",
]
