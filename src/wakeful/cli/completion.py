"""Completion for shells: `eval "$(wakeful completion bash)"`."""

from __future__ import annotations

import click

from wakeful.cli.invocation import Invocation, command


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(invocation: Invocation, shell: str) -> None:
    """Print the completion script for a shell.

    Completes commands, options and slugs; slugs come from the running daemon.

    \b
      bash:  eval "$(wakeful completion bash)"     in ~/.bashrc
      zsh:   eval "$(wakeful completion zsh)"      in ~/.zshrc, after compinit
      fish:  wakeful completion fish | source      in config.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from wakeful.cli.main import root
    from wakeful.cli.render import json_out

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    # Click's script runs the bash on the PATH to check its version, which may not be the shell that reads this.
    script = ShellComplete.source(kind(root, {}, "wakeful", "_WAKEFUL_COMPLETE"))
    if invocation.is_json:
        json_out({"shell": shell, "script": script})
    else:
        click.echo(script)
