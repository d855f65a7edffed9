"""Settings: `wakeful.toml`, read whole or refused whole, followed while it changes, and never telling a secret."""

from wakeful.settings.faults import LocatedError, SettingsRefused
from wakeful.settings.load import Loaded, Source, load
from wakeful.settings.masked import to_json
from wakeful.settings.model import Settings
from wakeful.settings.secrets import MASK, Redactor, Secret, SecretUrl
from wakeful.settings.standing import HeldBack, Standing
from wakeful.settings.walk import diff
from wakeful.settings.watch import SettingsWatch

__all__ = [
    "MASK",
    "HeldBack",
    "Loaded",
    "LocatedError",
    "Redactor",
    "Secret",
    "SecretUrl",
    "Settings",
    "SettingsRefused",
    "SettingsWatch",
    "Source",
    "Standing",
    "diff",
    "load",
    "to_json",
]
