"""A real Chromium on this machine."""

import shutil
from pathlib import Path
from typing import Final

NAMES: Final = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
PLACES: Final = (
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
)


class NoBrowser(Exception):
    """No Chromium is installed."""


def find_chromium() -> str:
    """The path of a Chromium."""
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    for place in PLACES:
        if place.exists():
            return str(place)
    raise NoBrowser("no Chromium or Chrome is installed; tools/test_programs.py installs one on Debian")
