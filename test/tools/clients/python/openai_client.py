"""The openai package: plain, streamed, scored, by token ids, concurrently, refused and broken off."""

import asyncio
import json
import os
import time

import openai

options = {"base_url": os.environ["CONTINUO_URL"], "api_key": os.environ["CONTINUO_API_KEY"], "max_retries": 0}
client = openai.OpenAI(**options)
greedy = {"model": "default", "prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}


def outcome(call):
    try:
        call()
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.code, error.param]
    except openai.APIError as error:
        return [type(error).__name__]
    return []


def streamed():
    chunks = list(client.completions.create(**greedy, stream=True, stream_options={"include_usage": True}))
    text = "".join(choice.text for chunk in chunks for choice in chunk.choices)
    reasons = [c.finish_reason for chunk in chunks for c in chunk.choices if c.finish_reason]
    return {"text": text, "reasons": reasons, "usage": chunks[-1].usage.model_dump()}


def broken_off():
    pieces = []
    with client.completions.create(**{**greedy, "max_tokens": 2000}, stream=True) as stream:
        for chunk in stream:
            pieces.append(chunk.choices[0].text)
            if len(pieces) == 3:
                break
    return len(pieces)


async def concurrently(prompts):
    async with openai.AsyncOpenAI(**options) as parallel:
        calls = [parallel.completions.create(**{**greedy, "prompt": prompt}) for prompt in prompts]
        return [answer.choices[0].text for answer in await asyncio.gather(*calls)]


def batch():
    line = {"custom_id": "one", "method": "POST", "url": "/v1/completions", "body": greedy}
    file = client.files.create(file=("input.jsonl", json.dumps(line).encode()), purpose="batch")
    job = client.batches.create(input_file_id=file.id, endpoint="/v1/completions", completion_window="24h")
    while job.status not in ("completed", "failed"):
        time.sleep(0.2)
        job = client.batches.retrieve(job.id)
    answer = json.loads(client.files.content(job.output_file_id).text)
    listed = [one.id for one in client.batches.list(limit=1)]
    return {"text": answer["response"]["body"]["choices"][0]["text"], "listed": job.id in listed}


raw = client.completions.with_raw_response.create(**greedy)
strangers = {**options, "api_key": "sk-nobody"}
print(
    json.dumps(
        {
            "plain": raw.parse().model_dump(),
            "requestId": raw.headers["x-request-id"],
            "streamed": streamed(),
            "scored": client.completions.create(**greedy, echo=True, logprobs=2).choices[0].model_dump(),
            "byIds": client.completions.create(**{**greedy, "prompt": [[1, 2, 3], [65, 66]]}).model_dump(),
            "concurrent": asyncio.run(concurrently(["The king", "def f(x):", "Then"])),
            "models": [model.id for model in client.models.list()],
            "batch": batch(),
            "brokenOff": broken_off(),
            "refused": {
                "n": outcome(lambda: client.completions.create(**greedy, n=0)),
                "model": outcome(lambda: client.completions.create(**{**greedy, "model": "nope"})),
                "key": outcome(lambda: openai.OpenAI(**strangers).models.list()),
                "timeout": outcome(lambda: client.completions.create(**{**greedy, "max_tokens": 600}, timeout=0.05)),
            },
        }
    )
)
