"""Naming prompts: equal names for equal questions to the same model, and no others."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from karat.data.judgements import Prompt, Schema
from karat.llm.protocol import Client

__all__ = ["Keys"]


class Keys:
    """Names each prompt by all that decides its answer, for one client.

    The name is a SHA-256 over endpoint, model, parameters, the prompt's name and
    version, its texts and its schema: change any of them and the name is another.
    """

    def __init__(self, client: Client) -> None:
        self.endpoint = client.endpoint
        self.model = client.model
        self.parameters = json.dumps(dict(client.parameters), sort_keys=True)
        start = json.dumps([self.endpoint, self.model, self.parameters])
        self._start = hashlib.sha256(start.encode())
        self._kinds: dict[tuple[str, str, str], hashlib._Hash] = {}

    def of(self, prompt: Prompt) -> bytes:
        """The name of a prompt to this client."""
        # Prompts of one kind begin alike, and that much is digested once.
        kind = (prompt.name, prompt.version, prompt.system)
        begun = self._kinds.get(kind)
        if begun is None:
            begun = self._kinds[kind] = self._start.copy()
            begun.update(json.dumps(kind)[:-1].encode())
        name = begun.copy()
        rest = f", {json.dumps(prompt.user)}, {_written(prompt.schema)}]"
        name.update(rest.encode())
        return name.digest()


def _written(schema: Mapping[str, Any] | None) -> str:
    if isinstance(schema, Schema):
        return schema.text
    return json.dumps(schema, default=dict)
