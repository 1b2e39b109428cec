"""Every route without a token, with each role, from other hosts and pages, damaged."""

import asyncio
import gzip
import html
import json
import re
import sqlite3
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
from starlette.testclient import TestClient

import karat
from karat.extend import Limits, workbench
from tests.web.conftest import BASE, NEW, ROLES, Served, result_of


class Way(NamedTuple):
    """A route, and what a token must allow."""

    method: str
    path: str
    action: str


WAYS = [
    Way(*line.split())
    for line in [
        "",
        "GET / read",
        "POST /demo admin",
        "GET /settings admin",
        "POST /settings admin",
        "GET /p/{project} read",
        "GET /p/{project}/runs/{run} read",
        "GET /p/{project}/compare read",
        "GET /p/{project}/q/{query} read",
        "GET /p/{project}/label label",
        "GET /p/{project}/gold read",
        "POST /api/p/{project}/runs push",
        "GET /api/p/{project}/runs read",
        "GET /api/p/{project}/runs/{run} read",
        "GET /api/p/{project}/compare/{first}/{second} read",
        "GET /api/p/{project}/queries/{query} read",
        "POST /api/p/{project}/labels label",
        "DELETE /api/p/{project}/labels/{label} label",
        "GET /api/p/{project}/labels/next label",
        "GET /api/p/{project}/gold/{file} read",
        "GET /api/p/{project}/gold/{earlier}/{later} read",
        "",
    ]
    if line
]
PUBLIC = ("/api/health", "/api/openapi.json", "/style.css", "/page.js")
MAY = {
    "read": {"read", "label", "push", "admin"},
    "label": {"label", "admin"},
    "push": {"push", "admin"},
    "admin": {"admin"},
}
PARTS = {
    "project": "help",
    "run": "1",
    "first": "1",
    "second": "2",
    "earlier": "0",
    "later": "1",
    "query": "q1",
    "label": "1",
    "file": "latest.qrels",
}
ADDRESSES = [
    pytest.param(way, way.path.format(**PARTS), id=f"{way.method} {way.path}")
    for way in WAYS
]


def _filled(way: Any, address: str) -> tuple[str, bytes]:
    """The address and body of a request that does what it is for."""
    if address.endswith("/compare"):
        address += "?run=1&run=2"
    body = b""
    if address == "/settings":
        body = b"name=cy&role=read"
    elif address.endswith("/runs"):
        body = result_of("third", NEW).to_json().encode()
    elif address.endswith("/labels"):
        body = b'{"query": "q1", "document": "c", "grade": 1}'
    return address, body if way.method == "POST" else b""


@pytest.mark.parametrize(("way", "address"), ADDRESSES)
def test_only_those_who_may_get_an_answer(
    serve: Callable[[], Served], way: Any, address: str
) -> None:
    served = serve()
    address, body = _filled(way, address)
    before = served.content()
    assert served.ask("", way.method, address, content=body).status_code == 401
    for role in ROLES:
        if role not in MAY[way.action]:
            answer = served.ask(role, way.method, address, content=body)
            assert answer.status_code == 403, role
    assert served.content() == before
    for role in MAY[way.action] - {"admin"} or {"admin"}:
        if way.method == "DELETE":
            label = {"query": "q1", "document": "b", "grade": 1}
            done = served.ask(role, "POST", "/api/p/help/labels", json=label).json()
            address = f"/api/p/help/labels/{done['labels'][0]}"
        answer = served.ask(role, way.method, address, content=body)
        assert answer.status_code in (200, 201, 303), answer.text
        body = body.replace(b"name=cy", b"name=di")


@pytest.mark.parametrize(("way", "address"), ADDRESSES)
def test_other_hosts_and_other_pages_are_refused(
    serve: Callable[[], Served], way: Any, address: str
) -> None:
    served = serve()
    address, body = _filled(way, address)
    before = served.content()
    for host in (
        *("evil.test", "evil.test:8600", "127.0.0.1.evil.test", "[", "", "[::1"),
        # Of a public address, or of none, where a URL is made of it.
        *("127.0.0.1/style.css?", "127.0.0.1/style.css#", "127.0.0.1\\", "a@127.0.0.1"),
        *("127.0.0.1:8600:1", "127.0.0.1:x", "127.0.0.1:999999"),
    ):
        answer = served.ask(
            "admin", way.method, address, content=body, headers={"host": host}
        )
        assert answer.status_code == 421, host
    if way.method != "GET":
        for origin in ("http://evil.test", "null", "http://127.0.0.1:1", "[", "x"):
            answer = served.ask(
                "admin", way.method, address, content=body, headers={"origin": origin}
            )
            assert answer.status_code == 403, origin
    assert served.content() == before


