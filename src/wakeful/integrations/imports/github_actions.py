"""GitHub Actions: `on.schedule` of the workflows of a repository. The workflow stays on GitHub; the schedule starts it
through its dispatch address. Its cron is that of POSIX, in UTC."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.slug import slug_of
from wakeful.integrations.imports.agent_jobs import entry_or_refusal, text_of
from wakeful.integrations.imports.bearer import bearer_post
from wakeful.integrations.imports.cron_fields import plain_times
from wakeful.integrations.imports.entries import Context, Entry, SourceFile, SourceRefused, refuse
from wakeful.integrations.imports.places import existing, plain_files_in, read_files
from wakeful.integrations.imports.yaml_files import yaml_documents

_API: Final = "https://api.github.com"
_TOKENS: Final = ("GH_TOKEN", "GITHUB_TOKEN")
_REMOTE: Final = re.compile(
    r"""^\s*url\s*=\s*(?:https://(?:[^@\s]*@)?github\.com/|git@github\.com:|ssh://git@github\.com/)"""
    r"""([\w.-]+)/([\w.-]+?)(?:\.git)?\s*$""",
    re.MULTILINE | re.ASCII,
)
_HEAD: Final = re.compile(r"ref: refs/heads/(\S+)")
_LATE: Final = "GitHub starts scheduled workflows late or not at all when it is busy; here they start at their times"
_ACCEPT: Final = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


def find_github(_: Context) -> list[SourceFile]:
    """A repository may be anywhere."""
    raise SourceRefused("", "name the repository, its .github/workflows folder, or one workflow")


def open_github(path: Path) -> list[SourceFile]:
    """A repository, its folder of workflows, or one workflow; with what its Git folder says about its place."""
    folder = path / ".github" / "workflows" if (path / ".github" / "workflows").is_dir() else path
    files = plain_files_in(folder) if folder.is_dir() else [path]
    workflows = [file for file in files if file.suffix in (".yml", ".yaml")]
    home = next((parent for parent in (folder, *folder.absolute().parents) if (parent / ".git").is_dir()), None)
    about = [] if home is None else existing(home / ".git" / "config", home / ".git" / "HEAD")
    return read_files([*workflows, *about])


def read_github(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All schedules of all workflows."""
    by_name = {Path(file.place).name: file.text for file in files if Path(file.place).parent.name == ".git"}
    remote, head = _REMOTE.search(by_name.get("config", "")), _HEAD.search(by_name.get("HEAD", ""))
    repository = None if remote is None else f"{remote[1]}/{remote[2]}"
    branch = "main" if head is None else head[1]
    workflows = [file for file in files if Path(file.place).parent.name != ".git"]
    return [entry for file in workflows for entry in _of_workflow(file, repository, branch, context)]


def _of_workflow(file: SourceFile, repository: str | None, branch: str, context: Context) -> list[Entry]:
    documents = yaml_documents(file)
    workflow = documents[0] if documents and isinstance(documents[0], Mapping) else {}
    events = workflow.get("on", workflow.get(True))  # `on` is a word for true in YAML
    crons = events.get("schedule") if isinstance(events, Mapping) else None
    crons = [one for one in crons if isinstance(one, Mapping)] if isinstance(crons, list) else []
    is_startable = isinstance(events, Mapping) and "workflow_dispatch" in events
    entries: list[Entry] = []
    for number, one in enumerate(crons, 1):
        make = partial(_entry, file, workflow, number, len(crons), one, is_startable, repository, branch, context)
        entries.append(entry_or_refusal(file, f"{Path(file.place).name} {number}", one, make))
    return entries


def _entry(
    file: SourceFile,
    workflow: Mapping[str, Any],
    number: int,
    count: int,
    one: Mapping[str, Any],
    is_startable: bool,
    repository: str | None,
    branch: str,
    context: Context,
) -> Entry:
    name, expression = Path(file.place).name, " ".join((text_of(one, "cron") or "").split())
    if not is_startable:
        refuse("it can only be started from outside with workflow_dispatch: add `workflow_dispatch:` under `on:`")
    zone = text_of(one, "timezone") or "UTC"
    times = plain_times(expression, zone, gap="skip", repeat="twice")
    variable = next((variable for variable in _TOKENS if context.environ.get(variable)), None)
    api = context.environ.get("GITHUB_API_URL", _API).rstrip("/")
    url = f"{api}/repos/{repository or 'OWNER/REPO'}/actions/workflows/{name}/dispatches"
    return Entry(
        file.place,
        f"{name} {number}",
        f"{name}: schedule: cron '{expression}'",
        slug_of(text_of(workflow, "name") or Path(name).stem),
        _line(file.text, number),
        schedule={"type": "cron", "expression": expression, "timezone": zone},
        action=bearer_post(url, {"ref": branch}, variable or _TOKENS[0], _ACCEPT),
        options={"maxConsecutiveErrors": 0, **({"lane": f"github-{slug_of(name)}"} if count > 1 else {})},
        times=times,
        notes=(_LATE,),
        draft=_missing(variable, repository),
        by_hand=f"remove `schedule:` from {name}",
    )


def _missing(variable: str | None, repository: str | None) -> str | None:
    parts = [
        *([f"give the daemon {_TOKENS[0]}, a token that may start workflows"] if variable is None else []),
        *(["put OWNER and REPO into its address"] if repository is None else []),
    ]
    return f"{' and '.join(parts)}, then enable it" if parts else None


def _line(text: str, number: int) -> int | None:
    """The line of a `cron:`."""
    lines = [
        at for at, line in enumerate(text.split("\n"), 1) if re.match(r"\s*-?\s*[{]?\s*['\"]?cron['\"]?\s*:", line)
    ]
    return lines[number - 1] if number <= len(lines) else None
