"""Detect network file systems: a database on one gets corrupted sooner or later."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

MOUNTS: Final = Path("/proc/self/mountinfo")
NETWORKED: Final = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "ncpfs",
        "davfs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.davfs2",
        "fuse.ceph",
        "fuse.goofys",
        "fuse.gcsfuse",
    }
)


class Mount(NamedTuple):
    """Where a folder is mounted."""

    point: str
    kind: str
    options: frozenset[str]


def mount_of(folder: Path, mounts: Path = MOUNTS) -> Mount | None:
    """The mount that a folder is on; None where the system does not say."""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    where, mount = Path(os.path.realpath(folder)), None
    for line in lines:
        mounted, _, about = line.partition(" - ")
        fields, kinds = mounted.split(), about.split(" ")  # the source in the middle may be empty
        if len(fields) < 6 or len(kinds) < 3:
            continue
        point = Path(_unescaped(fields[4]))
        # Later mounts hide earlier ones, so the last one at a path counts.
        if where.is_relative_to(point) and (mount is None or len(point.parts) >= len(Path(mount.point).parts)):
            mount = Mount(str(point), kinds[0], frozenset((fields[5] + "," + kinds[2]).split(",")))
    return mount


def network_file_system(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """The kind of network file system a folder is on; None if it is local or unknown."""
    mount = mount_of(folder, mounts)
    return mount.kind if mount is not None and mount.kind in NETWORKED else None


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
