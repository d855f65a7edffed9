"""The ledger checked against what should have been, and against what was seen from outside."""

from ledger_check.ledger import Finding, History, Verdict, audit
from ledger_check.observed import Observation, read_observations

__all__ = ["Finding", "History", "Observation", "Verdict", "audit", "read_observations"]
