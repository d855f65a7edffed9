"""A machine for imports: a home, and stand-ins for programs on the PATH, which record what they are given."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = """#!{python} -ES
import json, os, pathlib, sys
heard = pathlib.Path({heard!r})
number = len(list(heard.glob({name!r} + " *")))
said = {{
    "argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ),
    "stdin": "" if sys.stdin.isatty() else sys.stdin.read(),
}}
part = heard / (".part" + str(os.getpid()))
part.write_text(json.dumps(said))
part.rename(heard / ({name!r} + " " + str(number)))
print({name!r} + " was here")
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """A person's machine in a folder."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def path(self) -> str:
        return f"{self.bin}:{os.defpath}"

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.folder), "PATH": self.path}

    def install(self, *names: str, into: Path | None = None) -> "Machine":
        """Stand-ins of these names."""
        heard = self.folder / "heard"
        heard.mkdir(parents=True, exist_ok=True)
        for name in names:
            program = (into or self.bin) / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(SCRIPT.format(python=sys.executable, heard=str(heard), name=name))
            program.chmod(0o755)
        return self

    def heard(self, name: str) -> list[dict[str, Any]]:
        """What a stand-in was given, each time it ran."""
        files = sorted((self.folder / "heard").glob(f"{name} *"), key=lambda file: int(file.name.rpartition(" ")[2]))
        return [json.loads(file.read_text()) for file in files]

    def context(self) -> dict[str, Any]:
        """For a reader's context."""
        return {"user_home": self.folder, "environ": self.environ}
