"""What the engine and the features of this process share about their node. It is made before both."""

import asyncio


class ThisNode:
    """The engine's bell, and what this node publishes with its lease."""

    def __init__(self) -> None:
        self.bell = asyncio.Event()  # ends the engine's sleep
        self.is_rung = False  # it must tick; otherwise its next tick is only earlier than it was
        self.terms = ""  # a hash of the settings that all nodes must share
        self.labels_held: frozenset[str] = frozenset()  # as its row in the store says: what it claims is under these

    def ring_bell(self) -> None:
        """Tick now: something may be due earlier than planned."""
        self.is_rung = True
        self.bell.set()

    def publish_terms(self, terms: str) -> None:
        """Publish a hash of the settings this node runs with, as part of its lease."""
        self.terms = terms
