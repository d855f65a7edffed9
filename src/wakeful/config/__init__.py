"""Settings: `wakeful.toml` is accepted or refused as a whole, reloaded when it changes, and never reveals a secret."""

from wakeful.config.faults import LocatedError, SettingsRefused
from wakeful.config.load import Loaded, Source, load
from wakeful.config.masked import to_json
from wakeful.config.model import Settings
from wakeful.config.secrets import MASK, Redactor, Secret, SecretUrl
from wakeful.config.status import PendingChange, SettingsStatus
from wakeful.config.walk import diff
from wakeful.config.watch import SettingsWatch

__all__ = [
    "MASK",
    "Loaded",
    "LocatedError",
    "PendingChange",
    "Redactor",
    "Secret",
    "SecretUrl",
    "Settings",
    "SettingsRefused",
    "SettingsStatus",
    "SettingsWatch",
    "Source",
    "diff",
    "load",
    "to_json",
]
