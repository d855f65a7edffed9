"""Identifies processes, and ends those left behind by a crashed node.

Pids are reused; a process is identified by its pid and its start time. The system never reuses a pid while a session
or group still has it. So if the pid now belongs to a process with another start time, the whole old session is gone,
and nothing may be signalled.
"""

from typing import Literal

from wakeful.core.time.instants import Duration
from wakeful.integrations.actions.environment import RUN_ID
from wakeful.integrations.actions.process_table import boot_id, has_variable, session_members, started_of, this_host
from wakeful.integrations.actions.sessions import END_GRACE, end_session, listed
from wakeful.ports.action import OrphanFate, Process


async def end_orphan(process: Process, *, grace: Duration = END_GRACE) -> OrphanFate:
    """End the whole session that a crashed node on this machine left behind, if it still belongs to that process."""
    if process.host != await listed(this_host, name="orphan"):
        return "elsewhere"
    state = await listed(lambda: _find(process), name="orphan")
    if state == "living":
        return "gone" if await end_session(process.pid, grace) else "remains"
    return "gone" if state == "gone" else "remains"


def identify(pid: int) -> Process:
    """The identity of the process, for recognising it later, even after a restart."""
    return Process(this_host(), pid, started_of(pid) or "")


def _find(process: Process) -> Literal["gone", "living", "unknown"]:
    """The state of a process, as far as this machine can tell."""
    boot, _, started = process.started.partition("/")
    if process.pid <= 1 or not started:
        return "unknown"
    if boot != boot_id():
        return "gone"  # no process survives a reboot
    now_started = started_of(process.pid)
    if now_started is not None:
        return "living" if now_started == process.started else "gone"
    members = session_members(process.pid)
    if not members:
        return "gone"
    # The leader is gone but the session has members. Most likely its children; but an unrelated session that got the
    # same number later, and whose leader is gone too, looks the same and must not be killed.
    return "living" if all(has_variable(member.pid, RUN_ID) for member in members) else "unknown"