@pytest.mark.parametrize(("way", "address"), ADDRESSES)
def test_every_answer_is_dressed_alike_and_says_nothing_to_other_origins(
    serve: Callable[[], Served], way: Any, address: str
) -> None:
    served = serve()
    address, body = _filled(way, address)
    for role in ("", "admin"):
        headers = served.ask(role, way.method, address, content=body).headers
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert not [name for name in headers if name.startswith("access-control")]


def test_a_token_of_one_project_opens_no_other(serve: Callable[[], Served]) -> None:
    served = serve()
    for way in WAYS:
        if "{project}" in way.path:
            address = way.path.format(**{**PARTS, "project": "secret"})
            assert served.ask("narrow", way.method, address).status_code == 403, way
    assert served.ask("narrow", "GET", "/settings").status_code == 403
    assert served.ask("narrow", "POST", "/demo").status_code == 403
    listed = served.ask("narrow", "GET", "/").text
    assert "help" in listed
    assert "secret" not in listed
    # Run 3 is one of the other project.
    for address in ("/p/help/runs/3", "/api/p/help/runs/3", "/api/p/help/compare/1/3"):
        assert served.ask("narrow", "GET", address).status_code == 404
    other = served.ask("narrow", "GET", "/api/p/help/queries/q1?runs=3")
    assert other.status_code == 404


def test_the_printed_address_opens_one_session(serve: Callable[[], Served]) -> None:
    served = serve()
    client, link = served.client, served.link
    first = client.get(f"/p/help?metric=rr@10&token={link}")
    assert (first.status_code, first.headers["location"]) == (
        303,
        "/p/help?metric=rr%4010",
    )
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert link not in cookie
    assert client.get("/p/help").status_code == 200
    # A browser sends the origin of the page with every write.
    assert client.post("/demo").status_code == 403
    assert client.post("/demo", headers={"origin": BASE}).status_code == 303
    client.cookies.clear()
    again = client.get(f"/?token={link}")
    assert "set-cookie" not in again.headers
    assert client.get("/").status_code == 401


def test_no_address_leads_to_another_host(serve: Callable[[], Served]) -> None:
    served = serve()
    address = f"//evil.test/%2e%2e?token={served.link}"
    scope = served.client.get(f"{BASE}{address}")
    assert scope.headers["location"].startswith("/evil.test")


def test_addresses_that_are_no_utf_8_are_refused(serve: Callable[[], Served]) -> None:
    served = serve()
    answer = served.ask("admin", "GET", "/api/p/help/queries/%E9%B5")
    assert (answer.status_code, "in UTF-8" in answer.text) == (400, True)
    answer = served.ask("admin", "GET", "/p/help?tag=%E9%B5")
    assert answer.status_code == 200
    assert _raw(served, b"/api/health", b"tag=\xe9\xb5")[0] == 200


