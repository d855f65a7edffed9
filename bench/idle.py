"""The cost of an idle process, measured in the same way for all."""

import resource
import sys
import time
from pathlib import Path

from bench.lines import emit

STATUS = Path("/proc/self/status")
MEGABYTE = 1024 * 1024


def resident() -> float:
    """Resident memory in MB; the maximum so far if the system does not report the current value."""
    if STATUS.is_file():
        for line in STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MEGABYTE if sys.platform == "darwin" else peak / 1024


class Idleness:
    """Measures this process from creation to `emit`."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._cpu = time.process_time()

    def emit(self, jobs: int) -> None:
        """Emit CPU seconds per 20 s, and memory."""
        took = time.perf_counter() - self._began
        emit("idle cpu", (time.process_time() - self._cpu) / took * 20, seconds=took, jobs=jobs)
        emit("idle rss", resident(), jobs=jobs)
