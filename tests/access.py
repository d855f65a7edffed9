"""The token of every daemon that a test starts, so that its HTTP clients can send it.

The daemon keeps a token that is already in its home folder. `urllib` sends it by default (`conftest.py`); a test about
access control brings its own headers.
"""

import os
import urllib.request
from pathlib import Path
from typing import Final

TOKEN: Final = "token-of-the-daemons-that-tests-start"
HEADERS: Final = {"Authorization": f"Bearer {TOKEN}"}


def write_token(home: Path) -> None:
    """Give the home this token before its daemon starts."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = home / "token"
    if not file.exists():
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as opened:
            opened.write(TOKEN)


def send_token_by_default() -> None:
    """Requests through `urllib.request.urlopen` carry the token unless they bring an Authorization of their own."""
    opener = urllib.request.build_opener()
    opener.addheaders = list(HEADERS.items())
    urllib.request.install_opener(opener)
