"""`python -m tests.wheel`: the built wheel, alone in an environment of its own."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

DIST = Path(__file__).parents[1] / "dist"
MOST_PACKAGES = 12
SCORE = (
    "import karat; print(karat.evaluate({'q': ['a']}, gold={'q': ['a']}).means['rr'])"
)
# What `make demo` and `make test` read, besides sources and tests.
NEEDED = ("Makefile", "requirements/base.txt", "requirements/dev.txt", "README.md")
WHERE = (
    "import karat, pathlib; home = pathlib.Path(karat.__file__).parent; "
    "print(home); assert (home / 'py.typed').exists()"
)


def main() -> None:
    """Install the wheel as a user would, and use it far away from the sources."""
    (wheel,) = DIST.glob("*.whl")
    (source,) = DIST.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    check({*NEEDED} <= inside, f"{source.name} lacks {sorted({*NEEDED} - inside)}")
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
    print(f"{wheel.name}: 1 passed, 0 failed ({len(names)} packages)")  # noqa: T201


def call(folder: Path, *command: str) -> str:
    """What a command prints, run in that folder and without this environment."""
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    env = {k: v for k, v in os.environ.items() if k not in hidden}
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
