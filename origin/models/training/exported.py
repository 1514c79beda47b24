"""Runs an exported model folder: logits with a cache, bits per token, completions."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from prepare import END

# Inputs in the words of the origin: the last position of each row, the length of the longest, and the positions whose
# logits are wanted.
LAST_POSITIONS = "continuo/seqlens_k"
TOTAL_LENGTH = "continuo/total_sequence_length"
LOGITS_INDEX = "logits_index"


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Parameters of a completion; the penalty divides or multiplies the logits of the last 64 generated tokens."""

    temperature: float = 0.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 1


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

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=False)

    def run(self, ids: list[int], cache: dict[str, np.ndarray], past: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Logits [sequence, vocabulary] and the cache after ``ids``."""
        total = past + len(ids)
        inputs = {
            "input_ids": np.array([ids]),
            LAST_POSITIONS: np.array([total - 1], np.int32),
            TOTAL_LENGTH: np.array(total, np.int32),
            LOGITS_INDEX: np.arange(len(ids)),
            **cache,
        }
        values = self.session.run(None, inputs)
        present = {n.replace("present", "past_key_values"): v for n, v in zip(self.names[1:], values[1:])}
        return values[0], present

    def bits(self, ids: list[int]) -> np.ndarray:
        """Bits of every token but the first."""
        logits, _ = self.run(ids, self.empty, 0)
        logits = logits[:-1].astype(np.float64)
        top = logits.max(axis=1)
        total = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        return (total - logits[np.arange(len(ids) - 1), ids[1:]]) / math.log(2)

    def complete(self, prompt: str, count: int, sampling: Sampling, stop: str | None = None) -> list[int]:
        """Up to ``count`` token ids after the prompt, up to the end token or the token that contains ``stop``."""
        rng, ids, end = np.random.default_rng(sampling.seed), self.encode(prompt), self.tokenizer.token_to_id(END)
        logits, cache = self.run(ids, self.empty, 0)
        produced: list[int] = []
        while len(produced) < count:
            scores = logits[-1].astype(np.float64)
            recent = list(set(produced[-64:]))
            penalty = sampling.repetition_penalty
            scores[recent] = np.where(scores[recent] > 0, scores[recent] / penalty, scores[recent] * penalty)
            if sampling.temperature > 0:
                scores /= sampling.temperature
                if sampling.min_p > 0:
                    scores[scores < scores.max() + math.log(sampling.min_p)] = -np.inf
                scores += rng.gumbel(size=scores.shape)
            token = int(scores.argmax())
            if token == end:
                break
            produced.append(token)
            if stop is not None and stop in self.decode([token]):
                break
            logits, cache = self.run([token], cache, len(ids) + len(produced) - 1)
        return produced
