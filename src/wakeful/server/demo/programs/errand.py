"""`errand.py tidy|import|crunch`, in the demo's home: sample commands. One fails every sixth time, one takes long."""

import json
import sys
import time
from pathlib import Path

LONG = 8.0


def main(what: str, home: Path) -> int:
    if what == "crunch":
        time.sleep(LONG)
        sys.stdout.write("crunched 12,000 rows\n")
    elif what == "import":
        return _import(home / "imported.json")
    else:
        sys.stdout.write("nothing left to tidy\n")
    return 0


def _import(file: Path) -> int:
    """Fails first at the second run, so that a failure shows up soon."""
    times = json.loads(file.read_text()) if file.exists() else 0
    file.write_text(json.dumps(times + 1))
    if times % 6 == 1:
        sys.stderr.write("upstream returned 503: try again later (simulated)\n")
        return 1
    sys.stdout.write("imported 3 records\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path.cwd()))
