"""LiteLLM's text_completion with an OpenAI-compatible server."""

import json
import os

import litellm

litellm.suppress_debug_info = True
common = {
    "model": "text-completion-openai/default",
    "api_base": os.environ["CONTINUO_URL"],
    "api_key": os.environ["CONTINUO_API_KEY"],
    "prompt": "Once upon a time",
    "max_tokens": 12,
    "temperature": 0,
}


def complete(**fields):
    return litellm.text_completion(**{**common, **fields})


def refused(**fields):
    try:
        complete(**fields)
    except Exception as error:
        return [type(error).__name__, getattr(error, "status_code", None)]
    return []


chunks = list(complete(stream=True, stream_options={"include_usage": True}))
print(
    json.dumps(
        {
            "plain": complete(logprobs=2).model_dump(),
            "batch": [c.text for c in complete(prompt=["The king", "def f(x):"], n=2).choices],
            "byIds": [c.text for c in complete(prompt=[[1, 2, 3], [65, 66]]).choices],
            "streamed": "".join(c.text or "" for chunk in chunks for c in chunk.choices),
            "streamedUsage": chunks[-1].usage.model_dump(),
            "tooLong": refused(prompt=[1] * 3000),
            "noModel": refused(model="text-completion-openai/nope"),
            "noKey": refused(api_key="sk-nobody"),
        }
    )
)
