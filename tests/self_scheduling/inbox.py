"""What an approver reads in the inbox."""

import time

from edges.cli.kit import Cli
from patience import PATIENCE


def in_the_inbox(cli: Cli, words: str) -> str:
    """The messages of the inbox, once one of them has these words."""
    end = time.monotonic() + PATIENCE
    while words not in (told := cli.ask("inbox", "-o", "json").out):
        assert time.monotonic() < end, told
        time.sleep(0.1)
    return told
