"""The root command. Commands are imported when called: `wakeful --help` loads only this file."""

import sys
from importlib import import_module
from typing import Any, Final

import click

from wakeful.cli.invocation import common_options

# Section, command, module, and the line shown by `--help`.
COMMANDS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "The daemon": {
        "up": ("daemon", "Start the daemon in the foreground."),
        "status": ("daemon", "Show whether the daemon is running, and its health."),
        "down": ("daemon", "Stop the daemon; runs in progress may finish."),
        "init": ("init", "Write a commented wakeful.toml; find installed agents."),
        "open": ("open", "Open the web page in the browser, logged in."),
        "service": ("service", "Show whether it is installed as a service; install or remove it."),
    },
    "Schedules": {
        "add": ("add", "Add a schedule, and show its next five times."),
        "edit": ("edit", "Change fields of a schedule, or edit its definition in an editor."),
        "ls": ("schedules", "List the schedules."),
        "show": ("schedules", "Show one schedule."),
        "rm": ("schedules", "Remove a schedule; its past runs are kept."),
        "pause": ("schedules", "Pause a schedule."),
        "resume": ("schedules", "Resume a paused or disabled schedule."),
        "run": ("schedules", "Run a schedule once, now."),
    },
    "Agents": {
        "agents": ("agents", "List the agents, show one, or test one with a real prompt."),
        "approvals": ("approvals", "List what agents want to schedule; approve or reject it."),
        "mcp": ("mcp", "Serve the agent tools over MCP on stdin and stdout."),
    },
    "History and forecast": {
        "next": ("upcoming", "List upcoming runs, in order."),
        "calendar": ("upcoming", "Print the URL of a calendar feed of upcoming runs."),
        "forecast": ("forecast", "Forecast the coming days: runs, tokens and cost."),
        "simulate": ("simulate", "Simulate the coming days, with or without a change."),
        "runs": ("runs", "List runs, newest first; show one in full."),
        "replay": ("backfills", "Run missed instants, of one schedule or all."),
        "backfill": ("backfills", "Run a schedule's past instants that have not succeeded."),
        "log": ("runs", "Print past runs, oldest first."),
        "stats": ("runs", "Show statistics for one schedule."),
        "why": ("runs", "Explain in one sentence why a schedule ran, or did not."),
    },
    "Cost": {
        "cost": ("costs", "Show what agents cost, by schedule, agent, model or day."),
        "budget": ("costs", "Show the budgets, or set one."),
    },
    "The heartbeat": {
        "wake": ("heartbeat", "Request a heartbeat turn."),
        "heartbeat": ("heartbeat", "Show the heartbeat and its last turns."),
        "events": ("heartbeat", "List the system events queued for the next turn."),
    },
    "Workflows": {
        "workflows": ("workflows", "List the workflows, or manage one."),
    },
    "Quota": {
        "slots": ("slots", "List the quota slots, or manage one."),
    },
    "Messages and alerts": {
        "outbox": ("outbox", "List the deliveries; show one, retry it now, or discard it."),
        "channels": ("channels", "List the channels; test one, or add a Telegram bot."),
        "inbox": ("outbox", "Read the inbox."),
        "today": ("today", "Show what needs attention, with a command to fix it."),
        "alerts": ("alerts", "List open and recent alerts; acknowledge them."),
    },
    "Import and export": {
        "import": ("importing", "Import schedules from crontab, systemd, OpenClaw and others."),
        "export": ("definition_files", "Export all definitions to DIR, as files for Git."),
        "apply": ("definition_files", "Show what the definitions in DIR would change, or apply them."),
    },
    "Maintenance": {
        "backup": ("backup", "Copy the database while it is in use."),
        "verify": ("verify", "Verify the database, or a backup."),
        "restore": ("restore", "Restore the database from a copy."),
        "adopt": ("adopt", "Use the database there as a store of its own."),
        "doctor": ("doctor", "Check for problems and show how to fix them."),
        "check": ("check", "Check a wakeful.toml or a definition.json."),
        "completion": ("completion", "Print the completion script for a shell."),
    },
}
_MODULES: Final = {name: row for section in COMMANDS.values() for name, row in section.items()}


class Root(click.Group):
    """`wakeful`: lists its commands by name and imports each one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        command: click.Command = getattr(import_module(f"wakeful.cli.{_MODULES[cmd_name][0]}"), f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, words) for name, (_, words) in section.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(f"there is no command {args[0]!r}{_nearest(args[0])}", ctx) from error


# What the commands of other programs are called, and ours.
_OTHER_NAMES: Final = {
    **dict.fromkeys(("delete", "remove", "del"), "rm"),
    **dict.fromkeys(("schedules", "schedule", "list", "jobs"), "ls"),
    **dict.fromkeys(("create", "new", "put"), "add"),
    **dict.fromkeys(("start", "serve", "daemon"), "up"),
    **dict.fromkeys(("stop", "quit"), "down"),
    **dict.fromkeys(("logs", "history"), "log"),
    **dict.fromkeys(("trigger", "fire"), "run"),
    **dict.fromkeys(("enable", "unpause"), "resume"),
    **dict.fromkeys(("disable", "stop-all"), "pause"),
    **dict.fromkeys(("upcoming", "timetable"), "next"),
    **dict.fromkeys(("config", "settings", "validate"), "check"),
    "explain": "why",
    "get": "show",
    "update": "edit",
}


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    near = [_OTHER_NAMES[name]] if name in _OTHER_NAMES else get_close_matches(name, _MODULES, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; see wakeful --help"


def _show_version(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"wakeful {version('wakeful')}")
        context.exit()


root: Final = Root(
    "wakeful",
    help="Wakeful, the alarm clock for AI agents.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    params=[
        *common_options(),
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_show_version,
            help="Show the version and exit.",
        ),
    ],
)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character must not make the command fail.
            stream.reconfigure(errors="replace")
    root(prog_name="wakeful")


if __name__ == "__main__":
    main()
