"""`description` is derived from the timing: one that a client sends is not stored, and the answer says so."""

from pathlib import Path

import pytest

from edges.http.kit import served

ONE = {"schedule": {"type": "every", "every": "2h", "anchor": "2026-01-01T00:00:00Z"}, "command": {"argv": ["true"]}}
WARNING = "Wakeful-Warning"


@pytest.mark.parametrize("dry_run", ["", "?dryRun=true"])
async def test_a_description_that_is_not_stored_is_a_warning(tmp_path: Path, dry_run: str) -> None:
    """It names the field and what is read back. What was read is accepted without one."""
    async with served(tmp_path) as api:
        path = f"/api/schedule/one{dry_run}"
        sent = await api.ask("PUT", path, {**ONE, "description": "tidies up every night"})
        assert sent.status in (200, 201)
        derived = sent.body["description"]
        assert derived != "tidies up every night"
        assert sent.headers[WARNING].startswith(f"description is derived from the timing ({derived})")
        assert "is not stored" in sent.headers[WARNING]
        for body in ({**ONE, "description": derived}, {**ONE, "description": None}, ONE):
            assert WARNING not in (await api.ask("PUT", path, body)).headers


async def test_a_patch_warns_too(tmp_path: Path) -> None:
    """Nothing of it is stored."""
    async with served(tmp_path) as api:
        await api.ask("PUT", "/api/schedule/one", ONE)
        sent = await api.ask("PATCH", "/api/schedule/one", {"description": "tidies up"})
        assert sent.status == 200 and "is not stored" in sent.headers[WARNING]
        assert (await api.get("/api/schedule/one")).body["description"] == sent.body["description"] != "tidies up"
