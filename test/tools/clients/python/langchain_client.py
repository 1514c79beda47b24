"""LangChain's OpenAI LLM: invoke, batch, stream, and generate with log-probabilities."""

import asyncio
import json
import os

from langchain_openai import OpenAI

common = {
    "model": "default",
    "base_url": os.environ["CONTINUO_URL"],
    "api_key": os.environ["CONTINUO_API_KEY"],
    "temperature": 0,
    "max_tokens": 12,
}
llm = OpenAI(**common)
prompts = ["The king", "def f(x):", "Then", "Once upon a time"]
several = OpenAI(**common, n=2, best_of=2).generate(prompts)
print(
    json.dumps(
        {
            "invoke": llm.invoke("Once upon a time"),
            "stopped": llm.invoke("Once upon a time", stop=[" the", "\n"]),
            "batch": llm.batch(prompts),
            "ainvoke": asyncio.run(llm.ainvoke("Once upon a time")),
            "stream": list(llm.stream("Once upon a time")),
            "generations": [[g.text for g in generation] for generation in several.generations],
            "usage": several.llm_output["token_usage"],
            "logprobs": llm.generate(prompts[:1], logprobs=1).generations[0][0].generation_info["logprobs"],
        }
    )
)
