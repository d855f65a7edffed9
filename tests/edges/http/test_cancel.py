"""`POST /api/runs/{id}/cancel`, with a real process group."""

import asyncio
from pathlib import Path

from edges.http.kit import Client

PROGRAM = """
trap '' TERM
echo $$ > {pid}
sleep 300 & echo $! > {child}
while true; do sleep 1; done
"""


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def _until(path: Path) -> int:
    for _ in range(1200):
        if path.exists() and path.read_text().strip():
            return int(path.read_text())
        await asyncio.sleep(0.05)
    raise AssertionError(f"{path.name} was not written")


async def test_a_command_and_all_its_children_are_ended(api: Client, tmp_path: Path) -> None:
    """Although it ignores SIGTERM; when the run reads `cancelled`, no process of it is left."""
    pid, child = tmp_path / "pid", tmp_path / "child"
    argv = ["sh", "-c", PROGRAM.format(pid=pid, child=child)]
    await api.put("stubborn", {"schedule": {"type": "manual"}, "command": {"argv": argv}, "retry": {"times": 3}})
    run_id = (await api.post("/api/schedule/stubborn/run")).body["runId"]
    pids = [await _until(pid), await _until(child)]
    answer = await api.post(f"/api/runs/{run_id}/cancel")
    assert (answer.status, answer.body["outcome"]) == (202, "running")
    assert answer.body["cancelRequestedAt"]
    run = await api.app.wait_for(int(run_id), within="120s")
    assert (run.outcome, run.attempt, run.error) == ("cancelled", 1, None)
    assert [number for number in pids if _is_alive(number)] == []
    again = await api.post(f"/api/runs/{run_id}/cancel")
    assert (again.status, again.body["outcome"]) == (202, "cancelled")
    assert (await api.get("/api/runs?outcome=cancelled")).body["runs"][0]["runId"] == run_id


async def test_what_cannot_be_cancelled_is_refused(api: Client) -> None:
    """A run that does not exist, and one that has ended."""
    assert (await api.post("/api/runs/4711/cancel")).status == 404
    await api.put("quick", {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}})
    run = (await api.post("/api/schedule/quick/run?wait=true")).body
    answer = await api.post(f"/api/runs/{run['runId']}/cancel")
    assert (answer.status, "already ended: succeeded" in answer.body["detail"]) == (409, True)
