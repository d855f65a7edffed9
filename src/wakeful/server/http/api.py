"""The HTTP application: the routes of one app behind the middleware."""

from functools import partial

from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp

from wakeful.api.python import Wakeful
from wakeful.server.http import openapi, operations, proofs
from wakeful.server.http.authentication import Authentication
from wakeful.server.http.idempotency import Repeats
from wakeful.server.http.kept_responses import KeptAnswers
from wakeful.server.http.logins import Logins
from wakeful.server.http.mcp_endpoint import McpEndpoint
from wakeful.server.http.middleware import Middleware
from wakeful.server.http.own_tokens import OwnTokens
from wakeful.server.http.problems import handlers_of
from wakeful.server.http.receipts import is_token_of
from wakeful.server.http.routing import Dispatch
from wakeful.server.http.serving import Api, Serving


def make_app(app: Wakeful, serving: Serving) -> ASGIApp:
    """The API of one app."""
    logins = Logins(app, serving.access)
    authentication = Authentication(
        serving.access,
        lambda: app._moment().monotonic,
        logins=logins,
        run_caller=partial(proofs.run_caller, app),
        peer_caller=partial(proofs.peer_caller, app),
        is_calendar_key=partial(proofs.is_calendar_key, app),
        own_tokens=OwnTokens(partial(is_token_of, app), partial(proofs.hook_token, app)),
    )
    api = Api(app, serving, logins, authentication, McpEndpoint(app), openapi.paths, openapi.document)
    routes = Dispatch({**operations.endpoints(app), **operations.plain_endpoints(api)})
    handled = ExceptionMiddleware(routes, handlers_of(app))
    return Middleware(Repeats(handled, KeptAnswers(app)), api)
