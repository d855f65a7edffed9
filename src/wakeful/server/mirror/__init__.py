"""Definitions as files: `schedule/<slug>/definition.json` and `last-run.json` beside the embedded store."""

from wakeful.server.mirror.mirror import Mirror
from wakeful.server.mirror.report import Report
from wakeful.server.mirror.texts import Which

__all__ = ["Mirror", "Report", "Which"]
