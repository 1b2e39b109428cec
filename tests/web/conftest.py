"""A served store with two runs, and clients that hold each kind of token."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import karat
from karat.extend import Limits, workbench

BASE = "http://127.0.0.1:8600"
ROLES = ("read", "label", "push", "admin")


def result_of(name: str, rankings: dict[str, list[str]]) -> karat.Evaluation:
    """A small run with texts."""
    samples = [
        {
            "id": query,
            "query": f"what of {query}?",
            "retrieved": [{"id": d, "text": f"text of {d}"} for d in documents],
            "relevant": ["a"],
        }
        for query, documents in rankings.items()
    ]
    return karat.evaluate(samples, metrics=["ndcg@10", "rr@10"], keep=10, name=name)


OLD = {"q1": ["b", "a", "c"], "q2": ["a", "b"], "q3": ["c", "b", "a"]}
NEW = {"q1": ["a", "b", "c"], "q2": ["b", "a"], "q3": ["a", "d"]}


class Served:
    """A store that is served, with a token for each role."""

    def __init__(
        self, path: Path, tokens: dict[str, str], limits: Limits | None = None
    ) -> None:
        self.path = path
        self.tokens = tokens
        app = workbench(path, name="owner", limits=limits)
        self.link = app.state.desk.link
        self.client = TestClient(app, base_url=BASE, follow_redirects=False)

    def ask(self, role: str, method: str, address: str, **options: Any) -> Any:
        """The answer to the holder of a token; without one where the role is none."""
        headers = dict(options.pop("headers", {}))
        if role:
            headers["authorization"] = f"Bearer {self.tokens[role]}"
        return self.client.request(method, address, headers=headers, **options)

    def content(self) -> bytes:
        """All that is stored, to tell whether anything was written."""
        with karat.history.open(self.path) as store:
            shown = [
                (project, store.runs(project), store.labels(project))
                for project in store.projects()
            ]
            return repr((shown, store.tokens.every())).encode()


@contextmanager
def running(path: Path) -> Iterator[str]:
    """The address of a server of its own, by the command."""
    command = [sys.executable, "-m", "karat", "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().partition("/?")[0]
        finally:
            server.terminate()


class Window:
    """A browser that is signed in, and all that its pages complained of."""

    def __init__(self, browser: Any, home: str, token: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.home = home
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.go(f"/?token={token}")

    def _dismiss(self, box: Any) -> None:
        self.said.append("dialog")
        box.dismiss()

    def go(self, address: str) -> None:
        self.page.goto(self.home + address)

    def said_in(self, place: str, text: str) -> str:
        """What stands somewhere, as soon as it has this text."""
        self.page.locator(place, has_text=text).first.wait_for()
        return str(self.page.locator(place).first.inner_text())

    def quiet(self) -> bool:
        """Whether nothing ran, complained, or asked another server."""
        hit = self.page.locator("html").get_attribute("data-hit")
        others = [url for url in self.asked if not url.startswith(f"{self.home}/")]
        return hit is None and not self.said and not others


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A store that tests copy, and its tokens by the names of who holds them."""
    path = tmp_path_factory.mktemp("store") / "store.db"
    with karat.history.open(path) as store:
        store.push(result_of("old", OLD), project="help", branch="main")
        store.push(result_of("new", NEW), project="help", branch="main")
        store.push(result_of("other", NEW), project="secret")
        tokens = {role: store.tokens.add(role, role) for role in ROLES}
        tokens["bo"] = store.tokens.add("bo", "label")
        tokens["narrow"] = store.tokens.add("narrow", "admin", "help")
    return path, tokens


@pytest.fixture
def serve(
    stored: tuple[Path, dict[str, str]], tmp_path: Path
) -> Iterator[Callable[..., Served]]:
    """Serves a copy of the store."""
    opened: list[Served] = []

    def start(limits: Limits | None = None) -> Served:
        path = tmp_path / f"{len(opened)}.db"
        path.write_bytes(stored[0].read_bytes())
        opened.append(Served(path, stored[1], limits))
        opened[-1].client.__enter__()
        return opened[-1]

    yield start
    for one in opened:
        one.client.__exit__(None, None, None)
