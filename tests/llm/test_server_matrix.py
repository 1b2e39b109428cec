"""Many servers, each by the errors that it documents: judged, or a sentence to act on.

Whatever a server does, all that it bills is counted, and a limit of cost is passed by
no more than the calls that are under way.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import karat
from karat import KaratError
from karat.extend import Claims, IncompleteError, JudgeSession, Prices, Settings
from karat.llm.openai_client import OpenAIClient
from tests.llm.fault_server import FaultServer

Request = dict[str, Any]
Answer = tuple[Any, ...]
SAMPLES = [
    {
        "id": f"q{number}",
        "query": f"How is bread {number} made?",
        "retrieved_contexts": [f"Bread {number} rises.", "Ovens are hot. " * 400],
        "claims": [f"Bread {number} rises.", "Salt comes last."],
    }
    for number in range(8)
]
AT_ONCE = 4
LARGEST = 3000
"""Tokens that no single call takes."""


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


def sent(request: Request) -> str:
    return "\n".join(str(message["content"]) for message in request["messages"])


def good(request: Request, **changes: Any) -> dict[str, Any]:
    """The right reply: a context supports a claim that says the same."""
    text = sent(request)
    blank = {"parts": [], "complete": False, "against": []}
    claims = re.findall(r"\[begin claim (\d+) \| \w+\]\n(.*?)\n\[end", text)
    contexts = re.findall(r"\[begin context (\d+) \| \w+\]\n(.*?)\n\[end", text)
    verdicts = [
        {
            "claim": int(number),
            "reason": "so it is",
            "alone": [int(rank) for rank, said in contexts if said == claim],
            **blank,
        }
        for number, claim in claims
    ]
    content = json.dumps({"verdicts": verdicts})
    message = {"role": "assistant", "content": changes.pop("content", content)}
    message |= changes.pop("message", {})
    usage = {"prompt_tokens": len(text) // 4, "completion_tokens": len(content) // 4}
    usage |= changes.pop("usage", {})
    end = changes.pop("finish_reason", "stop")
    return {"choices": [{"message": message, "finish_reason": end}], "usage": usage}


def picky(status: int, body: object, *names: str) -> Callable[[Request, int], Answer]:
    """Takes all but these parts of a request, of which one is complained about."""

    def answer(request: Request, _: int) -> Answer:
        roles = {f"role {message['role']}" for message in request["messages"]}
        for name in names:
            if name in request or name in roles:
                told = json.loads(json.dumps(body).replace("NAME", name))
                return status, told
        return 200, good(request)

    return answer


def always(status: int, body: object) -> Callable[[Request, int], Answer]:
    return lambda *_: (status, body)


def busy(
    status: int, body: object, extra: str = ""
) -> Callable[[Request, int], Answer]:
    """Fails every second call."""

    def answer(request: Request, number: int) -> Answer:
        return (status, body, extra) if number % 2 else (200, good(request))

    return answer


def one_prompt(status: int, body: object) -> Callable[[Request, int], Answer]:
    """Refuses one of the prompts, and not the first."""

    def answer(request: Request, _: int) -> Answer:
        return (status, body) if "bread 5" in sent(request) else (200, good(request))

    return answer


def replying(**changes: Any) -> Callable[[Request, int], Answer]:
    return lambda request, _: (200, good(request, **changes))


def thinking(request: Request, _: int) -> Answer:
    content = good(request)["choices"][0]["message"]["content"]
    return 200, good(request, content=f"<think>Hm, {{1}}?</think>\n{content}")


def streaming(request: Request, _: int) -> Answer:
    if not request.get("stream"):
        words = (
            "This model only support stream mode, please enable the stream parameter"
        )
        return 400, error(f"{words} to access the model.")
    whole = good(request)
    content = whole["choices"][0]["message"]["content"]
    parts: list[dict[str, Any]] = [
        {"choices": [{"delta": {"content": part}}]} for part in content
    ]
    parts.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    parts.append({"choices": [], "usage": whole["usage"]})
    return 200, "".join(f"data: {json.dumps(part)}\n\n" for part in parts)


def reserving(request: Request, _: int) -> Answer:
    """Counts the room for the longest reply, as vLLM does."""
    if "max_tokens" in request:
        words = "This model's maximum context length is 4096 tokens. However, you"
        return 400, error(f"{words} requested 5000 tokens", type="BadRequestError")
    return 200, good(request)


class Server(NamedTuple):
    """What a server does, and what becomes of a run with it.

    Attributes:
        answer: status and body for a request, given how many there were.
        ends: "judged", "one fails: PATTERN" where one row does, else a pattern of the
            sentence that the run, or every row of it, ends with.
    """

    answer: Callable[[Request, int], Answer]
    ends: str = "judged"


FORBIDDEN = {"type": "extra_forbidden", "loc": ["body", "NAME"], "input": 0}
SERVERS: Mapping[str, Server] = {
    "OpenAI": Server(replying()),
    "OpenAI, a reasoning model": Server(
        picky(
            400,
            error(
                "Unsupported parameter: 'NAME' is not supported with this model.",
                type="invalid_request_error",
                param="NAME",
                code="unsupported_parameter",
            ),
            *("max_tokens", "temperature"),
        )
    ),
    "OpenAI, too many requests": Server(
        busy(
            429,
            error(
                "Rate limit reached for m", type="tokens", code="rate_limit_exceeded"
            ),
            "retry-after-ms: 5\r\n",
        )
    ),
    "OpenAI, no credit": Server(
        always(429, error("You exceeded your quota", code="insufficient_quota")),
        "has no credit left",
    ),
    "OpenAI, a wrong key": Server(
        always(401, error("Incorrect API key provided", code="invalid_api_key")),
        "refuses the key.*check OPENAI_API_KEY",
    ),
    "OpenAI, all replies cut off": Server(
        replying(content="", finish_reason="length"),
        "cut off.*--max-tokens",
    ),
    "OpenAI, a refusal": Server(
        replying(content=None, message={"refusal": "I cannot help with that."}),
        "I cannot help with that",
    ),
    "Azure, content filter": Server(
        one_prompt(
            400,
            error(
                "The response was filtered due to the prompt triggering Azure OpenAI's "
                "content management policy.",
                param="prompt",
                code="content_filter",
            ),
        ),
        "one fails: content management policy",
    ),
    "Azure, no deployment": Server(
        always(
            404,
            error("The API deployment does not exist.", code="DeploymentNotFound"),
        ),
        "does not know model 'm'; check its name",
    ),
    "Mistral": Server(
        picky(
            422,
            {
                "object": "error",
                "message": {"detail": [FORBIDDEN]},
                "type": "invalid_request_error",
            },
            "seed",
        )
    ),
    "Gemini": Server(
        picky(
            400,
            [error('Invalid JSON payload received. Unknown name "NAME"', code=400)],
            "seed",
        )
    ),
    "Gemini, exhausted": Server(
        busy(429, [error("Resource has been exhausted", status="RESOURCE_EXHAUSTED")])
    ),
    "Anthropic, overloaded": Server(
        busy(529, {"type": "error", **error("Overloaded", type="overloaded_error")})
    ),
    "Groq": Server(
        picky(
            400,
            error("This model does not support response format `json_schema`"),
            "response_format",
        )
    ),
    "Groq, JSON that could not be generated": Server(
        busy(
            400,
            error(
                "Failed to generate JSON. Please adjust your prompt. See "
                "'failed_generation' for more details.",
                type="invalid_request_error",
                code="json_validate_failed",
            ),
        )
    ),
    "vLLM with Gemma": Server(
        picky(400, {"message": "System role not supported", "code": 400}, "role system")
    ),
    "vLLM, room for the reply": Server(reserving),
    "llama.cpp, loading": Server(
        busy(503, error("Loading model", type="unavailable_error", code=503))
    ),
    "llama.cpp, a small context": Server(
        always(
            400,
            error(
                "the request exceeds the available context size, try increasing it",
                type="exceed_context_size_error",
            ),
        ),
        "too long for model 'm'; shorten the documents",
    ),
    "Ollama, no such model": Server(
        always(404, error("model 'm' not found", type="not_found_error")),
        "does not know model 'm'; check its name",
    ),
    "Ollama, a prompt cut short": Server(
        replying(usage={"prompt_tokens": 600}), "num_ctx"
    ),
    "LM Studio, nothing loaded": Server(
        always(
            404, error("No models loaded. Please load a model in the developer page")
        ),
        "does not know model 'm'.*Please load a model",
    ),
    "OpenRouter, no credit": Server(
        always(402, error("Insufficient credits", code=402)), "has no credit left"
    ),
    "OpenRouter, a provider that fails": Server(
        busy(200, error("Provider returned error", code=502))
    ),
    "OpenRouter, moderation": Server(
        one_prompt(403, error("Your chosen model requires moderation: flagged")),
        "one fails: requires moderation",
    ),
    "DeepSeek": Server(
        picky(
            400,
            error("This response_format type is unavailable now"),
            "response_format",
        )
    ),
    "DeepSeek, an answer among the thoughts": Server(thinking),
    "DashScope, streams only": Server(streaming),
    "TGI": Server(
        picky(
            422,
            {
                "error": "Input validation error: `inputs` tokens + `max_new_tokens` "
                "must be <= 4096",
                "error_type": "validation",
            },
            "max_tokens",
        )
    ),
    "a gateway, gone for a while": Server(busy(502, "<html>Bad Gateway</html>")),
    "a page in place of a server": Server(
        always(200, "<html>Sign in</html>"),
        "nothing takes prompts.*check --base-url, which usually ends in /v1",
    ),
}


class Till:
    """Answers as a server does, and adds up what it bills: all tokens that it tells."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._number = 0
        self.tokens = 0

    def __call__(self, request: Request) -> Answer:
        self._number += 1
        answer = self._server.answer(request, self._number)
        usage = re.findall(r'"(?:prompt|completion)_tokens": (\d+)', json.dumps(answer))
        usage += re.findall(
            r'"(?:prompt|completion)_tokens\\": (\d+)', json.dumps(answer)
        )
        self.tokens += sum(map(int, usage)) if answer[0] == 200 else 0
        return answer


