"""Definitions as files: `schedule/<slug>/definition.json` and `last-run.json` beside the embedded store."""

from wakeful.mirror.mirror import Mirror
from wakeful.mirror.report import Report
from wakeful.mirror.texts import Which

__all__ = ["Mirror", "Report", "Which"]
