"""Shell syntax in `--command` is refused, because no shell runs it."""

import shlex
import subprocess

import pytest

from edges.cli.kit import Cli
from wakeful.cli.shell_syntax import shell_form, shell_syntax


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ls | wc -l", "| (a pipe)"),
        ("ls|wc", "| (a pipe)"),
        ("make > log", "> (a redirection)"),
        ("make >> log", ">> (a redirection)"),
        ("wc < log", "< (a redirection)"),
        ("make 2>&1", "> (a redirection)"),
        ("cd x && make", "&& (a second command)"),
        ("make || true", "|| (a second command)"),
        ("make; true", "; (a second command)"),
        ("sleep 9 &", "& (a second command or the background)"),
        ("echo $HOME", "$HOME (a variable)"),
        ("echo ${HOME}", "${ (a variable)"),
        ("echo $(date)", "$( (a variable)"),
        ("echo `date`", "` (a command substitution)"),
        ("ls *.txt", "* (a file name pattern)"),
        ("ls a?", "? (a file name pattern)"),
        ("ls [ab]", "[ (a file name pattern)"),
        ("cat ~/notes", "~ (a home folder)"),
        ("TZ=UTC date", "TZ= (a variable before the program)"),
        ("curl http://x/a|jq", "| (a pipe)"),
        ("curl http://x/a && ls", "&& (a second command)"),
    ],
)
def test_what_only_a_shell_understands_is_found(text: str, found: str) -> None:
    """Outside quotes."""
    assert shell_syntax(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "make report",
        "sh -c 'ls | wc -l'",
        "grep 'a|b' file",
        'grep "a|b;c" file',
        "grep a\\|b file",
        "find . -exec rm {} \\;",
        "curl http://x/?a=1&b=[2]",
        "git log --format=%h a~b HEAD~1",
        "echo 5$ 'it costs $5'",
        "x --name=~/a",
        "",
    ],
)
def test_what_is_quoted_or_plain_is_an_argument(text: str) -> None:
    """A quoted | is no pipe, and a URL may have its ? and &."""
    assert shell_syntax(text) is None


@pytest.mark.parametrize("text", ["ls | wc -l", "echo 'a b' > $HOME/\"x y\"", "echo hi!; ls", "echo `date` \\\\ | cat"])
def test_the_form_to_copy_means_the_same_in_a_terminal(text: str) -> None:
    """A real shell reads it as one option whose program is `sh -c` with the whole text."""
    ended = subprocess.run(
        ["sh", "-c", f"printf '%s' {shell_form(text).removeprefix('--command ')}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shlex.split(ended.stdout) == ["sh", "-c", text]


@pytest.mark.parametrize("command", ["add", "edit"])
def test_it_is_refused_before_anything_is_written(alone: Cli, command: str) -> None:
    """Exit code 2, with the form to copy."""
    timing = ["--every", "1h"] if command == "add" else []
    said = alone.ask(command, "count", *timing, "--command", "ls | wc -l")
    assert (said.code, said.out) == (2, "")
    assert "--command: has | (a pipe) outside quotes" in said.err
    assert """--command "sh -c 'ls | wc -l'\"""" in said.err
