"""Language models: a client of yours, a model's name or any function, with its room."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from karat.extend import (
    JOURNAL,
    ChatClient,
    Client,
    DryRun,
    FunctionClient,
    JudgeSession,
    Settings,
    UsageError,
)

Model: TypeAlias = Any
"""What `llm_factory` returns, a function from prompt to reply, plain or async, the name
of a model, a client of karat, or a model of LangChain or LlamaIndex."""

# As many as the original's RunConfig has workers.
_AT_ONCE = 16
# What the original asks where no model is named.
_USUAL = "gpt-4o-mini"
# How libraries call a model, to be awaited and not, and how they name it.
_CALLS = ("ainvoke", "acomplete", "invoke", "complete")
_NAMES = ("model_name", "model", "model_id", "deployment_name")


@dataclass
class RunConfig:
    """How long and how often a model is asked, and how many times at once.

    `seed` decides nothing, as in the original; nor do the last but one.
    """

    timeout: float = 180
    max_retries: int = 10
    max_wait: float = 60
    max_workers: int = _AT_ONCE
    exception_types: Any = Exception
    log_tenacity: bool = False
    seed: int = 42

    def limit(self, settings: Settings) -> Settings:
        """The same settings within these limits."""
        return replace(
            settings,
            timeout=self.timeout,
            max_attempts=self.max_retries,
            longest_wait=self.max_wait,
            concurrency=max(1, self.max_workers),
        )


class LangchainLLMWrapper(JudgeSession):
    """A model of LangChain, asked by its `ainvoke` or `invoke`."""

    def __init__(
        self, llm: Any, run_config: RunConfig | None = None, **unused: object
    ) -> None:
        del unused
        if not any(hasattr(llm, name) for name in _CALLS):
            raise UsageError(
                f"a {type(llm).__name__} has none of {', '.join(_CALLS)}, by which a "
                "model is asked"
            )
        session = session_of(llm, run_config)
        super().__init__(session.client, session.settings)


class LlamaIndexLLMWrapper(LangchainLLMWrapper):
    """A model of LlamaIndex, asked by its `acomplete` or `complete`."""


class LangchainEmbeddingsWrapper:
    """Embeddings, which old calls bring along; no metric of retrieval here uses any."""

    def __init__(self, embeddings: Any = None, *unused: object, **more: object) -> None:
        del unused, more
        self.embeddings = embeddings


LlamaIndexEmbeddingsWrapper = embedding_factory = LangchainEmbeddingsWrapper
BaseRagasEmbedding = BaseRagasEmbeddings = LangchainEmbeddingsWrapper
HuggingfaceEmbeddings = OpenAIEmbeddings = LangchainEmbeddingsWrapper
BaseRagasLLM = InstructorBaseRagasLLM = JudgeSession


def _client_of(model: Any) -> Client | None:
    """A client around a model of another library; None if it is no such model."""
    name = next((name for name in _CALLS if hasattr(model, name)), None)
    if name is None:
        return None
    call = getattr(model, name)
    if name.startswith("a"):

        async def ask(prompt: str) -> str:
            return _text_of(await call(prompt))

        function: Callable[[str], Any] = ask
    else:
        function = lambda prompt: _text_of(call(prompt))  # noqa: E731
    labels = (getattr(model, attribute, None) for attribute in _NAMES)
    label = next((value for value in labels if isinstance(value, str)), None)
    heat = getattr(model, "temperature", None)
    parameters = {} if heat is None else {"temperature": heat}
    # A model's name stands for the model, as it does behind an address.
    return FunctionClient(function, label, parameters, version=label)


def _text_of(reply: Any) -> str:
    """The text of a reply: a message, a completion, or the text itself."""
    content = getattr(reply, "content", getattr(reply, "text", reply))
    if isinstance(content, list):
        parts = (
            part if isinstance(part, str) else part.get("text") for part in content
        )
        content = "".join(part or "" for part in parts)
    return str(content)


def llm_factory(
    model: str,
    provider: str = "openai",
    client: Any = None,
    *,
    settings: Settings | None = None,
    **parameters: Any,
) -> JudgeSession:
    """A model for `ContextRecall(llm=...)` from a client that you bring.

    Replies of a client with a `base_url` are kept in `.karat/journal.sqlite`, so that a
    run that was stopped goes on from there. Any other client cannot be told from others
    of its class, and what it says is forgotten with this process; one that is given to
    `karat.extend.ChatClient` with a name is known by that.

    Args:
        model: the model's name, such as `gpt-4o-mini`.
        provider: taken for the sake of old calls; what counts is the client.
        client: any object with `chat.completions.create(model=..., messages=...)`;
            without one, the server that `OPENAI_BASE_URL` and its key name is asked.
        settings: how many calls at once, how long, for how much in all, and where
            replies are kept; unless given, 16 calls at once, or one of a client that
            is not async.
        parameters: sent along with every prompt; nothing is sent that is not named
            here.
    """
    del provider
    if client is None and not parameters:
        return (
            session_of(model) if settings is None else JudgeSession.of(model, settings)
        )
    chat = ChatClient(model, client, parameters)
    return JudgeSession(chat, settings or _usual(chat))


def usual_model() -> Model | None:
    """What the original asks where no model is named, if a key or server for it is."""
    key = os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")
    return _USUAL if key else None


def session_of(llm: Model, run_config: RunConfig | None = None) -> JudgeSession:
    """A model, however it is given, and how it is asked."""
    if isinstance(llm, DryRun):
        raise UsageError("a dry run asks nobody, and here a model is asked")
    if isinstance(llm, JudgeSession):
        session = llm
    else:
        foreign = None if isinstance(llm, str | Client) else _client_of(llm)
        client = foreign or JudgeSession.of(llm).client
        session = JudgeSession(client, _usual(client))
    if run_config is None:
        return session
    settings = run_config.limit(session.settings)
    return JudgeSession(session.client, settings, session.failed, session.prompts)


def _usual(client: Client) -> Settings:
    # Replies that no other process could find again need no file.
    journal = JOURNAL if getattr(client, "persistent", True) else None
    if getattr(client, "is_async", True):
        return Settings(concurrency=_AT_ONCE, journal=journal)
    # What is not async may not bear several calls at once, and cannot be given up.
    return Settings(concurrency=1, journal=journal)
