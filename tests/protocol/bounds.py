"""The bounds of the explorations."""

from typing import Final

from protocol.state import CALL, TURN, Bounds

SMALL: Final = (Bounds(crashes=1), Bounds((CALL,), crashes=1, clock_steps=1))
"""Of `make check`: a few seconds."""

LARGE: Final = (
    Bounds(crashes=2),
    Bounds(crashes=2, clock_steps=1),
    Bounds(crashes=2, lease=2),
    Bounds((CALL,), crashes=1, clock_steps=1, lease=2),
    Bounds((TURN,), instants=2, crashes=2),
    Bounds(instants=2, crashes=1),
)
"""Of `make torture`: many minutes, and a gigabyte."""

SUFFICIENT: Final = Bounds(crashes=1, clock_steps=1)
"""Every broken variant is found within these."""
