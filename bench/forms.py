"""Random data sets in every form of input: scores and notices must be the same.

python -m bench.forms [COUNT] [SEED]
"""

import sys
import tempfile
from pathlib import Path
from random import Random

from tests.reading.forms import data_set, forms, outcome

COUNT = 20_000


def main() -> None:
    """Print every difference, and exit with 1 if there is any."""
    numbers = [int(word) for word in sys.argv[1:]]
    count, first = (*numbers, COUNT, 0)[:2] if len(numbers) != 1 else (*numbers, 0)
    differences = 0
    for seed in range(first, first + count):
        run, gold = data_set(Random(seed))
        with tempfile.TemporaryDirectory() as folder:
            inputs = dict(forms(run, gold, Path(folder)))
            wanted = outcome(inputs["dict"])
            for name, data in inputs.items():
                if (found := outcome(data)) != wanted:
                    differences += 1
                    print(f"seed {seed}, {name}: {found}\n  dict: {wanted}")
    print(f"{count} data sets, {differences} differences")
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