def _raw(served: Served, path: bytes, asked: bytes) -> tuple[int, dict[bytes, bytes]]:
    """Status and headers of an answer; a server may hand on what no browser sends."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "server": ("127.0.0.1", 8600),
        "raw_path": path,
        "query_string": asked,
        "headers": [(b"host", b"127.0.0.1")],
    }

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(served.client.app(scope, None, send))  # type: ignore[arg-type]
    return sent[0]["status"], dict(sent[0]["headers"])


def test_what_stands_behind_a_hash_is_read_too(serve: Callable[[], Served]) -> None:
    served = serve()
    status, headers = _raw(served, b"/p/help", b"a#&token=x&b=#")
    assert (status, headers[b"location"]) == (303, b"/p/help?a%23=&b=%23")
    assert _raw(served, b"/style.css#/p/help", b"")[0] == 401


def test_a_token_of_no_role_opens_nothing(serve: Callable[[], Served]) -> None:
    served = serve()
    db = sqlite3.connect(served.path)
    db.execute("update token set role='root' where role='admin'")
    db.commit()
    db.close()
    assert served.ask("admin", "GET", "/").status_code == 403


def test_a_removed_token_opens_nothing(serve: Callable[[], Served]) -> None:
    served = serve()
    assert served.ask("label", "GET", "/p/help").status_code == 200
    done = served.ask("admin", "POST", "/settings", content=b"remove=label")
    assert done.status_code == 303
    assert served.ask("label", "GET", "/p/help").status_code == 401


def test_a_new_token_is_shown_once_and_only_its_hash_is_stored(
    serve: Callable[[], Served],
) -> None:
    served = serve()
    page = served.ask("admin", "POST", "/settings", content=b"name=cy&role=push").text
    secret = re.search("<code>(.+)</code>", page)
    assert secret
    assert secret[1] not in served.ask("admin", "GET", "/settings").text
    files = served.path.parent.glob(f"{served.path.name}*")
    assert not [file for file in files if secret[1].encode() in file.read_bytes()]
    for body in (b"name=cy&role=read", b"name=&role=read", b"name=di&role=king"):
        wrong = served.ask("admin", "POST", "/settings", content=body)
        assert wrong.status_code == 422


def test_what_is_too_large_is_not_taken(serve: Callable[[Limits], Served]) -> None:
    push = "/api/p/help/runs"
    whole = result_of("third", NEW).to_json().encode()
    bomb = gzip.compress(b" " * 50_000_000)
    packed = {"content-encoding": "gzip"}
    cases = [
        (Limits(body=1000), whole, {}, 413, "too large"),
        (Limits(unpacked=1_000_000), bomb, packed, 413, "too large"),
        (Limits(queries=2), whole, {}, 422, "2 queries"),
        (Limits(depth=2), whole, {}, 422, "2 documents"),
        (Limits(text=5), whole, {}, 422, "5 characters"),
    ]
    for limits, body, headers, status, said in cases:
        served = serve(limits)
        before = served.content()
        answer = served.ask("push", "POST", push, content=body, headers=headers)
        assert answer.status_code == status
        assert said in answer.json()["error"]
        assert served.content() == before


def test_a_bomb_is_not_unpacked_further_than_the_limit(
    serve: Callable[[Limits], Served],
) -> None:
    served = serve(Limits(unpacked=2_000_000))
    bomb = gzip.compress(b" " * 50_000_000)
    packed = {"content-encoding": "gzip"}
    tracemalloc.start()
    try:
        served.ask("push", "POST", "/api/p/a/runs", content=bomb, headers=packed)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_what_is_damaged_is_not_taken(serve: Callable[[], Served]) -> None:
    served = serve()
    whole = result_of("third", NEW).to_json().encode()
    packed = gzip.compress(whole)
    before = served.content()
    gz = {"content-encoding": "gzip"}
    cases = [
        (b"", {}, 422),
        (b"{", {}, 422),
        (b"[]", {}, 422),
        (b"[" * 100_000, {}, 422),
        (b"\xff\xfe", {}, 422),
        (whole[: len(whole) // 2], {}, 422),
        (whole.replace(b'"rank"', b'"rang"'), {}, 422),
        (packed[:-20], gz, 422),
        (packed + b"x", gz, 422),
        (whole, gz, 422),
        (packed, {"content-encoding": "br"}, 415),
        (f"[{whole.decode()},{whole.decode()}]".encode(), {}, 422),
    ]
    for body, headers, status in cases:
        answer = served.ask(
            "admin", "POST", "/api/p/help/runs", content=body, headers=headers
        )
        assert answer.status_code == status, (body[:30], answer.text)
        assert answer.json()["error"]
    label = {"query": "q1", "document": "b", "grade": 1}
    wrong: list[Any] = [
        *({**label, "grade": grade} for grade in ("3", None, True, [1], 1e300)),
        *({**label, name: 7} for name in ("query", "document")),
        {**label, "query": "none"},
        {"query": "q1", "grade": 1},
        {**label, "who": 5},
        {**label, "why": "x" * 200_001},
        [],
        "x",
        [label, 3],
    ]
    for sent in wrong:
        answer = served.ask("admin", "POST", "/api/p/help/labels", json=sent)
        assert answer.status_code == 422, (sent, answer.text)
    for address in (
        *("/p/none", "/p/help/runs/x", "/p/help/q/none", "/api/p/help/gold/1.exe"),
        *("/api/p/help/gold/x.qrels", "/p/help/compare/1", "/p/none/gold"),
    ):
        assert served.ask("admin", "GET", address).status_code == 404, address
    for address in (
        *("/p/help?metric=x", "/p/help?page=x", "/p/help/compare?run=1"),
        *("/api/p/help/gold/99.qrels", "/api/p/help/labels/next?n=-1"),
    ):
        assert served.ask("admin", "GET", address).status_code == 422, address
    assert served.content() == before


GZIP = {"content-encoding": "gzip"}
WRONG: dict[str, tuple[bytes, dict[str, str], int]] = {
    "too large": (b" " * 3_000, {}, 413),
    "too large when unpacked": (
        gzip.compress(b" " * 9_000),
        GZIP,
        413,
    ),
    "no gzip": (b"{}", GZIP, 422),
    "half a gzip": (gzip.compress(b"{}")[:-4], GZIP, 422),
    "gzip and more": (gzip.compress(b"{}") + b"x", GZIP, 422),
    "another packing": (b"{}", {"content-encoding": "br"}, 415),
    "no text": (b"\xff\xfe\x00", {}, 422),
    "half": (b'{"query": "q1", "docu', {}, 422),
    "deep": (b"[" * 2_000, {}, 422),
    "empty": (b"", {}, 422),
    "nothing": (b"null", {}, 422),
    "an empty object": (b"{}", {}, 422),
    "half a character": (b'{"query": "q1", "text": "\\ud800", "grade": 1}', {}, 422),
    "no number": (b'{"query": "q1", "document": "b", "grade": NaN}', {}, 422),
    "many fields": (b"name=x&" * 99, {}, 422),
    "no name": (b"role=read", {}, 422),
    "no role": (b"name=x&role=%00%ff", {}, 422),
}
"""What is sent, with which headers, and what whoever may send is told."""
BODIES = [
    one
    for one, way in zip(ADDRESSES, WAYS, strict=True)
    if way.method not in ("GET", "DELETE")
]
# It reads nothing of what is sent.
NO_BODY = ("/demo",)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("way", "address"), BODIES)
def test_wrong_bodies_are_told_from_wrong_callers_and_write_nothing(
    serve: Callable[[Limits], Served], way: Any, address: str, wrong: str
) -> None:
    served = serve(Limits(body=2_500, unpacked=8_000, uploads=1_000))
    body, headers, status = WRONG[wrong]
    before = served.content()
    expected = {"": 401, **dict.fromkeys(ROLES, 403)}
    expected |= dict.fromkeys(MAY[way.action], status)
    if "{project}" not in way.path:
        expected["narrow"] = 403
    if address in NO_BODY and status == 422 and not headers:
        expected = {role: 403 for role in ROLES if role not in MAY[way.action]}
    for role, code in expected.items():
        options: dict[str, Any] = {"content": body, "headers": headers}
        answer = served.ask(role, "POST", address, **options)
        assert answer.status_code == code, (role, answer.text)
        for name, value, foreign in (
            ("host", "evil.test", 421),
            ("origin", "http://evil.test", 403),
        ):
            options["headers"] = {**headers, name: value}
            answer = served.ask(role, "POST", address, **options)
            assert answer.status_code == foreign, (role, name)
    assert served.content() == before


@pytest.mark.parametrize("token", ["", "x" * 30_000, "%00", "%ff%fe", "a&token=b"])
def test_a_wrong_token_in_the_address_opens_nothing(
    serve: Callable[[], Served], token: str
) -> None:
    served = serve()
    before = served.content()
    answer = served.client.get(f"/p/help?token={token}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/p/help")
    assert "set-cookie" not in answer.headers
    assert served.client.get("/p/help").status_code == 401
    assert served.client.post(f"/demo?token={token}").status_code == 401
    assert served.content() == before


def test_uploads_are_counted(serve: Callable[[Limits], Served]) -> None:
    served = serve(Limits(uploads=2))
    whole = result_of("third", NEW).to_json().encode()
    push = [
        served.ask("push", "POST", "/api/p/help/runs", content=whole) for _ in range(3)
    ]
    assert [answer.status_code for answer in push] == [201, 200, 429]
    assert push[2].headers["retry-after"] == "60"
    assert served.ask("admin", "POST", "/api/p/help/runs", content=whole).is_success


@pytest.mark.parametrize(
    "name",
    [
        *(
            "https://a.test/x?y=1#z",
            "a/b",
            ".",
            "..",
            "%",
            "%2F",
            "ü 1",
            "<b>",
            '"',
            "'",
        ),
        *("a\nb", "\u202eabc", "&amp;", "a//b/", "\\", "?", "#", ";", "+", " x "),
    ],
    ids=ascii,
)
def test_ids_may_hold_anything(tmp_path: Path, name: str) -> None:
    path = tmp_path / "store.db"
    with karat.history.open(path) as store:
        store.push(result_of("run", {name: ["a", "b"]}), project=name)
        token = store.tokens.add("ann", "admin")
    headers = {"authorization": f"Bearer {token}"}

    def link(page: Any, pattern: str) -> str:
        address = re.search(f'(?:href|data-url)="({pattern})"', page.text)
        assert address
        return html.unescape(address[1])

    with TestClient(workbench(path), base_url=BASE, headers=headers) as client:
        project = link(client.get("/"), '/p/[^/"]+')
        run = client.get(link(client.get(project), f"{project}/runs/1"))
        query = client.get(link(run, f'{project}/q/[^/"]+'))
        assert "text of b" in query.text
        for page in ("label", "gold"):
            assert client.get(f"{project}/{page}").status_code == 200
        label = {"query": name, "document": "b", "grade": 1}
        done = client.post(link(query, f"/api{project}/labels"), json=label)
        assert done.json()["labels"] == [1]


def test_there_are_no_other_routes(tmp_path: Path) -> None:
    routes: Any = workbench(tmp_path / "store.db").routes
    served = {(m, one.path) for one in routes for m in one.methods if m != "HEAD"}
    known = {(way.method, way.path) for way in WAYS} | {("GET", p) for p in PUBLIC}
    assert served == known


def test_the_openapi_file_names_every_route_and_nothing_else(
    serve: Callable[[], Served],
) -> None:
    served = serve()
    spec = served.client.get("/api/openapi.json").json()
    assert spec["openapi"].startswith("3.1")
    said = {
        (method.upper(), path)
        for path, ways in spec["paths"].items()
        for method in ways
        if method != "parameters"
    }
    served_ways = {
        (way.method, way.path) for way in WAYS if way.path.startswith("/api")
    }
    public = {("GET", path) for path in PUBLIC if path.startswith("/api")}
    assert said == served_ways | public
    for way in WAYS:
        if way.path.startswith("/api"):
            one = spec["paths"][way.path]
            named = {p["name"] for p in one["parameters"] if p["in"] == "path"}
            assert named == {*re.findall(r"\{(\w+)\}", way.path)}
            assert way.action in one[way.method.lower()]["security"][0]["token"]


def test_answers_are_what_the_openapi_file_says(serve: Callable[[], Served]) -> None:
    served = serve()
    spec = served.client.get("/api/openapi.json").json()
    label = {"query": "q1", "document": "b", "grade": 2, "why": "it says so"}
    served.ask("bo", "POST", "/api/p/help/labels", json={**label, "grade": 0})
    served.ask("label", "POST", "/api/p/help/labels", json=label)
    for way in WAYS:
        if not way.path.startswith("/api"):
            continue
        address, body = _filled(way, way.path.format(**{**PARTS, "label": "2"}))
        role = "label" if way.action == "label" else "admin"
        answer = served.ask(role, way.method, address, content=body)
        said = spec["paths"][way.path][way.method.lower()]["responses"]
        form = said[str(answer.status_code)].get("content", {}).get("application/json")
        if form is not None:
            schema = {**form["schema"], "components": spec["components"]}
            jsonschema.validate(answer.json(), schema)
        refused = served.ask("", way.method, address)
        schema = spec["components"]["schemas"]["Error"]
        jsonschema.validate(refused.json(), schema)
    assert json.dumps(spec)
