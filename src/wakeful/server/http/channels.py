"""`/api/channels`: channels, the last interaction, and messages from people."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from wakeful.app import Wakeful
from wakeful.app.delivery import NoAgentForMessages
from wakeful.server.http import delivery_shapes as people_shapes
from wakeful.server.http.delivery_shapes import fields_of
from wakeful.server.http.problems import Refused
from wakeful.server.http.requests import new_router, read_json, read_object, text_of
from wakeful.server.http.shapes import answer, body, problems

ChannelPath = Annotated[str, Path(max_length=64, examples=["phone"])]


def routes(app: Wakeful) -> APIRouter:
    """The routes for one app."""
    router = new_router(prefix="/api/channels", tags=["people"])

    @router.get(
        "",
        summary="List channels and the last interaction",
        responses={200: answer(people_shapes.Channels, "In the order in which they are tried."), **problems()},
    )
    async def list_channels() -> Response:
        return JSONResponse(await _channels(app))

    @router.post(
        "/{name}/touch",
        summary="Record an interaction on a channel",
        openapi_extra=body(people_shapes.Touch, is_required=False),
        responses={200: answer(people_shapes.Channels, "Recorded."), **problems(404)},
    )
    async def touch_channel(name: ChannelPath, request: Request) -> Response:
        """Deliveries without a channel go to this one from now on."""
        data = await read_object(request, known=("to",))
        await app.delivering.touch(name, text_of(data, "to"))
        return JSONResponse(await _channels(app))

    @router.post(
        "/{name}/test",
        summary="Send a test message",
        openapi_extra=body(people_shapes.Touch, is_required=False),
        responses={
            200: answer(people_shapes.ChannelTest, "Whether it was delivered within a minute."),
            **problems(404),
        },
    )
    async def test_channel(name: ChannelPath, request: Request) -> Response:
        """One attempt through the outbox. An undelivered message is discarded, so it does not arrive later."""
        data = await read_object(request, known=("to",))
        return JSONResponse((await app.delivering.test(name, text_of(data, "to"))).to_json())

    @router.post(
        "/{name}/messages",
        status_code=202,
        summary="Receive a message from a person",
        openapi_extra=body(people_shapes.PersonsMessage),
        responses={202: answer(people_shapes.Taken, "The agent gets a turn; the reply goes to `to`."), **problems(404)},
    )
    async def post_message(name: ChannelPath, request: Request) -> Response:
        """Records the interaction, gives the agent a turn, and sends the reply to the sender."""
        fields = fields_of(await read_json(request), ("to", "text"))
        to = fields.filled("to", "name the sender, who gets the reply")
        text = fields.filled("text", "write the person's message")
        fields.finish()
        try:
            await app.delivering.take_message(name, to, text)
        except NoAgentForMessages as error:
            raise Refused(503, str(error)) from error
        return JSONResponse({"status": "taken"}, 202)

    return router


async def _channels(app: Wakeful) -> object:
    state = await app.delivering.channels()
    return {
        "channels": [channel.to_json() for channel in state.channels],
        "last": None if state.last is None else state.last.to_json(),
    }
