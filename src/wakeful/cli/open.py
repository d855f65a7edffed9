"""`wakeful open`: open the page in the browser, logged in by a one-time link."""

from __future__ import annotations

import click

from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, say


@command("open")
@click.option("--print", "only_print", is_flag=True, help="Print the link; do not start a browser.")
@click.option("--log-out-all", is_flag=True, help="First end all browser sessions and invalidate unused links.")
def open_command(invocation: Invocation, only_print: bool, log_out_all: bool) -> None:
    """Open the web page in the browser, logged in. The link works once, within 15 minutes."""
    from wakeful.cli.client import find

    daemon = find(invocation.home)
    if log_out_all:
        daemon.ask("DELETE", "/api/logins")
    made = daemon.ask("POST", "/api/login-codes").body
    link = f"{made['url']}{made['path']}"
    is_opened = not only_print and not invocation.is_json and _browse(link)
    if invocation.is_json:
        json_out({"link": link, "expiresAt": made["expiresAt"]})
    elif is_opened:
        say(f"opened {made['url']} in the browser")
    else:
        say(link)


def _browse(link: str) -> bool:
    """Whether a browser was opened; False without a display."""
    import os
    import sys
    import webbrowser

    if sys.platform != "darwin" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        return webbrowser.open(link)
    except webbrowser.Error:
        return False
