"""`quota.py read|wake`, in the demo's home: a simulated provider whose window of four minutes starts with a wake."""

import json
import sys
import time
from pathlib import Path

WINDOW = 240.0
FULL = 90.0


def main(what: str, home: Path) -> int:
    file, now = home / "quota.json", time.time()
    began = json.loads(file.read_text()) if file.exists() else 0.0
    is_warm = now < began + WINDOW
    if what == "wake":
        if not is_warm:
            file.write_text(json.dumps(now))
        return 0
    told: dict[str, float] = {"percentage": 0.0}
    if is_warm:
        told = {
            "percentage": round((now - began) / WINDOW * FULL, 1),
            "nextResetTime": round((began + WINDOW) * 1000),
        }
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path.cwd()))
