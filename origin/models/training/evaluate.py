"""Measure an exported model folder: bits per byte on the held-out documents, and sample completions."""

from __future__ import annotations

import argparse
import ast
import json
import math
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from prepare import END, MIDDLE, PREFIX, SUFFIX

SOURCES = ("stories", "python", "library")
BUCKETS = (0, 64, 256, 512, 1024, 2048)


class Exported:
    """The ONNX graph with its cache, one sequence at a time."""

    def __init__(self, folder: Path, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.names = [o.name for o in self.session.get_outputs()]
        self.empty = {
            i.name: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32)
            for i in self.session.get_inputs()
            if i.name.startswith("past_key_values")
        }

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def run(self, ids: list[int], cache: dict[str, np.ndarray], past: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Logits [sequence, vocabulary] and the cache after ``ids``."""
        inputs = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, past + len(ids)), np.int64), **cache}
        values = self.session.run(None, inputs)
        present = {n.replace("present", "past_key_values"): v for n, v in zip(self.names[1:], values[1:])}
        return values[0][0], present

    def bits(self, ids: list[int]) -> np.ndarray:
        """Bits of every token but the first."""
        logits, _ = self.run(ids, self.empty, 0)
        logits = logits[:-1].astype(np.float64)
        top = logits.max(axis=1)
        total = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        return (total - logits[np.arange(len(ids) - 1), ids[1:]]) / math.log(2)

    def complete(self, prompt: str, count: int, temperature: float, seed: int) -> str:
        """Up to ``count`` tokens after the prompt; stops at the end token."""
        rng, ids, end = np.random.default_rng(seed), self.encode(prompt), self.tokenizer.token_to_id(END)
        logits, cache = self.run(ids, self.empty, 0)
        produced: list[int] = []
        while len(produced) < count:
            scores = logits[-1].astype(np.float64)
            if temperature > 0:
                scores = scores / temperature + rng.gumbel(size=scores.shape)
            token = int(scores.argmax())
            if token == end:
                break
            produced.append(token)
            logits, cache = self.run([token], cache, len(ids) + len(produced) - 1)
        return self.tokenizer.decode(produced, skip_special_tokens=False)


def bits_per_byte(model: Exported, documents: list[str], context: int) -> tuple[float, dict[str, float]]:
    """Bits per byte, and mean bits per token by the number of tokens that came before.

    Windows of ``context`` tokens overlap by half, so that a token in a later window sees at least half of it.
    """
    total, size = 0.0, 0
    by_position: dict[int, list[float]] = {b: [0.0, 0] for b in BUCKETS}
    for document in documents:
        ids = model.encode(END + document + END)
        size += len(document.encode())
        scored = 1
        for start in range(0, max(1, len(ids) - context // 2), context // 2):
            window = ids[start : start + context]
            bits = model.bits(window)[scored - start - 1 :]
            total += float(bits.sum())
            for position, value in enumerate(bits, start=scored - start):
                bucket = max(b for b in BUCKETS if b <= position)
                by_position[bucket][0] += float(value)
                by_position[bucket][1] += 1
            scored = start + len(window)
    return total / size, {f"from {b}": round(s / n, 3) for b, (s, n) in by_position.items() if n}


def parses(prompt: str, completion: str) -> bool:
    """Whether the completed function is Python: up to the next unindented line, without a last line cut short."""
    lines = (prompt + completion).split("\n")
    end = next((i for i, line in enumerate(lines) if i > 0 and line and not line[0].isspace()), len(lines) - 1)
    try:
        return bool(ast.parse("\n".join(lines[: max(end, 1)]) + "\n").body)
    except SyntaxError:
        return False


def samples(model: Exported) -> None:
    """Prints completions that show what to expect."""
    fibonacci = "def fibonacci(n):"
    for temperature in (0.0, 0.2):
        text = model.complete(fibonacci, 120, temperature, 1)
        print(f"--- temperature {temperature}, parses: {parses(fibonacci, text)}\n{fibonacci}{text}")
    for prompt in ("Once upon a time", '"My dear Watson,"', "import os\n", "class Stack:\n"):
        print(f"--- temperature 0.7\n{prompt}{model.complete(prompt, 120, 0.7, 1)}")
    for prefix, suffix in (
        ("def add(a, b):\n    return ", "\n\n\nprint(add(1, 2))\n"),
        ("def largest(numbers):\n    result = numbers[0]\n", "    return result\n"),
        ("def is_even(number: int) -> bool:\n    ", "\n\n\nassert is_even(4)\nassert not is_even(3)\n"),
    ):
        text = model.complete(f"{PREFIX}{prefix}{SUFFIX}{suffix}{MIDDLE}", 80, 0.0, 1)
        print(f"--- fill in the middle\n{prefix}⟦{text}⟧{suffix}")


def main() -> None:
    """Command line; see README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="exported folder")
    parser.add_argument("--data", type=Path, help="folder written by prepare.py")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=int, help="held-out documents per source")
    parser.add_argument("--samples", action="store_true")
    arguments = parser.parse_args()

    model = Exported(arguments.model, arguments.threads)
    if arguments.data:
        for source in SOURCES:
            documents = json.loads((arguments.data / f"{source}-held-out.json").read_text())[: arguments.limit]
            value, positions = bits_per_byte(model, documents, arguments.context)
            print(f"{source}: {value:.4f} bits per byte; bits per token by position {positions}", flush=True)
    if arguments.samples:
        samples(model)


if __name__ == "__main__":
    main()