def judge(
    server: Server, folder: Path, max_cost: float | None = None
) -> tuple[Till, JudgeSession, Any]:
    """Judge all samples; the outcome is a result, or the error the run ended with."""
    till = Till(server)
    settings = Settings(
        journal=folder / f"{max_cost}.sqlite",
        concurrency=AT_ONCE,
        prices=Prices(1, 1),
        max_cost=max_cost,
        first_wait=0.001,
        longest_wait=0.01,
        max_attempts=8,
    )
    with FaultServer(answer=till) as loopback:
        session = JudgeSession(OpenAIClient("m", loopback.url), settings)
        judged = Claims(session)
        try:
            outcome: Any = karat.evaluate(
                SAMPLES, metrics="context_recall", judge=judged
            )
        except KaratError as stopped:
            outcome = stopped
    return till, session, outcome


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KARAT_ALLOWED_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_ends_judged_or_with_a_cure_and_all_it_bills_is_counted(
    name: str, tmp_path: Path
) -> None:
    server = SERVERS[name]
    till, session, outcome = judge(server, tmp_path)
    budget = session.settings.budget
    assert budget is not None
    assert budget.prompt_tokens + budget.completion_tokens == till.tokens
    if isinstance(outcome, KaratError):
        assert re.search(server.ends, str(outcome)), str(outcome)
        return
    column = outcome["context_recall"]
    reasons = " ".join(column.failures.values())
    if server.ends == "judged":
        assert (column.n, column.mean, reasons) == (len(SAMPLES), 0.5, "")
    elif server.ends.startswith("one fails: "):
        assert (column.n, column.failed) == (len(SAMPLES) - 1, 1)
        assert re.search(server.ends.removeprefix("one fails: "), reasons), reasons
    else:
        assert column.n == 0
        assert re.search(server.ends, reasons), reasons


@pytest.mark.parametrize("name", SERVERS)
def test_no_server_makes_a_run_pass_its_limit_of_cost(
    name: str, tmp_path: Path
) -> None:
    whole, _, _ = judge(SERVERS[name], tmp_path)
    limit = whole.tokens / 2e6 or 1e-6
    till, _, outcome = judge(SERVERS[name], tmp_path, limit)
    most = max(LARGEST, whole.tokens / len(SAMPLES)) / 1e6
    assert till.tokens / 1e6 <= limit + AT_ONCE * most
    if whole.tokens and SERVERS[name].ends == "judged":
        assert isinstance(outcome, IncompleteError), outcome


def test_there_are_twenty_servers_and_more() -> None:
    assert len(SERVERS) >= 20
