"""`karat serve`: the workbench over a history store, in a browser."""

import getpass
import socket
from pathlib import Path

import click

from karat.cli.command import Command, remark
from karat.cli.push import STORE
from karat.errors import MissingExtraError, UsageError
from karat.history.store import Store
from karat.history.tokens import ROLES, check_token

try:
    import uvicorn

    from karat.web.app import workbench
    from karat.web.guard import LOOPBACK
except ImportError:
    raise MissingExtraError("karat serve", "web") from None

_PORT = 8600


@click.command("serve", cls=Command)
@click.argument("store", default=STORE, metavar="[STORE]")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
)
@click.option("--port", default=_PORT, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--name", metavar="NAME", help="The name on your labels; default: your login."
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="HOST",
    help="A host name of this server, as behind a proxy; repeatable.",
)
@click.option(
    "--add-token",
    metavar="NAME=ROLE",
    help=f"Print a new token and exit; roles: {', '.join(ROLES)}.",
)
def command(
    store: str,
    host: str,
    port: int,
    name: str | None,
    allow_host: tuple[str, ...],
    add_token: str | None,
) -> None:
    """Show STORE in a browser: history, comparisons, every query, and labelling.

    The printed address works once, for you. Other people and programs need tokens.

    \b
    karat serve
    karat serve --add-token ann=label
    karat serve --host 0.0.0.0 --allow-host karat.example.org
    """
    if add_token is not None:
        who, _, role = add_token.partition("=")
        check_token(who, role)
        with Store(store) as opened:
            click.echo(opened.tokens.add(who, role))
        return
    local = host in LOOPBACK
    if not local and not _has_tokens(store):
        raise UsageError(
            f"--host {host} lets others ask, and no token is set: "
            f"karat serve {store} --add-token NAME=ROLE makes one"
        )
    whose = (name or getpass.getuser()) if local else None
    app = workbench(store, hosts=(host, *allow_host), name=whose)
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        problem = f"cannot listen on {host}:{port}: {error.strerror}"
        raise UsageError(f"{problem}; --port 0 takes a free one") from None
    with listening:
        with Store(store) as opened:
            is_empty = not opened.projects()
        address = f"http://{host}:{listening.getsockname()[1]}/"
        if is_empty:
            remark(f"{store} is empty: the page offers the demo data")
        click.echo(f"{address}?token={app.state.desk.link}" if local else address)
        remark("Ctrl-C stops")
        config = uvicorn.Config(app, log_level="warning", server_header=False)
        uvicorn.Server(config).run(sockets=[listening])


def _has_tokens(store: str) -> bool:
    """Whether anybody has a token; a store that is not there is not made."""
    if not Path(store).is_file():
        return False
    with Store(store) as opened:
        return bool(opened.tokens.every())
