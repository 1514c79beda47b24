"""Train the decoder on the streams that prepare.py wrote; resumes from its last checkpoint.

Muon for the matrices, Adam for embeddings, head and norms. The learning rate warms up, stays, and falls
linearly to zero. While it falls, some steps use sequences of the full context, so that all of it works.
SIGTERM saves and stops.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model import Decoder, Shape
from muon import Muon

# Share of every batch that each source gets.
MIXTURE = {"stories": 0.27, "python": 0.25, "library": 0.08, "infill": 0.40}

# Separates documents; the first special token that prepare.py defines.
END_TOKEN = 0


def chunks(folder: Path, source: str, length: int, seed: int, start: int) -> Iterator[np.ndarray]:
    """Sequences of length + 1 tokens in random order, nearly every token of a pass once; ``start`` are skipped.

    Where one half of them contains the beginning of a document, it starts there, as prompts do.
    """
    streams = [np.load(path) for path in sorted(folder.glob(f"{source}-*.npy"))]
    index = 0
    while True:
        stream = streams[index % len(streams)]
        rng = np.random.default_rng((seed, index))
        index += 1
        offset = int(rng.integers(length))
        count = (len(stream) - 1 - offset) // length
        if start >= count:
            start -= count
            continue
        for number in rng.permutation(count)[start:]:
            begin = offset + int(number) * length
            if number % 2:
                ends = np.flatnonzero(stream[begin : begin + length // 2] == END_TOKEN)
                begin = min(begin + int(ends[0]) + 1, len(stream) - length - 1) if len(ends) else begin
            yield stream[begin : begin + length + 1].astype(np.int64)
        start = 0


class Batches:
    """Draws batches of the mixture; ``drawn`` makes it resumable."""

    def __init__(self, folder: Path, length: int, seed: int, drawn: dict[str, int] | None = None) -> None:
        self.length, self.seed = length, seed
        # Another mixture counts from the beginning: what a new source has not given yet is no debt.
        self.drawn = dict(drawn) if drawn and drawn.keys() == MIXTURE.keys() else dict.fromkeys(MIXTURE, 0)
        self.sources = {name: chunks(folder, name, length, seed, self.drawn[name]) for name in MIXTURE}

    def next(self, rows: int) -> Tensor:
        """Token ids, int64 [rows, length + 1]."""
        picked = []
        for _ in range(rows):
            # The source that lags furthest behind its share: exact proportions without randomness.
            total = sum(self.drawn.values()) + 1
            name = min(MIXTURE, key=lambda n: self.drawn[n] - MIXTURE[n] * total)
            self.drawn[name] += 1
            picked.append(next(self.sources[name]))
        return torch.from_numpy(np.stack(picked))


def learning_rate(step: int, steps: int, warm_up: int, decay: float) -> float:
    """Factor in [0, 1]: warm-up, plateau, linear decay over the last ``decay`` of all steps."""
    return min(1.0, (step + 1) / warm_up, (steps - step) / (decay * steps))


def sequence_length(step: int, arguments: argparse.Namespace, context: int) -> int:
    """Tokens in the sequences of a step."""
    decaying = step >= (1 - arguments.decay) * arguments.steps
    return context if decaying and step % arguments.long_every == 0 else arguments.length


def optimizers(model: Decoder, arguments: argparse.Namespace) -> list[torch.optim.Optimizer]:
    """Muon for everything inside the blocks that is a matrix, Adam for the rest."""
    matrices = [p for b in model.blocks for p in b.parameters() if p.ndim == 2]
    norms = [p for p in model.parameters() if p.ndim == 1]
    scale = (model.shape.width / 768) ** -0.5
    groups = [
        {"params": [model.embedding.weight], "lr": 0.2 * scale},
        {"params": [model.lm_head.weight], "lr": 0.004 * scale},
        {"params": norms, "lr": 0.01},
    ]
    adam = torch.optim.AdamW(groups, betas=(0.8, 0.95), eps=1e-10, weight_decay=0.0, fused=True)
    muon = Muon(matrices, lr=arguments.matrix_lr, weight_decay=arguments.weight_decay)
    for group in adam.param_groups + muon.param_groups:
        group["peak"] = group["lr"]
    return [adam, muon]


def main() -> None:
    """Command line; see README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint and the log")
    parser.add_argument("--steps", type=int, default=3000, help="may be changed when resuming")
    parser.add_argument("--length", type=int, default=256, help="tokens in a sequence; may be changed when resuming")
    parser.add_argument("--long-every", type=int, default=6, help="one of so many steps of the decay is at full context")
    parser.add_argument("--batch-tokens", type=int, default=8192)
    parser.add_argument("--micro-tokens", type=int, default=4096, help="tokens in one forward pass")
    parser.add_argument("--matrix-lr", type=float, default=0.02)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--warm-up", type=int, default=100)
    parser.add_argument("--decay", type=float, default=0.3)
    parser.add_argument("--layers", type=int, default=Shape.layers)
    parser.add_argument("--width", type=int, default=Shape.width)
    parser.add_argument("--save-minutes", type=float, default=2.0)
    parser.add_argument("--no-compile", action="store_true")
    arguments = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "train.pid").write_text(f"{os.getpid()}\n")
    shape = Shape(layers=arguments.layers, width=arguments.width)
    model = Decoder(shape).to(device)
    optimizer_list = optimizers(model, arguments)

    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast(device, torch.bfloat16):
            logits = model(inputs)
        return F.cross_entropy(logits.float().view(-1, shape.vocabulary), targets.reshape(-1))

    loss_function = loss_of if arguments.no_compile else torch.compile(loss_of, dynamic=False)
    checkpoint = arguments.out / "checkpoint.pt"
    step, tokens, drawn = 0, 0, {}
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=device)
        model.load_state_dict(state["model"])
        for optimizer, saved in zip(optimizer_list, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        step, tokens, drawn = state["step"], state["tokens"], state["drawn"]

    def save() -> None:
        state = {
            "shape": dataclasses.asdict(shape),
            "model": model.state_dict(),
            "optimizers": [o.state_dict() for o in optimizer_list],
            "step": step,
            "tokens": tokens,
            "drawn": drawn,
        }
        torch.save(state, checkpoint.with_suffix(".new"))
        checkpoint.with_suffix(".new").replace(checkpoint)

    batches: dict[int, Batches] = {}
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    saved_at, reported_at, losses, reported_tokens = time.monotonic(), time.monotonic(), [], tokens
    while step < arguments.steps and not stopping:
        length = sequence_length(step, arguments, shape.context)
        if length not in batches:
            batches[length] = Batches(arguments.data, length, seed=length, drawn=drawn.get(str(length)))
        factor = learning_rate(step, arguments.steps, arguments.warm_up, arguments.decay)
        for optimizer in optimizer_list:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * factor
        rows = max(1, arguments.micro_tokens // length)
        parts = max(1, arguments.batch_tokens // (rows * length))
        total = torch.zeros((), device=device)
        for _ in range(parts):
            ids = batches[length].next(rows).to(device)
            loss = loss_function(ids[:, :-1].contiguous(), ids[:, 1:].contiguous()) / parts
            loss.backward()
            total += loss.detach()
        for optimizer in optimizer_list:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        tokens += rows * parts * length
        drawn[str(length)] = dict(batches[length].drawn)
        losses.append(float(total))
        if not math.isfinite(losses[-1]):
            raise SystemExit(f"the loss is {losses[-1]} at step {step}")
        now = time.monotonic()
        if step % 20 == 0:
            line = {
                "step": step,
                "loss": round(sum(losses) / len(losses), 4),
                "lr": round(factor, 4),
                "tokens": tokens,
                "tokens_s": round((tokens - reported_tokens) / (now - reported_at)),
            }
            with (arguments.out / "log.jsonl").open("a") as log:
                log.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)
            reported_at, losses, reported_tokens = now, [], tokens
        if now - saved_at > arguments.save_minutes * 60:
            save()
            saved_at = now
    save()


if __name__ == "__main__":
    main()
