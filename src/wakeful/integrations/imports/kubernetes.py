"""Kubernetes CronJobs: manifests in YAML or JSON, or what `kubectl get cronjobs` prints. They are adopted: a schedule
in Wakeful creates a job from the CronJob in the cluster. Its cron skips what daylight saving leaves out, and runs
repeated times twice."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wakeful.core.schedule.policies import GRACE
from wakeful.core.slug import slug_of
from wakeful.core.time.instants import SECOND, format_duration
from wakeful.integrations.imports.agent_jobs import entry_or_refusal, given, instant_of, object_of, text_of, whole_of
from wakeful.integrations.imports.cron_fields import NAMED, plain_times
from wakeful.integrations.imports.entries import (
    ENTRIES_MAX,
    Context,
    Entry,
    Off,
    SourceFile,
    SourceRefused,
    refuse,
)
from wakeful.integrations.imports.places import json_of, plain_files_in, printed, read_files
from wakeful.integrations.imports.yaml_files import yaml_documents

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)

_SUSPEND: Final = '{"spec":{"suspend":true}}'


def find_kubernetes(context: Context) -> list[SourceFile]:
    """The current cluster's CronJobs."""
    file = printed(["kubectl", "get", "cronjobs", "--all-namespaces", "-o", "json"], "kubectl get cronjobs", context)
    return [] if file is None else [file]


def open_kubernetes(path: Path) -> list[SourceFile]:
    """A manifest, or a folder of them."""
    if not path.is_dir():
        return read_files([path])
    return read_files([file for file in plain_files_in(path) if file.suffix in (".yaml", ".yml", ".json")])


def read_kubernetes(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All CronJobs of these manifests."""
    entries = [_entry(file, job, context) for file in files for job in _jobs(file)]
    if len(entries) > ENTRIES_MAX:
        raise SourceRefused(files[0].place, f"there are {len(entries)} CronJobs; at most {ENTRIES_MAX} are imported")
    return entries


def _jobs(file: SourceFile) -> Iterator[Mapping[str, Any]]:
    for document in [json_of(file)] if file.text.lstrip().startswith(("{", "[")) else yaml_documents(file):
        items = document.get("items", [document]) if isinstance(document, Mapping) else []
        for item in items if isinstance(items, list) else []:
            if isinstance(item, Mapping) and item.get("kind") == "CronJob":
                yield item


def _entry(file: SourceFile, job: Mapping[str, Any], context: Context) -> Entry:
    meta, spec = object_of(job, "metadata"), object_of(job, "spec")
    name, space = text_of(meta, "name") or "", text_of(meta, "namespace") or "default"
    ref = f"{space}/{name}"
    shown = {
        "metadata": {"name": name, "namespace": space},
        "spec": {k: v for k, v in spec.items() if k != "jobTemplate"},
    }
    return entry_or_refusal(file, ref, shown, lambda: _adopted(file, job, name, space, shown))


def _adopted(file: SourceFile, job: Mapping[str, Any], name: str, space: str, shown: Mapping[str, Any]) -> Entry:
    spec, ref = object_of(job, "spec"), f"{space}/{name}"
    if not _NAME.fullmatch(name) or not _NAME.fullmatch(space):
        refuse(f"{ref[:80]!r} is not the name of a CronJob")
    expression = " ".join((text_of(spec, "schedule") or "").split())
    expression = NAMED.get(expression.lower(), expression)
    if expression.startswith("@every"):
        refuse("@every counts from when its controller started; write an interval by hand")
    zone = text_of(spec, "timeZone") or "UTC"
    times = plain_times(expression, zone, gap="skip", repeat="twice")
    late = whole_of(spec, "startingDeadlineSeconds")
    policy = text_of(spec, "concurrencyPolicy") or "Allow"
    script = f'kubectl -n {space} create job --from=cronjob/{name} "{name[:40]}-wakeful-$WAKEFUL_RUN_ID"'
    return Entry(
        file.place,
        ref,
        json.dumps(shown),
        slug_of(name),
        schedule={"type": "cron", "expression": expression, "timezone": zone},
        action={"command": {"argv": ["sh", "-c", script]}},
        options={"catchUp": "once", **({"maxLateness": format_duration(max(late * SECOND, GRACE))} if late else {})},
        times=times,
        not_carried=(
            *([] if policy == "Forbid" else [f"concurrencyPolicy {policy}"]),
            *given(spec, ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")),
        ),
        last_run=instant_of(object_of(job, "status").get("lastScheduleTime")),
        is_paused=spec.get("suspend") is True,
        off=Off("program", _off(space, name)) if file.place == "kubectl get cronjobs" else None,
        by_hand=f"""run kubectl -n {space} patch cronjob {name} -p '{_SUSPEND}'""",
    )


def _off(space: str, name: str) -> dict[str, Any]:
    base = ["kubectl", "-n", space]
    return {
        "argv": [*base, "patch", "cronjob", name, "-p", _SUSPEND],
        "check": [*base, "get", "cronjob", name, "-o", "jsonpath={.spec.suspend}"],
        "off": ["true"],
    }
