"""Detect network file systems: a database on one gets corrupted sooner or later."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

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
    }
)
NETWORKED_FUSE: Final = frozenset(
    {
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


def network_file_system(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """The kind of network file system a folder is on; None if it is local or unknown."""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    where, kind = Path(os.path.realpath(folder)), ""
    deepest = -1
    for line in lines:
        mounted, _, about = line.partition(" - ")
        fields = mounted.split()
        if len(fields) < 5 or not about:
            continue
        point = Path(_unescaped(fields[4]))
        # Later mounts hide earlier ones, so the last one at a path counts.
        if where.is_relative_to(point) and len(point.parts) >= deepest:
            deepest, kind = len(point.parts), about.split()[0]
    return kind if kind in NETWORKED or kind in NETWORKED_FUSE else None


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
