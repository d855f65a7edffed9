"""A response whose JSON text was already written, usually by the thread that read the rows.

Encoding hundreds of rows takes milliseconds. On the event loop they would delay everything else, the clock included.
"""

from collections.abc import Mapping

from starlette.responses import Response


class JsonText(Response):
    """Sends JSON text as it is."""

    media_type = "application/json"

    def __init__(self, text: str | bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text, status, headers)
