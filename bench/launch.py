"""Runs one command; writes its seconds, CPU seconds and peak memory in bytes as JSON.

A process of its own because a child's peak includes what its parent held when the child
was started: a parent that has just loaded a gigabyte would lend it to every child.
"""

import json
import os
import sys
import time
from pathlib import Path

# macOS counts in bytes, Linux in kibibytes.
_UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> None:
    """Run `launch.py FIGURES COMMAND...`."""
    figures, *command = sys.argv[1:]
    started = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    cpu = usage.ru_utime + usage.ru_stime
    facts = {"seconds": seconds, "cpu": cpu, "peak": usage.ru_maxrss * _UNIT}
    Path(figures).write_text(json.dumps(facts), encoding="utf-8")
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
