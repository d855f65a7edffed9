"""Request bodies of merge patches (RFC 7396), for OpenAPI."""

from collections.abc import Mapping
from typing import Any, Final

from wakeful.core.description import COMPONENTS

MERGE_PATCH: Final = "MergePatch"
"""One name for both media types: generated clients make a class of it."""


def patch_body(example: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a merge patch."""
    content = {"schema": {"$ref": COMPONENTS + MERGE_PATCH}, "example": example}
    return dict.fromkeys(("application/json", "application/merge-patch+json"), content)
