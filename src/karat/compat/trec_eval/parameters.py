"""The parameters of a measure, as written after the dot in `-m ndcg_cut.5,10`."""

import re
from math import isfinite

from karat.errors import ParameterError

__all__ = ["read_cutoffs", "read_gains", "read_numbers", "read_pairs"]


# trec_eval reads a C long; what it makes of more is left to the machine.
_LARGEST = 2**63 - 1


def read_cutoffs(name: str, text: str) -> list[int]:
    """Ranks in ascending order; as in trec_eval, `23.4` is read as 23."""
    found = [re.match(r"\s*\+?0*([0-9]+)", part) for part in text.split(",")]
    digits = [match[1] for match in found if match]
    longest = len(str(_LARGEST))
    if any(len(row) > longest or int(row) > _LARGEST for row in digits):
        raise ParameterError(f"-m {name}", "cutoffs", f"at most {_LARGEST}", text)
    cutoffs = [int(row) for row in digits]
    if len(cutoffs) < len(found) or 0 in cutoffs or len({*cutoffs}) < len(cutoffs):
        raise ParameterError(
            f"-m {name}", "cutoffs", "different integers >= 1, as in 5,10", text
        )
    return sorted(cutoffs)


def read_numbers(name: str, text: str) -> list[float]:
    """Numbers in the order given."""
    return [_number(name, part, text) for part in text.split(",")]


def read_pairs(name: str, text: str) -> dict[str, float]:
    """Numbers by name, as in `p=0.8`."""
    pairs: dict[str, float] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise ParameterError(
                f"-m {name}", "parameters", "name=number, as in 1=3.5,2=9", text
            )
        pairs.setdefault(key, _number(name, value, text))
    return pairs


def read_gains(name: str, text: str) -> dict[int, float]:
    """Gains by grade, as in `1=3.5,2=9`."""
    pairs = read_pairs(name, text)
    if not all(grade.isdecimal() for grade in pairs) or min(pairs.values()) < 0:
        raise ParameterError(
            f"-m {name}", "gains", "grade=gain, neither of them negative", text
        )
    return {int(grade): gain for grade, gain in pairs.items()}


def _number(name: str, part: str, text: str) -> float:
    try:
        number = float(part)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise ParameterError(f"-m {name}", "parameters", "numbers", text)
    return number
