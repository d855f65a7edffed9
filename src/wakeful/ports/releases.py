"""Which release a node is, and the schema step that waits for the last node of the one before."""

from typing import Final

RELEASE: Final = "0.3"
"""Written into the row of each node; 0.2 writes none."""

WITHOUT_0_2: Final = 13
"""The step after which 0.2 cannot use the store. Until it is taken, this release runs without it."""
