"""Wakeful for Python programs: schedules in one file, rung by this process."""

from wakeful.app.facade import Wakeful
from wakeful.app.values import Beside, Guard, MakeBeside, MakeSink, New, Written

__all__ = ["Beside", "Guard", "MakeBeside", "MakeSink", "New", "Wakeful", "Written"]
