"""The documented errors of servers, each of which ends in a sentence with the cure."""

import pytest

from karat.errors import Refused, Transient
from karat.extend import CallError
from karat.llm.openai_client import OpenAIClient
from tests.llm.fault_server import FaultServer
from tests.llm.test_openai_client import ask


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KARAT_ALLOWED_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)


LONG = "too long for model 'm'; shorten the documents"
UNKNOWN = "does not know model 'm'; check its name"
ENDINGS: dict[str, tuple[int, object, type[CallError], str]] = {
    "OpenAI without credit": (
        429,
        {
            "error": {
                "message": "You exceeded your current quota",
                "param": None,
                "type": "insufficient_quota",
                "code": "insufficient_quota",
            }
        },
        Refused,
        "has no credit left",
    ),
    "Azure without the deployment": (
        404,
        {
            "error": {
                "code": "DeploymentNotFound",
                "message": "The API deployment for this resource does not exist.",
            }
        },
        Refused,
        UNKNOWN,
    ),
    "Azure with a filter": (
        400,
        {
            "error": {
                "message": "The response was filtered due to the prompt triggering "
                "Azure OpenAI's content management policy.",
                "param": "prompt",
                "code": "content_filter",
                "status": 400,
            }
        },
        Refused,
        "refused the prompt .400 Bad Request.: The response was filtered",
    ),
    "Mistral, too long": (
        400,
        {
            "object": "error",
            "message": "Prompt contains 40000 tokens and 0 draft tokens, "
            "too large for model with 32768 maximum context length",
            "code": "3051",
        },
        Refused,
        LONG,
    ),
    "Gemini, too long": (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "status": "INVALID_ARGUMENT",
                    "message": "The input token count (1200000) exceeds the "
                    "maximum number of tokens allowed (1048576).",
                }
            }
        ],
        Refused,
        LONG,
    ),
    "Anthropic, too long": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 210000 tokens > 200000 maximum",
            },
        },
        Refused,
        LONG,
    ),
    "Anthropic, overloaded": (
        529,
        {
            "type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded"},
        },
        Transient,
        "529 Overloaded",
    ),
    "TGI, too long": (
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must "
            "be <= 4096. Given: 9000",
            "error_type": "validation",
        },
        Refused,
        LONG,
    ),
    "llama.cpp, too long": (
        400,
        {
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "message": "request (9000 tokens) exceeds the available context "
                "size (4096 tokens)",
            }
        },
        Refused,
        LONG,
    ),
    "vLLM, too long": (
        400,
        {
            "object": "error",
            "type": "BadRequestError",
            "code": 400,
            "message": "This model's maximum context length is 4096 tokens. However, "
            "you requested 9000 tokens",
        },
        Refused,
        LONG,
    ),
    "Ollama without the model": (
        404,
        {"error": {"message": 'model "m" not found, try pulling it first'}},
        Refused,
        f"{UNKNOWN}: .*try pulling it first",
    ),
    "LM Studio without a model": (
        404,
        {"error": "No models loaded. Please load a model in the developer page."},
        Refused,
        "Please load a model",
    ),
    "OpenRouter without credit": (
        200,
        {"error": {"code": 402, "message": "Insufficient credits"}},
        Refused,
        "has no credit left",
    ),
    "OpenRouter, moderated": (
        403,
        {
            "error": {
                "code": 403,
                "message": "The input was flagged",
                "metadata": {"reasons": ["violence"]},
            }
        },
        Refused,
        "refused the prompt .403 Forbidden.: The input was flagged",
    ),
    "DeepSeek without credit": (
        402,
        {"error": {"message": "Insufficient Balance", "type": "unknown_error"}},
        Refused,
        "has no credit left",
    ),
    "Groq, busy": (
        429,
        {
            "error": {
                "message": "Rate limit reached; see /settings/billing",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
        Transient,
        "429 Too Many Requests: Rate limit reached",
    ),
    "Cohere with a wrong key": (
        401,
        {"id": "1", "message": "invalid api token"},
        Refused,
        "refuses the key .401 Unauthorized.; check OPENAI_API_KEY",
    ),
    "a proxy between": (
        502,
        "<html><head><title>502 Bad Gateway</title></head></html>",
        Transient,
        "answered 502 Bad Gateway$",
    ),
}


@pytest.mark.parametrize("server_name", ENDINGS)
def test_an_error_ends_in_a_sentence_that_names_the_cure(server_name: str) -> None:
    status, body, kind, sentence = ENDINGS[server_name]
    with (
        FaultServer(answer=lambda _: (status, body)) as server,
        pytest.raises(kind, match=sentence),
    ):
        ask(OpenAIClient("m", server.url))
