"""The gate: a process that becomes the real program only after its start has been recorded.

Between starting a program and recording its pid, a crash would leave it running unrecorded. So a gate is started
first. It waits for one line on its standard input and only then becomes the program, under the same pid; if the input
ends instead, because we crashed, it exits and nothing has run. The rest of the input belongs to the program.

The gate is the system's shell, which adds a third of a millisecond (Python: eleven), or Python where a shell would
change the environment: some shells drop variables whose names they consider invalid. The program and its arguments are
passed as positional parameters and never parsed as shell text.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Final

OPEN: Final = b"\n"
"""The line that opens the gate."""

_SHELL: Final = "/bin/sh"
_SHELL_GATE: Final = 'read -r wakeful_gate || exit 125; exec "$@"'
_SHELL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

# Python ignores SIGPIPE, which a program would inherit.
_PYTHON_GATE: Final = """
import os, signal, sys
if os.read(0, 1) != b"\\n":
    os._exit(125)
if sys.argv[1] == "empty":
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    os.write(2, f"{sys.argv[2]}: {error.strerror}\\n".encode())
    os._exit(127)
"""


def gated(argv: Sequence[str], env: Mapping[str, str], *, has_stdin: bool) -> list[str]:
    """The gate's command line for this program; without its own stdin the program reads from /dev/null."""
    # Not every shell accepts `--` before a program name such as `-c`.
    if os.access(_SHELL, os.X_OK) and all(map(_SHELL_NAME.fullmatch, env)) and not argv[0].startswith("-"):
        script = _SHELL_GATE if has_stdin else f"{_SHELL_GATE} <{os.devnull}"
        return [_SHELL, "-c", script, "wakeful", *argv]
    return [sys.executable, "-I", "-S", "-c", _PYTHON_GATE, "given" if has_stdin else "empty", *argv]
