"""The application: every route with what it takes to be let in."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from os import PathLike
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from karat.errors import KaratError, UnknownNameError
from karat.web import api, pages
from karat.web.call import Call
from karat.web.frame import asset, refusal
from karat.web.guard import Desk, Guard, Limits, may, name_in, read_body


class Way(NamedTuple):
    """A method and address, what a token must allow, and who answers."""

    method: str
    path: str
    action: str
    answer: Callable[[Call], Response]


WAYS: Sequence[Way] = (
    Way("GET", "/", "read", pages.projects_page),
    Way("POST", "/demo", "admin", pages.add_demo),
    Way("GET", "/settings", "admin", pages.settings_page),
    Way("POST", "/settings", "admin", pages.change_tokens),
    Way("GET", "/p/{project}", "read", pages.history_page),
    Way("GET", "/p/{project}/runs/{run}", "read", pages.run_page),
    Way("GET", "/p/{project}/compare", "read", pages.comparison_page),
    Way("GET", "/p/{project}/q/{query}", "read", pages.query_page),
    Way("GET", "/p/{project}/label", "label", pages.queue_page),
    Way("GET", "/p/{project}/gold", "read", pages.gold_page),
    Way("POST", "/api/p/{project}/runs", "push", api.push_run),
    Way("GET", "/api/p/{project}/runs", "read", api.list_runs),
    Way("GET", "/api/p/{project}/runs/{run}", "read", api.get_run),
    Way("GET", "/api/p/{project}/compare/{first}/{second}", "read", api.get_comparison),
    Way("GET", "/api/p/{project}/queries/{query}", "read", api.get_query),
    Way("POST", "/api/p/{project}/labels", "label", api.add_labels),
    Way("DELETE", "/api/p/{project}/labels/{label}", "label", api.undo_label),
    Way("GET", "/api/p/{project}/labels/next", "label", api.get_next),
    Way("GET", "/api/p/{project}/gold/{file}", "read", api.get_gold),
    Way("GET", "/api/p/{project}/gold/{earlier}/{later}", "read", api.get_gold_changes),
)
PUBLIC = {
    "/api/health": "application/json",
    "/api/openapi.json": "application/json",
    "/style.css": "text/css",
    "/page.js": "text/javascript",
}
"""What is answered without a token: it says nothing of the data."""


def workbench(
    store: str | PathLike[str],
    *,
    hosts: Sequence[str] = (),
    name: str | None = None,
    limits: Limits | None = None,
) -> Starlette:
    """What `karat serve` serves, for an ASGI server of your own.

    Args:
        store: path of a history store.
        hosts: names, besides those of this machine, that browsers may ask for.
        name: whose labels are those given in the session that `state.desk.link`, the
            token of a printed address, opens once; default: there is no such session,
            and all need tokens of the store.
        limits: how much may be sent.
    """
    desk = Desk(store, hosts, name, limits)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        desk.close()

    async def public(request: Request) -> Response:
        path = request.scope["path"]
        if path == "/api/health":
            return api.health()
        content = asset(path.rpartition("/")[2])
        return Response(content, media_type=PUBLIC[path])

    app = Starlette(
        routes=[
            *(Route(path, public) for path in PUBLIC),
            *(
                Route(way.path, _endpoint(desk, way), methods=[way.method])
                for way in WAYS
            ),
        ],
        middleware=[Middleware(Guard, desk=desk, public=[*PUBLIC])],
        exception_handlers={HTTPException: _refused, KaratError: _refused},
        lifespan=lifespan,
    )
    app.state.desk = desk
    return app


def _endpoint(desk: Desk, way: Way) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        caller = request.state.caller
        names = {key: name_in(part) for key, part in request.path_params.items()}
        if not may(caller, way.action, names.get("project")):
            problem = f"the token of {caller.name} ({caller.role}) does not allow this"
            raise HTTPException(403, problem)
        body = await read_body(request, desk.limits) if way.method == "POST" else b""

        def answer() -> Response:
            with desk.store(write=way.method not in ("GET", "HEAD")) as store:
                asked = request.query_params
                return way.answer(Call(desk, store, caller, names, asked, body))

        return await run_in_threadpool(answer)

    return endpoint


def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        response = refusal(request, error.status_code, error.detail)
        response.headers.update(error.headers or {})
        return response
    return refusal(
        request, 404 if isinstance(error, UnknownNameError) else 422, str(error)
    )
