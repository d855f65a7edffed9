"""The name of a schedule or a workflow. A module of its own, because every command checks one."""

import re
from typing import Final

SLUG_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
