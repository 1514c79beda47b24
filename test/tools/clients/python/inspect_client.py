"""inspect-ai's reader of vLLM's prompt_logprobs, through its provider for /v1/completions."""

import asyncio
import json
import os

from inspect_ai.model import GenerateConfig, get_model

model = get_model(
    "openai-api-completions/continuo/default",
    base_url=os.environ["CONTINUO_URL"],
    api_key=os.environ["CONTINUO_API_KEY"],
)


async def score(prompt, count):
    config = GenerateConfig(max_tokens=1, prompt_logprobs=count)
    output = await model.generate(prompt, config=config)
    return [[entry.token, entry.logprob] for entry in output.choices[0].prompt_logprobs.content]


async def main():
    prompt = os.environ["TEST_PROMPT"]
    print(json.dumps({str(count): await score(prompt, count) for count in (1, 5, 20)}))


asyncio.run(main())
