"""Whether an entry's command could run here: its programs exist on the daemon's PATH, and its files where it looks for
them. Nothing is executed.

A shell line is checked as far as it certainly runs: up to a branch, a loop or a word that only the shell can expand.
`test -x PROGRAM || exit 0; …` and the like would succeed without doing anything, so PROGRAM has to exist too.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wakeful.core.schedule.actions import Command
from wakeful.integrations.actions.program import Unstartable, check_command
from wakeful.integrations.imports.entries import Context, Entry

_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_INTERPRETERS: Final = re.compile(r"(sh|bash|dash|zsh|ksh|perl|ruby|node|php|python(\d(\.\d+)?)?)", re.ASCII)
_INLINE: Final = re.compile(r"-\w*[cemrEn]\w*|--(eval|execute|run|module|print|version|help).*|-", re.ASCII)
"""Options after which no file of the interpreter follows."""
_BUILTINS: Final = frozenset({
    "echo", "printf", "exit", "true", "false", ":", "export", "set", "unset", "umask", "ulimit", "eval", "trap", "wait",
    "read", "command", "type", "let", "kill", "pwd", "return", "shift", "times", "alias", "shopt", "declare", "hash",
    "pushd", "popd", "builtin", "local", "readonly", "getopts", "jobs", "bg", "fg", "disown", "mapfile",
})  # fmt: skip
_BRANCHES: Final = frozenset({
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "{", "}", "!", "[[", "time", "coproc",
})  # fmt: skip
_ENDINGS: Final = frozenset({"exit", "return"})
_NOTHING: Final = frozenset({"true", ":"})
_OPERATORS: Final = frozenset({";", "&&", "||", "|", "&", "|&"})
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*\+?=.*", re.ASCII | re.DOTALL)
_EXPANDED: Final = re.compile(r"[$`*?\[\]{}]|^~")
_RUN_AS: Final = "runuser"


def unrunnable(entry: Entry, context: Context) -> str | None:
    """Why an entry's command, or the command of its check, could not run; None if nothing is known against it."""
    check = entry.options.get("check")
    commands = [entry.action.get("command"), check.get("command") if isinstance(check, Mapping) else None]
    problems = (_problem(command, context) for command in commands if isinstance(command, Mapping))
    return next((problem for problem in problems if problem is not None), None)


def _problem(command: Mapping[str, Any], context: Context) -> str | None:
    argv, cwd, env = command.get("argv"), command.get("cwd"), command.get("env")
    if not isinstance(argv, Sequence) or not argv or not all(isinstance(word, str) for word in argv):
        return None
    words = list(argv[argv.index("--") + 1 :] if argv[0] == _RUN_AS and "--" in argv else argv)
    own = env if isinstance(env, Mapping) else {}
    home = str(own.get("HOME", context.user_home))
    place = _Place(str(cwd) if cwd else str(Path.cwd()), {**context.environ, **own}, home)
    try:
        if Path(words[0]).name in _SHELLS and len(words) > 2 and re.fullmatch(r"-l?c", words[1]):
            _check_line(words[2], place)
        else:
            _check_words(words, place)
    except Unstartable as missing:
        return f"it would not run here: {str(missing).partition(';')[0]}"
    return None


@dataclass(slots=True)
class _Place:
    """Where a line has got to: its folder, None if unknown."""

    cwd: str | None
    env: Mapping[str, str]
    home: str


def _check_line(line: str, place: _Place) -> None:
    """Check the commands of a shell line that certainly run. Raises `Unstartable`."""
    steps = list(_steps(line))
    for number, (before, words) in enumerate(steps):
        is_ending = bool(words) and words[0] in _ENDINGS | _NOTHING
        if before == "||" and not is_ending:
            return
        if before == "||" or not words:
            continue
        if words[0] in _BRANCHES or words[0][:1] in ("(", "-"):
            return
        if words[0] == "[" or _EXPANDED.search(words[0].removeprefix("~/")) is None:
            _check_step(words, place, is_guard=_is_guard(steps[number + 1 :]))


def _is_guard(rest: Sequence[tuple[str, list[str]]]) -> bool:
    """Whether a line ends here if this command fails."""
    before, words = rest[0] if rest else ("", [])
    return before == "&&" or (before == "||" and bool(words) and words[0] in _ENDINGS)


def _check_step(words: Sequence[str], place: _Place, *, is_guard: bool) -> None:
    match words:
        case ["exec", first, *more] if not first.startswith("-"):
            _check_words([first, *more], place)
        case ["cd", *more]:
            _enter(more, place)
        case [("test" | "["), *more]:
            if is_guard:
                _check_guard(more)
        case [("." | "source"), file, *_] if file.startswith("/") and not _EXPANDED.search(file):
            if not Path(file).exists():
                raise Unstartable(f"'{file}' does not exist")
        case ["command", "-v", name, *_]:
            if is_guard and not _EXPANDED.search(name):
                _check_words([name], place)
        case [name, *_] if name not in _BUILTINS and name not in (".", "source"):
            _check_words(words, place)


def _check_words(words: Sequence[str], place: _Place) -> None:
    """Check a program, and the file that it interprets."""
    name = _home(words[0], place)
    if "/" in name and not name.startswith("/") and place.cwd is None:
        return
    check_command(Command((name,), cwd=place.cwd), place.env)
    if _INTERPRETERS.fullmatch(Path(name).name) is None:
        return
    for word in words[1:]:
        if _INLINE.fullmatch(word) or _EXPANDED.search(word):
            return
        if not word.startswith("-"):
            file = Path(place.cwd or "/", _home(word, place))
            is_file = "/" in word or "." in word
            if is_file and (place.cwd is not None or word.startswith("/")) and not file.exists():
                raise Unstartable(f"'{word}' does not exist")
            return


def _check_guard(words: Sequence[str]) -> None:
    """`-x PROGRAM`, which makes a line end without doing anything if it is missing."""
    if "-o" in words:
        return
    for number, word in enumerate(words[:-1]):
        name = words[number + 1]
        is_negated = number > 0 and words[number - 1] == "!"
        if word == "-x" and not is_negated and not _EXPANDED.search(name) and not os.access(name, os.X_OK):
            raise Unstartable(f"it does nothing without '{name}', which does not exist")


def _enter(words: Sequence[str], place: _Place) -> None:
    folder = _home(words[0], place) if words else place.home
    if _EXPANDED.search(folder) or folder.startswith("-") or (place.cwd is None and not folder.startswith("/")):
        place.cwd = None
        return
    place.cwd = str(Path(place.cwd or "/", folder))
    if not Path(place.cwd).is_dir():
        raise Unstartable(f"its folder '{place.cwd}' does not exist")


def _home(word: str, place: _Place) -> str:
    return place.home + word[1:] if word == "~" or word.startswith("~/") else word


def _steps(line: str) -> Iterator[tuple[str, list[str]]]:
    """The simple commands of a line, each with the operator before it; without assignments and redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters = ""
    lexer.whitespace_split = True  # else it would also split at $ and @
    before, is_target = "", False
    words: list[str] = []
    try:
        for token in lexer:
            if token in _OPERATORS:
                yield before, words
                before, words = token, []
            elif set(token) <= set("<>&|") and set(token) & set("<>"):
                if words and words[-1].isdigit():  # the descriptor of 2>
                    words.pop()
                is_target = True
            elif is_target:
                is_target = False
            elif words or not _ASSIGNED.fullmatch(token):
                words.append(token)
    except ValueError:  # a quote without its end; the shell will say so
        return
    yield before, words
