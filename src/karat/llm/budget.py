"""Tokens and cost of calls: estimated before, counted and limited during a run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

from karat.data.judgements import Prompt, Schema, Usage
from karat.data.tables import counted
from karat.errors import ParameterError
from karat.llm.protocol import Client

__all__ = ["Budget", "Prices", "estimate_usage", "tokens_of"]

BYTES_PER_TOKEN = 4
TOKENS_PER_CALL = 16
REPLY_TOKENS = 256
_MILLION = 1_000_000
REPLY_LIMITS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in any currency.

    Example:
        >>> Prices(prompt=0.15, completion=0.60).cost(Usage(1_000_000, 500_000))
        0.45
    """

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for name in ("prompt", "completion"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) < inf:
                raise ParameterError("prices", name, "0 or more", value)

    @staticmethod
    def read(value: "Prices | str | Sequence[float]") -> "Prices":
        """Prices as they are, as two numbers, or as text.

        Example:
            >>> Prices.read("0.15,0.6")
            Prices(prompt=0.15, completion=0.6)
        """
        if isinstance(value, Prices):
            return value
        try:
            parts = value.split(",") if isinstance(value, str) else value
            prompt, completion = (float(part) for part in parts)
            return Prices(prompt, completion)
        except (TypeError, ValueError, ParameterError):
            must_be = "two numbers per million tokens, as in 0.15,0.6"
            raise ParameterError("prices", "prices", must_be, value) from None

    def cost(self, usage: Usage) -> float:
        """What these tokens cost."""
        prompt = self.prompt * usage.prompt_tokens
        return (prompt + self.completion * usage.completion_tokens) / _MILLION


def tokens_of(text: str) -> int:
    """About how many tokens a text has: a quarter of its UTF-8 bytes, rounded up.

    No tokenizer fits every model; this rule is within about a fifth for English prose.

    Example:
        >>> tokens_of("Bread keeps best in a linen bag.")
        8
    """
    ascii_only = text.isascii()
    size = len(text) if ascii_only else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def estimate_usage(prompt: Prompt, reply_tokens: int | None = None) -> Usage:
    """The tokens a call is expected to use; the schema of its reply is sent too."""
    sent = tokens_of(prompt.system) + tokens_of(prompt.user) + TOKENS_PER_CALL
    if prompt.schema is not None:
        sent += tokens_of(schema_text(prompt.schema))
    return Usage(sent, REPLY_TOKENS if reply_tokens is None else reply_tokens)


def schema_text(schema: Mapping[str, Any] | None) -> str:
    """A JSON schema as it is sent."""
    if isinstance(schema, Schema):
        return schema.text
    return json.dumps(schema, default=dict)


def max_reply_tokens(client: Client) -> int:
    """The most tokens that a reply may have, if the client's parameters limit it."""
    limits = [client.parameters.get(name) for name in REPLY_LIMITS]
    return next((limit for limit in limits if type(limit) is int), REPLY_TOKENS)


class Budget:
    """Counts calls, tokens and cost, and tells when the next call would exceed a limit.

    Each call under way reserves what it may cost, so that many calls at once do not
    exceed the limit together.
    """

    def __init__(
        self,
        prices: Prices | None = None,
        max_calls: int | None = None,
        max_cost: float | None = None,
    ) -> None:
        self.prices = prices
        self.max_calls = max_calls
        self.max_cost = max_cost
        self.calls = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self._reserved = 0.0
        self._under_way = 0

    @property
    def cost(self) -> float | None:
        """What has been spent, if prices are known."""
        if self.prices is None:
            return None
        return self.prices.cost(Usage(self.prompt_tokens, self.completion_tokens))

    def must_wait(self) -> bool:
        """Whether a call that is refused now may be made when others have ended."""
        return self._under_way > 0 and not self._calls_are_used_up()

    def refusal(self, reserved: Usage) -> str | None:
        """Why one more call would exceed a limit, or None when it may be made."""
        if self._calls_are_used_up():
            return f"the limit of {counted(self.max_calls or 0, 'call')} is reached"
        if self.max_cost is not None and self.prices is not None:
            spent = self.prices.cost(Usage(self.prompt_tokens, self.completion_tokens))
            if spent + self._reserved + self.prices.cost(reserved) > self.max_cost:
                return (
                    f"the next call could pass the limit of {self.max_cost:g} "
                    f"({spent:.4g} is spent, and a reply may take "
                    f"{counted(reserved.completion_tokens, 'token')})"
                )
        return None

    def _calls_are_used_up(self) -> bool:
        return self.max_calls is not None and self.calls >= self.max_calls

    def begin(self, reserved: Usage) -> None:
        """A call starts."""
        self.calls += 1
        self._under_way += 1
        self._reserved += self.prices.cost(reserved) if self.prices else 0.0

    def settle(self, reserved: Usage, used: Usage | None) -> None:
        """A call ended, having used these tokens; None when it was not billed."""
        self._under_way -= 1
        self._reserved -= self.prices.cost(reserved) if self.prices else 0.0
        if used is not None:
            self.prompt_tokens += used.prompt_tokens
            self.completion_tokens += used.completion_tokens
