"""The version of the protocols that plugins are written against; see `wakeful.plugins`."""

from typing import Final

VERSION: Final = 1
"""Counts up when a protocol changes in a way that plugins notice."""
