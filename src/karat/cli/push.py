"""`karat push`: add evaluations to a history store, or send them to a server."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import click

from karat.cli.command import Command, remark, say
from karat.data.tables import counted
from karat.errors import DataError, UsageError
from karat.history.store import PROJECT, Store
from karat.llm.credentials import check_headers
from karat.llm.http import check_endpoint, split_url
from karat.reading.files import decode_json, decode_text
from karat.results.loading import load

STORE = "karat-history.db"
"""Where runs are stored unless somebody says otherwise."""

TOKEN = "KARAT_TOKEN"  # noqa: S105
_SECONDS = 60
_MAX_BYTES = 16 * 1024 * 1024
_ANSWER = {"run": int, "is_new": bool, "differing": list}
# What CI calls the commit and the branch, those of a pull request first.
_COMMIT = ("GITHUB_SHA", "CI_COMMIT_SHA", "BUILD_SOURCEVERSION")
_BRANCH = (
    *("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"),
    "BUILD_SOURCEBRANCHNAME",
)


@click.command("push", cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="RESULT.json...")
@click.option("--commit", help="Commit of the code; default: from CI or git.")
@click.option("--branch", help="Branch of the code; default: from CI or git.")
@click.option(
    "--project", default=PROJECT, show_default=True, help="The project to add it to."
)
@click.option(
    "--to",
    metavar="STORE|URL",
    default=STORE,
    show_default=True,
    help=f"A file, or the URL of a karat serve, with {TOKEN} in the environment.",
)
def command(
    files: Sequence[str],
    commit: str | None,
    branch: str | None,
    project: str,
    to: str,
) -> None:
    """Add saved evaluations to the history of a project, each result only once.

    The store holds what was retrieved, and rescores every run when labels change.

    \b
    karat evaluate run.trec --gold qrels.trec -o result.json
    karat push result.json
    karat push result.json --to https://karat.example --project help
    """
    where = {
        "commit": _first(_COMMIT, "HEAD") if commit is None else commit,
        "branch": _first(_BRANCH, "--abbrev-ref", "HEAD") if branch is None else branch,
    }
    for path in files:
        result = load(path)
        if "://" in to:
            done = _post(to, project, where, Path(path).read_bytes())
        else:
            with Store(to) as store:
                done = store.push(result, project=project, **where)._asdict()
        again = "" if done["is_new"] else " (already stored)"
        say(f"{path} is run {done['run']} of {project} in {to}{again}")
        if differing := done["differing"]:
            remark(
                f"{counted(len(differing), 'query')} of {path} had other gold than the "
                f"store, and the store's counts: {', '.join(map(str, differing[:3]))}; "
                "karat history --gold FILE replaces the store's"
            )


def _first(variables: Sequence[str], *asked: str) -> str:
    """What CI says in the environment, else what git says; else nothing."""
    said = next(filter(None, map(os.environ.get, variables)), "")
    git = shutil.which("git")
    if said or git is None:
        return said or ""
    command = [git, "rev-parse", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    name = done.stdout.strip() if done.returncode == 0 else ""
    # What git calls the branch of a commit that is on none.
    return "" if name == "HEAD" else name


def _post(
    url: str, project: str, where: Mapping[str, str], body: bytes
) -> Mapping[str, Any]:
    """Send a saved evaluation to a server; it follows no redirect."""
    parts = split_url(url)
    if parts is None or parts.scheme not in {"http", "https"} or parts.username:
        raise UsageError(
            "--to takes a file or an address such as http://127.0.0.1:8321"
        )
    check_endpoint(url)
    name = quote(project, safe="", errors="surrogatepass")
    path = f"{parts.path.rstrip('/')}/api/p/{name}/runs"
    asked = urlencode(where, errors="surrogatepass")
    token = os.environ.get(TOKEN)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    check_headers(headers)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    server = kind(str(parts.hostname), parts.port, timeout=_SECONDS)
    try:
        server.request("POST", f"{path}?{asked}", body, headers)
        reply = server.getresponse()
        said = decode_json(decode_text(reply.read(_MAX_BYTES)))
    except DataError:
        said = None
    except (OSError, HTTPException, UnicodeError) as error:
        raise UsageError(f"{parts.netloc} cannot be reached: {error}") from None
    finally:
        server.close()
    answer = said if isinstance(said, dict) else {}
    if not all(isinstance(answer.get(name), kind) for name, kind in _ANSWER.items()):
        why = answer.get("error", "no server of karat serve")
        hint = "" if token else f"; {TOKEN} is not set"
        if reply.status == HTTPStatus.UNAUTHORIZED and token and answer:
            why = f"the token in {TOKEN} is not known there"
            hint = "; karat serve STORE --add-token NAME=push makes one on that machine"
        raise UsageError(f"{parts.netloc} answered {reply.status}: {why}{hint}")
    return answer
