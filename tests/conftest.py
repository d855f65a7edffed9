"""Lets tests import what they share by the folder's name, as in `from features.kit import World`; and lets no test fail
because the machine was busy."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("wakeful", deadline=None)
settings.load_profile("wakeful")
