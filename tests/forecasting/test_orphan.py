"""A simulation whose daemon is killed does not go on."""

import os
import select
import subprocess
import sys

from patience import PATIENCE

PARENT = """
import os, sys
from wakeful.simulation.orphan import ending_with_parent
if os.fork() == 0:
    with ending_with_parent():
        sys.stdout.write("ready\\n")
        sys.stdout.flush()
        while True:
            pass
os.wait()
"""
SHORT = """
from wakeful.simulation import orphan
orphan.LOOK_EVERY = 0.0001
with orphan.ending_with_parent():
    sum(range(100_000))
"""


def test_it_ends_with_the_process_that_asked_for_it() -> None:
    """However busy it is; the pipe that both hold is closed when both are gone."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, bufsize=0)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    parent.kill()
    parent.wait()
    readable, _, _ = select.select([parent.stdout], [], [], PATIENCE)
    assert readable
    assert os.read(parent.stdout.fileno(), 1) == b""
    parent.stdout.close()


def test_it_is_not_ended_by_its_own_timer() -> None:
    """Neither while it works, nor when the interpreter shuts down."""
    for _ in range(5):
        subprocess.run([sys.executable, "-c", SHORT], check=True, timeout=PATIENCE)
