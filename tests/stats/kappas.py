"""Cohen's kappa of two columns of grades, whatever they are about."""

import numpy as np

from karat.extend import Floats
from karat.stats.agreement import Weights, agreement_figures


def cohen_kappa(one: Floats, other: Floats, *, weights: Weights = "equal") -> float:
    """How much two raters agree beyond chance."""
    figures = agreement_figures(one, other, np.zeros(len(one), np.int64))
    return {
        "equal": figures.kappa,
        "linear": figures.linear_kappa,
        "quadratic": figures.weighted_kappa,
    }[weights].value
