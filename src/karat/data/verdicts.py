"""Verdicts: what a judge said of one claim, and why."""

from dataclasses import dataclass

__all__ = ["Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether, where and why the retrieved documents support one claim.

    A claim is found at the first rank that supports it alone, or at the rank that
    completes the documents which support it only together.

    Attributes:
        claim: id of the claim within its query.
        text: what it says; empty where texts are to stay out of results.
        alone: ranks of the documents that support it by themselves.
        together: ranks of documents that support it only together, if they do.
        reason: the judge's own sentence.
        failure: why there is no verdict; then the claim is neither found nor missed.
        disagreement: share of the votes that differ from the majority, or failed.

    Example:
        >>> Verdict("claim-1", "It rains.", alone=(5,), together=(1, 3)).rank
        3
    """

    claim: str
    text: str = ""
    alone: tuple[int, ...] = ()
    together: tuple[int, ...] = ()
    reason: str = ""
    failure: str | None = None
    disagreement: float = 0.0

    @property
    def rank(self) -> int | None:
        """The rank at which the claim is found; None when it is not supported."""
        ranks = [min(self.alone)] if self.alone else []
        if self.together:
            ranks.append(max(self.together))
        return min(ranks) if ranks else None

    @property
    def supported(self) -> bool:
        """Whether the documents support the claim."""
        return self.rank is not None

    @property
    def ranks(self) -> tuple[int, ...]:
        """Every rank that matches the claim: each alone, or by completing others."""
        completing = {max(self.together)} if self.together else set()
        return tuple(sorted({*self.alone, *completing}))
