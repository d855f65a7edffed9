"""A real Chromium: found on this machine, or installed where the system lets us; otherwise the tests say why not."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
PLACES: Final = (
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
)
PATIENCE: Final = 240
"""Seconds that installing may take."""


class NoBrowser(Exception):
    """There is none, and why."""


def find_chromium() -> str:
    """The path of a Chromium; installed from Debian's packages if there is none and we may."""
    found = _found()
    if found is not None:
        return found
    if shutil.which("apt-get") is None:
        raise NoBrowser("no Chromium or Chrome on the PATH, and no apt-get to install one; install chromium")
    if os.geteuid() != 0:
        raise NoBrowser("no Chromium or Chrome on the PATH, and only root can install one: apt-get install chromium")
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    said = ""
    for command in (
        ["apt-get", "install", "-y", "chromium"],
        ["apt-get", "update"],
        ["apt-get", "install", "-y", "chromium"],
    ):
        try:
            done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise NoBrowser(f"{' '.join(command)} took longer than {PATIENCE} s") from None
        said = done.stderr.strip()[-300:]
        found = _found()
        if found is not None:
            return found
    raise NoBrowser(f"apt-get could not install chromium: {said}")


def _found() -> str | None:
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    return next((str(place) for place in PLACES if place.exists()), None)
