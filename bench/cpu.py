"""Processor time of another process, where the system says it."""

import os
from pathlib import Path


def seconds_of(pid: int) -> float:
    """Seconds of processor time that a process has used; 0 where /proc does not exist."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
