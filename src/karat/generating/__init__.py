"""Questions from a corpus: sampled, written, certified, and their gold completed."""

from karat.generating.generate import generate
from karat.generating.question_set import QuestionSet

__all__ = ["QuestionSet", "generate"]
