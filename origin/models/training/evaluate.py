"""Measure an exported model folder on the held-out documents, and print completions of ten fixed prompts."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from exported import Exported, Sampling
from measures import STORY_SAMPLING, bits_per_byte, infill_share, invented_share, loops, story_prompts
from prepare import MIDDLE, PREFIX, SUFFIX

SOURCES = ("stories", "python", "library")

STORIES = (
    "Once upon a time there was a king who had three daughters.",
    "The old woman opened the door and said,",
    '"My dear Watson," said Holmes,',
    "The children ran down to the river, and there they saw",
    "In the middle of the forest stood a little house.",
    "Alice looked at the rabbit and",
)
PYTHON = (
    "def fibonacci(n):\n",
    "class Stack:\n    def __init__(self):\n",
    "def binary_search(items, target):\n",
)
INFILL = ("def is_even(number: int) -> bool:\n    ", "\n\n\nassert is_even(4)\nassert not is_even(3)\n")


def ten_prompts(model: Exported) -> dict[str, str]:
    """Prompt to completion: stories as recommended, Python at temperature 0.2, the gap greedily."""
    before, after = INFILL
    found = {prompt: model.complete(prompt, 80, STORY_SAMPLING) for prompt in STORIES}
    found |= {prompt: model.complete(prompt, 80, Sampling(temperature=0.2)) for prompt in PYTHON}
    found[f"{before}⟦…⟧{after}"] = model.complete(f"{PREFIX}{SUFFIX}{after}{MIDDLE}{before}", 80, Sampling())
    return {prompt: model.decode(ids) for prompt, ids in found.items()}


def story_measures(model: Exported, documents: list[str], dictionary: set[str], rounds: int) -> dict[str, float]:
    """Loops and invented words of 100 continuations of 120 tokens, the mean of ``rounds`` seeds."""
    texts, looping, greedy = [], 0, 0
    for index, prompt in enumerate(story_prompts(documents, 100)):
        for seed in range(rounds):
            sampling = dataclasses.replace(STORY_SAMPLING, seed=1000 * seed + index)
            ids = model.complete(prompt, 120, sampling)
            looping += loops(ids)
            texts.append(model.decode(ids))
        greedy += loops(model.complete(prompt, 120, Sampling()))
    return {
        "loops_per_100": looping / rounds,
        "greedy_loops_per_100": greedy,
        "invented_words": round(invented_share(texts, dictionary), 5),
        "words_not_in_dictionary_in_the_documents": round(invented_share(documents, dictionary), 5),
    }


def main() -> None:
    """Command line; see README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="exported folder")
    parser.add_argument("--data", type=Path, required=True, help="folder written by prepare.py")
    parser.add_argument("--dictionary", type=Path, nargs="+", default=[Path("/usr/share/dict/words")])
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="continuations per story prompt")
    arguments = parser.parse_args()

    model = Exported(arguments.model, arguments.threads)
    dictionary = {word.lower() for path in arguments.dictionary for word in path.read_text().split()}
    held_out = {s: json.loads((arguments.data / f"{s}-held-out.json").read_text()) for s in SOURCES}
    result: dict[str, object] = {
        f"{source}_bits_per_byte": round(bits_per_byte(model, documents, arguments.context), 4)
        for source, documents in held_out.items()
    }
    result["infill_exact"] = infill_share(model, held_out["python"], 200)
    result |= story_measures(model, held_out["stories"], dictionary, arguments.rounds)
    result["completions"] = ten_prompts(model)
    print(json.dumps(result, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
