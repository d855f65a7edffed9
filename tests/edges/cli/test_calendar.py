"""`wakeful calendar`: an address for calendar programs."""

import http.client
import json
from urllib.parse import urlsplit

from edges.cli.kit import Cli


def fetch(address: str) -> tuple[int, str]:
    """As a calendar program does: without a token."""
    url = urlsplit(address)
    connection = http.client.HTTPConnection(url.netloc, timeout=60)
    try:
        connection.request("GET", f"{url.path}?{url.query}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_the_address_is_printed_and_can_be_renewed(cli: Cli) -> None:
    """The same until it is renewed; then the old one is refused."""
    first = cli.run("calendar").out.strip()
    assert cli.run("calendar").out.strip() == first
    assert fetch(first)[0] == 200
    assert fetch(first)[1].startswith("BEGIN:VCALENDAR")
    renewed = json.loads(cli.run("calendar", "--renew", "-o", "json").out)
    assert renewed["url"] != first
    assert (fetch(first)[0], fetch(renewed["url"])[0]) == (401, 200)


def test_excluded_days_are_given_with_options(cli: Cli) -> None:
    """Repeated or with commas; the preview leaves them out, and an edit keeps what it does not name."""
    (cli.home / "free.ics").write_text(
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20990103\nEND:VEVENT\nEND:VCALENDAR\n"
    )
    said = cli.run(
        "add", "daily", "--times", "09:00", "--tz", "UTC", "--command", "true",
        "--exclude", "2099-01-01,2099-01-02", "--exclude", "2099-01-05", "--exclude-calendar", "free.ics",
    )  # fmt: skip
    assert said.code == 0, said.err
    shown = json.loads(cli.run("show", "daily", "-o", "json").out)["exclude"]
    assert shown == {"dates": ["2099-01-01", "2099-01-02", "2099-01-05"], "calendar": "free.ics"}
    cli.run("edit", "daily", "--exclude", "2099-02-01")
    shown = json.loads(cli.run("show", "daily", "-o", "json").out)["exclude"]
    assert (shown["dates"], shown["calendar"]) == (["2099-02-01"], "free.ics")
    wrong = cli.run("add", "bad", "--times", "09:00", "--command", "true", "--exclude", "24.12.2026")
    assert wrong.code != 0
    assert "--exclude" in wrong.err and "write it like 2026-12-24" in wrong.err
    lost = cli.run("add", "lost", "--times", "09:00", "--command", "true", "--exclude-calendar", "gone.ics")
    assert "--exclude-calendar" in lost.err and "cannot be read" in lost.err
