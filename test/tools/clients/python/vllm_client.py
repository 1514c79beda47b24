"""vLLM's own response classes and its benchmark's client, from the installed package.

Their modules need neither torch nor a GPU, but modules that they import for requests do. Placeholders stand for those.
"""

import asyncio
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
import urllib.error
import urllib.request

from pydantic_core import core_schema

URL = os.environ["CONTINUO_URL"]
HEADERS = {"authorization": f"Bearer {os.environ['CONTINUO_API_KEY']}", "x-dialect": "vllm"}
PROMPT = os.environ["TEST_PROMPT"]
FIELDS = {"model": "default", "prompt": PROMPT, "max_tokens": 12, "temperature": 0}

PLACEHOLDERS = ("torch", "vllm.config", "vllm.outputs", "vllm.renderers", "vllm.sampling_params")


class AnyValue(type):
    """A class that pydantic takes for any value. Every name in it is such a class, too."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        schema = classmethod(lambda *_: core_schema.any_schema())
        return AnyValue(name, (), {"__get_pydantic_core_schema__": schema})


class Placeholder(types.ModuleType):
    __path__ = ()

    def __getattr__(self, name):
        return AnyValue.__getattr__(AnyValue, name)


class PlaceholderFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if any(fullname == name or fullname.startswith(f"{name}.") for name in PLACEHOLDERS):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return Placeholder(spec.name)

    def exec_module(self, module):
        pass


# The package's own __init__ would change torch.
package = types.ModuleType("vllm")
package.__path__ = importlib.util.find_spec("vllm").submodule_search_locations
sys.modules["vllm"] = package
sys.meta_path.insert(0, PlaceholderFinder())

import aiohttp  # noqa: E402
from vllm.benchmarks.lib.endpoint_request_func import (  # noqa: E402
    RequestFuncInput,
    async_request_openai_completions,
)
from vllm.entrypoints.openai.completion.protocol import (  # noqa: E402
    CompletionResponse,
    CompletionStreamResponse,
)
from vllm.entrypoints.serve.engine.protocol import ErrorResponse, ModelList  # noqa: E402
from vllm.entrypoints.serve.tokenize.protocol import DetokenizeResponse, TokenizeResponse  # noqa: E402


def send(path, body=None):
    headers = {**HEADERS, **({} if body is None else {"content-type": "application/json"})}
    data = None if body is None else json.dumps(body).encode()
    base = URL if path.startswith("/models") or path.startswith("/completions") else URL.removesuffix("/v1")
    try:
        with urllib.request.urlopen(urllib.request.Request(base + path, data, headers)) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


def complete(**fields):
    return CompletionResponse.model_validate_json(send("/completions", {**FIELDS, **fields}))


def prompt_logprobs(count):
    """The entries of each position in their order."""
    [choice] = complete(max_tokens=1, prompt_logprobs=count).choices
    return [
        position and [[token, entry.logprob, entry.rank, entry.decoded_token] for token, entry in position.items()]
        for position in choice.prompt_logprobs
    ]


def stream(**fields):
    body = {**FIELDS, **fields, "stream": True, "stream_options": {"include_usage": True}}
    events = send("/completions", body).split("\n\n")
    data = [event.removeprefix("data: ") for event in events if event.startswith("data: {")]
    return [CompletionStreamResponse.model_validate_json(chunk) for chunk in data]


async def benchmark():
    request = RequestFuncInput(
        prompt=PROMPT,
        api_url=f"{URL}/completions",
        prompt_len=0,
        output_len=FIELDS["max_tokens"],
        model="default",
        logprobs=1,
        extra_headers=HEADERS,
        extra_body={"temperature": 0},
    )
    async with aiohttp.ClientSession() as session:
        output = await async_request_openai_completions(request, session)
    return {
        "success": output.success,
        "error": output.error,
        "text": output.generated_text,
        "promptTokens": output.prompt_len,
        "completionTokens": output.output_tokens,
    }


def unknown(model):
    """Names of the fields that a parsed answer has and its class lacks."""
    names = list(model.model_extra or {})
    for value in model.__dict__.values():
        for item in value if isinstance(value, list) else [value]:
            names += unknown(item) if hasattr(item, "model_extra") else []
    return names


plain = complete(logprobs=3)
chunks = stream(logprobs=3)
tokenized = TokenizeResponse.model_validate_json(send("/tokenize", {"prompt": PROMPT, "return_token_strs": True}))
detokenized = DetokenizeResponse.model_validate_json(send("/detokenize", {"tokens": tokenized.tokens}))
models = ModelList.model_validate_json(send("/models"))
error = ErrorResponse.model_validate_json(send("/completions", {**FIELDS, "temperature": -1}))
print(
    json.dumps(
        {
            "plain": plain.model_dump(),
            "echoed": complete(echo=True, logprobs=3).model_dump(),
            "promptLogprobs": {str(count): prompt_logprobs(count) for count in (0, 1, 5, 20)},
            "streamed": [choice.model_dump() for chunk in chunks for choice in chunk.choices],
            "streamedUsage": [chunk.usage and chunk.usage.model_dump() for chunk in chunks][-1],
            "benchmark": asyncio.run(benchmark()),
            "tokenized": tokenized.model_dump(),
            "detokenized": detokenized.prompt,
            "models": {card.id: card.max_model_len for card in models.data},
            "error": error.error.model_dump(),
            "unknown": sorted({name for model in [plain, tokenized, detokenized, error] for name in unknown(model)}),
        }
    )
)
