"""Facts about this machine: whether its disk keeps what it confirms, its clock, whether it may sleep. None of them
changes a drill's verdict. A drill cannot cut the power, so whether a sync is honest can only be judged by how long it
takes and by the kind of disk.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from wakeful.server.daemon.file_systems import Mount, mount_of

State: TypeAlias = Literal["ok", "warning", "unknown"]
Fact: TypeAlias = dict[str, Any]

SYNCS: Final = 100
SYNCS_WITHIN: Final = 1.0
BLOCK: Final = 4_096
FAST_MS: Final = 0.05
"""A drive with a protected cache needs about this long to confirm a sync, and no drive is faster."""

ROTATION_MS: Final = 2.0
"""A rotating disk must wait for its platter: several milliseconds."""

SLOW_MS: Final = 50.0
IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
UNSAFE_OPTIONS: Final = frozenset({"nobarrier", "barrier=0", "data=writeback"})
FREE_LOW: Final = 1024**3

_TIME_ERROR: Final = 5  # what adjtimex returns while the clock is not synchronised
_TIMEX_BYTES: Final = 208
_MAXERROR_AT: Final = 24
_ASK_WITHIN: Final = 3.0


def look_at(folder: Path, server: str | None = None) -> Fact:
    """Everything that is known about this machine, and about the PostgreSQL server if there is one."""
    mount = mount_of(folder)
    facts: Fact = {
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} processors",
        "fileSystem": fact(
            "unknown" if mount is None else "ok", "unknown" if mount is None else f"{mount.kind} at {mount.point}"
        ),
        "sync": sync(folder, mount),
        "clock": clock(),
        "sleep": sleep(),
        "disk": disk(folder),
    }
    return facts if server is None else facts | {"server": server_sync(server)}


def fact(state: State, words: str, **more: object) -> Fact:
    """A fact: whether it is fine, in words, and its figures."""
    return {"state": state, "words": words, **more}


# --- the disk --------------------------------------------------------------------------------------------------------


def sync(folder: Path, mount: Mount | None) -> Fact:
    """How long it takes until a small write is confirmed, and whether that can be true."""
    times = sorted(sync_times(folder))
    median, slowest = statistics.median(times), times[-1]
    state, words = judge_sync(median, mount, is_rotating=is_rotating(folder))
    return fact(state, f"{median:.2f} ms ({words})", medianMs=round(median, 3), slowestMs=round(slowest, 3))


def judge_sync(median_ms: float, mount: Mount | None, *, is_rotating: bool | None) -> tuple[State, str]:
    """Whether a disk can be as fast as measured."""
    if mount is not None and mount.kind in IN_MEMORY:
        return "warning", f"{mount.kind}: everything is lost when the machine stops"
    unsafe = UNSAFE_OPTIONS & (frozenset() if mount is None else mount.options)
    if unsafe:
        return "warning", f"mounted with {', '.join(sorted(unsafe))}: a power failure loses data"
    if median_ms < FAST_MS or (is_rotating and median_ms < ROTATION_MS):
        cause = "a layer that confirms before it has written, or a drive with a protected cache"
        return "warning", f"faster than a disk can be: {cause}"
    if median_ms > SLOW_MS:
        return "warning", "slow: at most a few hundred runs per second"
    return "ok", "plausible for a disk"


def sync_times(folder: Path) -> Iterator[float]:
    """Milliseconds of one sync each."""
    path = folder / "sync"
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    give_up_at = time.monotonic() + SYNCS_WITHIN
    try:
        for number in range(SYNCS):
            os.pwrite(file, os.urandom(BLOCK), number * BLOCK)
            began = time.perf_counter()
            _sync(file)
            yield (time.perf_counter() - began) * 1000
            if time.monotonic() > give_up_at:
                return
    finally:
        os.close(file)
        path.unlink(missing_ok=True)  # a drill that was stopped has removed the folder


def _sync(file: int) -> None:
    """As SQLite does it: macOS confirms an fsync before the drive has written it, unless told otherwise."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fsync(file)


def is_rotating(folder: Path) -> bool | None:
    """Whether the disk rotates, according to the kernel; None if it does not say, or if the disk is a virtual one."""
    device = folder.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    try:
        place = block.resolve(strict=True)
        if "virtual" in place.parts or "virtio" in str(place):
            return None
        holder = place if (place / "queue").exists() else place.parent
        return (holder / "queue/rotational").read_text().strip() == "1"
    except OSError:
        return None


