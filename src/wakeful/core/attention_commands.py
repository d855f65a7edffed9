"""The command that a person types about an item of Today: the terminal shows it, and so do operator tools."""

from collections.abc import Mapping
from typing import Any


def command_for(item: Mapping[str, Any]) -> str | None:
    """The command that acts on an item, which is given in its JSON form."""
    slug, agent = item.get("slug"), item.get("agent")
    match item["kind"], item.get("status"):
        case "failing", "invalid":
            return f"wakeful edit {slug}"
        case ("failing", "disabled") | ("paused", _) if not item.get("byHand"):
            return f"wakeful resume {slug}"
        case "failing", status if status == "done" or item.get("byHand"):
            return f"wakeful run {slug}, or wakeful alerts ack {slug}"
        case "failing" | "late", _:
            return f"wakeful why {slug}, then wakeful run {slug}"
        case "stuck", _:
            return f"wakeful runs show {item['runId']}"
        case "deadLetter" | "delivery", _:
            return f"wakeful outbox retry {item['deliveryId']}"
        case "approval", _:
            return f"wakeful approvals, then wakeful approvals approve {item['approvalId']}"
        case "agent", _:
            return f"wakeful agents test {agent}"
        case "budget" | "brake", _:
            return "wakeful budget"
        case "incident", _:
            return f"wakeful alerts ack {item['alertId']}"
    return None
