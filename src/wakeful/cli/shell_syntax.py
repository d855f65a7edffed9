"""Detect shell syntax in `--command`: no shell runs it, so a pipe would reach the program as an argument.

The text is read as the argv splitter reads it (POSIX quoting). Only characters outside quotes count: what is quoted or
escaped is an argument. A URL may hold `?`, `&`, `*`, `[` and `~` unquoted.
"""

import re
import shlex
from typing import Final

_EXPANDED: Final = re.compile(r"[A-Za-z0-9_{(@*#?$!-]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NAMES: Final = {
    "|": "a pipe",
    "<": "a redirection",
    ">": "a redirection",
    ";": "a second command",
    "&": "a second command or the background",
    "`": "a command substitution",
    "*": "a file name pattern",
    "?": "a file name pattern",
    "[": "a file name pattern",
}
_FINE_IN_URL: Final = "?*[~"


def shell_syntax(text: str) -> str | None:
    """The first shell syntax found, in words (`| (a pipe)`); None if there is none."""
    assigned = _ASSIGNMENT.match(text.lstrip())
    if assigned is not None:
        return f"{assigned[0]} (a variable before the program)"
    quote, word, index = "", "", 0
    while index < len(text):
        char = text[index]
        if char == "\\" and quote != "'":
            word, index = word + text[index : index + 2], index + 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif syntax := _outside_quotes(text, index, word):
            return syntax
        word = "" if char.isspace() and not quote else word + char
        index += 1
    return None


def shell_form(text: str) -> str:
    """The option that runs the same text in a shell, to be copied into a terminal."""
    line = f"sh -c {shlex.quote(text)}"
    if "!" in line:  # within double quotes an interactive bash would expand ! from its history
        return f"--command {shlex.quote(line)}"
    escaped = re.sub(r'([\\"$`])', r"\\\1", line)
    return f'--command "{escaped}"'


def _outside_quotes(text: str, index: int, word: str) -> str | None:
    """What this character means to a shell at its position in the word."""
    char, following = text[index], text[index + 1 : index + 2]
    is_in_url = "://" in word
    if char == "$":
        return f"${_name_after(text, index)} (a variable)" if _EXPANDED.match(following) else None
    if char == "~":
        return "~ (a home folder)" if not word else None
    if char not in _NAMES or (is_in_url and char in _FINE_IN_URL):
        return None
    if char == "&" and is_in_url and following not in ("", "&") and not following.isspace():
        return None
    if char in "|&" and following == char:
        return f"{char * 2} (a second command)"
    if char in "<>":
        return f"{char * 2 if following == char else char} (a redirection)"
    return f"{char} ({_NAMES[char]})"


def _name_after(text: str, index: int) -> str:
    match = re.match(r"\w+|.", text[index + 1 :])
    return match[0] if match else ""
