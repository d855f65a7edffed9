"""What a drill says about the machine, from what the system shows."""

import sys
from pathlib import Path

import pytest

from wakeful.drill.machine import clock, disk, judge_sync, look_at, sleep
from wakeful.server.daemon.file_systems import Mount, mount_of

EXT4 = Mount("/", "ext4", frozenset({"rw", "relatime"}))


@pytest.mark.parametrize(
    ("median", "mount", "is_rotating", "state", "words"),
    [
        (1.5, EXT4, False, "ok", "plausible for a disk"),
        (9.0, EXT4, True, "ok", "plausible for a disk"),
        (0.01, EXT4, False, "warning", "faster than a disk can be"),
        (0.5, EXT4, True, "warning", "faster than a disk can be"),
        (80.0, EXT4, None, "warning", "slow"),
        (0.002, Mount("/tmp", "tmpfs", frozenset()), None, "warning", "tmpfs"),
        (2.0, Mount("/", "ext4", frozenset({"rw", "nobarrier"})), None, "warning", "nobarrier"),
        (2.0, None, None, "ok", "plausible for a disk"),
    ],
)
def test_whether_a_sync_can_be_that_fast(
    median: float, mount: Mount | None, is_rotating: bool | None, state: str, words: str
) -> None:
    """A disk that rotates needs milliseconds, any other at least some microseconds; memory keeps nothing."""
    found = judge_sync(median, mount, is_rotating=is_rotating)
    assert found[0] == state
    assert words in found[1]


def test_the_deepest_mount_counts(tmp_path: Path) -> None:
    """As the kernel lists them: device, root, point, options, kind, source, options."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,nobarrier\n"
        f"23 22 0:30 / {tmp_path} rw - tmpfs tmpfs rw,size=9k\n"
        "24 22 0:31 / /elsewhere rw - xfs /dev/sdb rw\n"
    )
    assert mount_of(tmp_path / "deeper", mounts) == Mount(str(tmp_path), "tmpfs", frozenset({"rw", "size=9k"}))
    assert mount_of(Path("/etc"), mounts) == Mount("/", "ext4", frozenset({"rw", "relatime", "nobarrier"}))
    assert mount_of(tmp_path, tmp_path / "nothing") is None


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux shows")
@pytest.mark.parametrize(
    ("states", "battery", "lid", "state", "words"),
    [
        ("", False, False, "ok", "cannot suspend"),
        ("freeze mem disk", True, True, "warning", "closing the lid"),
        ("freeze mem disk", True, False, "warning", "an empty battery"),
        ("mem", False, False, "ok", "no lid and no battery"),
    ],
)
def test_whether_it_may_sleep(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    states: str,
    battery: bool,
    lid: bool,
    state: str,
    words: str,
) -> None:
    """A laptop does, a server without a lid does not; one that cannot suspend never does."""
    monkeypatch.setenv("PATH", str(tmp_path))  # systemctl of the machine that runs this is not asked
    (tmp_path / "sys/power").mkdir(parents=True)
    (tmp_path / "sys/power/state").write_text(states)
    for name, kind in (("AC", "Mains"), *((("BAT0", "Battery"),) if battery else ())):
        (tmp_path / "sys/class/power_supply" / name).mkdir(parents=True)
        (tmp_path / "sys/class/power_supply" / name / "type").write_text(f"{kind}\n")
    if lid:
        (tmp_path / "proc/acpi/button/lid/LID0").mkdir(parents=True)
    found = sleep(tmp_path)
    assert (found["state"], found["battery"], found["lid"]) == (state, battery, lid)
    assert words in found["words"]


def test_this_machine(tmp_path: Path) -> None:
    """Everything is said of the machine that runs this, and the folder is as it was."""
    found = look_at(tmp_path)
    assert found["sync"]["medianMs"] > 0
    assert found["sync"]["slowestMs"] >= found["sync"]["medianMs"]
    assert found["disk"]["freeBytes"] > 0
    assert {fact["state"] for name, fact in found.items() if name != "system"} <= {"ok", "warning", "unknown"}
    assert clock()["words"]
    assert disk(tmp_path)["words"].endswith("GB free")
    assert list(tmp_path.iterdir()) == []
