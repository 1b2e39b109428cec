"""`python -m tests.wheel`: wheel and sdist, each alone in an environment of its own.

    python -m tests.wheel [ENVIRONMENT]

The wheel is installed with all extras into ENVIRONMENT, too: `make release` lists it.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
MOST_PACKAGES = 12
SCORE = (
    "import karat; print(karat.evaluate({'q': ['a']}, gold={'q': ['a']}).means['rr'])"
)
# README as its reader has it: what its blocks print is what it shows.
README = """
import pathlib, tempfile
from tests.docs.pages import ROOT, executed
text = (ROOT / "README.md").read_text("utf-8")
with tempfile.TemporaryDirectory() as folder:
    assert executed(text, pathlib.Path(folder)) == text
"""
# What `make demo` and `make test` read, besides sources and tests.
NEEDED = ("Makefile", "requirements/base.txt", "requirements/dev.txt", "README.md")
WHERE = (
    "import karat, pathlib; home = pathlib.Path(karat.__file__).parent; "
    "print(home); assert (home / 'py.typed').exists()"
)


def main() -> None:
    """Install both as a user would; use the wheel far away from the sources."""
    (wheel,) = DIST.glob("*.whl")
    (source,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        venv.create(folder / "env", with_pip=True)
        scripts = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        python, karat = str(scripts / "python"), str(scripts / "karat")
        pip = (python, "-m", "pip", "--disable-pip-version-check")
        call(folder, *pip, "install", "-q", str(wheel))
        call(folder, *pip, "check")
        packages = json.loads(call(folder, *pip, "list", "--format", "json"))
        names = sorted({p["name"] for p in packages} - {"pip", "setuptools", "wheel"})
        check(len(names) <= MOST_PACKAGES, f"{len(names)} packages: {names}")
        version = wheel.name.split("-")[1]
        check(call(folder, karat, "--version") == f"karat {version}\n", "--version")
        check("ndcg@10 by tag" in call(folder, karat, "demo"), "karat demo")
        check(call(folder, python, "-c", SCORE) == "1.0\n", "a first score")
        home = Path(call(folder, python, "-c", WHERE).strip())
        check(home.is_relative_to(folder), f"karat was imported from {home}")
        left = {path.name for path in folder.iterdir()}
        check(left == {"env"}, f"files were left behind: {left - {'env'}}")
        call(folder, python, "-c", README, PYTHONPATH=str(ROOT))
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        sources = folder / source.name.removesuffix(".tar.gz")
        check(
            "ndcg@10 by tag" in call(sources, "make", "demo"), "make demo of an sdist"
        )
        python = str(sources / ".venv" / scripts.name / "python")
        call(sources, python, "-c", README)
        lacks = [name for name in NEEDED if not (sources / name).exists()]
        check(not lacks, f"{source.name} lacks {lacks}")
        for environment in map(Path, sys.argv[1:]):
            venv.create(environment, with_pip=True, clear=True)
            pip = (str(environment / scripts.name / "python"), *pip[1:])
            call(folder, *pip, "install", "-q", f"{wheel}[all]")
    print(f"{wheel.name}: 1 passed, 0 failed ({len(names)} packages)")  # noqa: T201
    print(f"{source.name}: 1 passed, 0 failed")  # noqa: T201


def call(folder: Path, *command: str, **variables: str) -> str:
    """What a command prints, run in that folder and without this environment."""
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    env = {k: v for k, v in os.environ.items() if k not in hidden} | variables
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    check(done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(holds: bool, what: str) -> None:  # noqa: FBT001
    if not holds:
        sys.exit(f"tests.wheel: 0 passed, 1 failed: {what}")


if __name__ == "__main__":
    main()