def disk(folder: Path) -> Fact:
    """How much is free."""
    free = shutil.disk_usage(folder).free
    return fact("ok" if free >= FREE_LOW else "warning", f"{free / 1024**3:.1f} GB free", freeBytes=free)


def server_sync(server: str) -> Fact:
    """Whether the PostgreSQL server syncs before it confirms a commit."""
    import psycopg

    names = ("fsync", "synchronous_commit", "full_page_writes")
    with psycopg.connect(server, autocommit=True, connect_timeout=10) as connection:
        values = {name: connection.execute(f"SHOW {name}".encode()).fetchone() for name in names}
    settings = {name: "unknown" if value is None else str(value[0]) for name, value in values.items()}
    off = [name for name, value in settings.items() if value == "off"]
    if off:
        return fact("warning", f"{', '.join(off)} off: a failure of its machine loses commits", **settings)
    return fact("ok", "syncs before it confirms a commit", **settings)


# --- the clock -------------------------------------------------------------------------------------------------------


def clock() -> Fact:
    """Whether something keeps the clock synchronised."""
    asked = ask_kernel_clock()
    if asked is None:
        return fact("unknown", "this system does not say whether its clock is synchronised")
    is_synchronised, error_ms = asked
    if is_synchronised:
        return fact("ok", f"synchronised, off by at most {error_ms:,.0f} ms", maxErrorMs=error_ms)
    cure = "run chrony or systemd-timesyncd"
    return fact("warning", f"not synchronised, according to the kernel: {cure}", maxErrorMs=error_ms)


def ask_kernel_clock() -> tuple[bool, float] | None:
    """Linux: whether the clock is synchronised, and its greatest error in milliseconds. Nothing is changed."""
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        timex = ctypes.create_string_buffer(_TIMEX_BYTES)  # with `modes` 0 the call only reads
        state = libc.adjtimex(timex)
    except (OSError, AttributeError):
        return None
    error_us = int.from_bytes(timex.raw[_MAXERROR_AT : _MAXERROR_AT + 8], sys.byteorder, signed=True)
    return None if state < 0 else (state != _TIME_ERROR, error_us / 1000)


# --- sleep -----------------------------------------------------------------------------------------------------------


def sleep(root: Path = Path("/")) -> Fact:
    """Whether this machine may suspend. Nothing fires meanwhile; what was missed is caught up afterwards."""
    if sys.platform == "darwin":
        return _sleep_of_mac()
    states = _read(root / "sys/power/state").split()
    has_battery = any(_read(kind).strip() == "Battery" for kind in root.glob("sys/class/power_supply/*/type"))
    has_lid = any(root.glob("proc/acpi/button/lid/*"))
    facts = {"battery": has_battery, "lid": has_lid}
    if not {"mem", "disk", "standby", "freeze"} & set(states):
        return fact("ok", "cannot suspend", **facts)
    if _ask("systemctl", "is-enabled", "sleep.target") == "masked":
        return fact("ok", "suspending is switched off (sleep.target is masked)", **facts)
    if has_battery or has_lid:
        cause = "closing the lid or an empty battery" if has_lid else "an empty battery"
        return fact("warning", f"a laptop: {cause} suspends it, and nothing fires meanwhile", **facts)
    return fact("ok", "it can suspend when someone asks it to; it has no lid and no battery", **facts)


def _sleep_of_mac() -> Fact:
    settings = dict(line.split()[:2] for line in _ask("pmset", "-g").splitlines() if len(line.split()) >= 2)
    minutes = settings.get("sleep", "")
    if not minutes.isdigit():
        return fact("unknown", "this system does not say whether it goes to sleep automatically")
    if minutes == "0":
        return fact("ok", "it does not go to sleep automatically")
    return fact("warning", f"it goes to sleep after {minutes} idle minutes, and nothing fires meanwhile")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _ask(*argv: str) -> str:
    """A system program's output; empty if it is not installed."""
    try:
        answer = subprocess.run(argv, capture_output=True, text=True, timeout=_ASK_WITHIN, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()
