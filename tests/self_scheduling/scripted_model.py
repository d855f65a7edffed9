"""A model on loopback that calls our tools in a given order, then replies."""

import json
import re
from collections.abc import Mapping
from typing import Any

from agents.model_server import ModelServer
from agents.model_wire import Counted, Dialect, Saying, ToolCall


class ScriptedModel(ModelServer):
    """`script` holds the calls of each turn, by a text in its prompt; each is made once, then `reply` is said."""

    def __init__(self) -> None:
        super().__init__()
        self.script: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        self.results: list[Any] = []  # what came back, as the model was shown it

    def _saying(self, dialect: Dialect, model: str, body: Mapping[str, Any]) -> Saying:
        offered = {_plain(name): name for name, _ in dialect.tools(body)}
        if dialect.has_tool_result(body):
            self.results.append(self.last_part_of(body))
        text = json.dumps(body, ensure_ascii=False)
        calls = next((calls for words, calls in self.script.items() if words in text and calls), [])
        number, counted = len(self.asked) + 1, Counted(100, 0, 10)
        if calls and calls[0][0] in offered:
            name, arguments = calls.pop(0)
            return Saying(number, model, counted, "", ToolCall(offered[name], arguments))
        return Saying(number, model, counted, self.reply, None)

    @staticmethod
    def last_part_of(body: Mapping[str, Any]) -> Any:
        return next(body[name][-1] for name in ("messages", "input", "contents") if name in body)


def _plain(name: str) -> str:
    """`put_schedule` of `mcp__wakeful__put_schedule`, `mcp__wakeful::put_schedule` or `mcp_wakeful_put_schedule`."""
    return re.split("__|::", name)[-1].removeprefix("mcp_").removeprefix("wakeful_")
