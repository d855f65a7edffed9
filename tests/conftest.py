"""Lets tests import what they share by the folder's name, as in `from features.kit import World`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
