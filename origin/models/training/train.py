"""Train the decoder on the streams that prepare.py wrote; resumes from its last checkpoint.

Muon for the matrices, Adam for embeddings, head and norms. The learning rate warms up and stays. A run with
--cool-down goes on from a checkpoint of such a plateau while the rate falls linearly to zero: its result is the
one to export. Weight decay falls with the rate. SIGTERM saves and stops.
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
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model import Decoder, Shape
from muon import Muon

# Share of the tokens that each source gives. A third of the Python is short infill examples.
SHARES = {"simple": 0.44, "novels": 0.22, "python": 0.17, "infill": 0.12, "library": 0.05}

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
    """Draws batches of the mixture; ``drawn``, sequences per source, makes it resumable."""

    def __init__(self, folder: Path, length: int, shares: dict[str, float], drawn: dict[str, int]) -> None:
        self.shares = shares
        self.drawn = {name: drawn.get(name, 0) for name in shares}
        self.sources = {name: chunks(folder, name, length, length, self.drawn[name]) for name in shares}
        # What counts towards the shares: a change of the shares creates no debt.
        self.since_start = dict.fromkeys(shares, 0)

    def next(self, rows: int) -> tuple[Tensor, list[str]]:
        """Token ids, int64 [rows, length + 1], and the source of each row."""
        names = []
        for _ in range(rows):
            # The source that lags furthest behind its share: exact proportions without randomness.
            total = sum(self.since_start.values()) + 1
            name = min(self.shares, key=lambda n: self.since_start[n] - self.shares[n] * total)
            self.since_start[name] += 1
            self.drawn[name] += 1
            names.append(name)
        return torch.from_numpy(np.stack([next(self.sources[name]) for name in names])), names


def shares_of(text: str) -> dict[str, float]:
    """Parses ``source=share,source=share``; the shares are scaled to a sum of one."""
    shares = {name: float(share) for name, share in (item.split("=") for item in text.split(","))}
    return {name: share / sum(shares.values()) for name, share in shares.items()}


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
    return [adam, Muon(matrices, lr=0.02, weight_decay=arguments.weight_decay)]


def set_rates(optimizer_list: list[torch.optim.Optimizer], factor: float) -> None:
    """Sets every learning rate to ``factor`` times its own scale."""
    for optimizer in optimizer_list:
        for group in optimizer.param_groups:
            group.setdefault("peak", group["lr"])
            group["lr"] = group["peak"] * factor


def parse_arguments() -> argparse.Namespace:
    """Command line; see README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint and the log")
    parser.add_argument("--start", type=Path, help="checkpoint to begin from if --out has none")
    parser.add_argument("--steps", type=int, default=100_000, help="stop here; may be changed when resuming")
    parser.add_argument("--cool-down", type=int, help="steps from --start until the rate is zero; the run stops there")
    parser.add_argument("--peak", type=float, default=1.0, help="factor of all learning rates on the plateau")
    parser.add_argument("--shares", type=shares_of, default=SHARES, help="share of the tokens per source, as a=0.5,b=0.5")
    parser.add_argument("--length", type=int, default=512, help="tokens in a sequence")
    parser.add_argument("--long-every", type=int, default=8, help="one of so many steps is at the full context")
    parser.add_argument("--batch-tokens", type=int, default=8192)
    parser.add_argument("--micro-tokens", type=int, default=4096, help="tokens in one forward pass")
    parser.add_argument("--weight-decay", type=float, default=0.1, help="of the matrices, per unit of learning rate")
    parser.add_argument("--average", type=float, default=0.995, help="decay per step of the average of the weights")
    parser.add_argument("--warm-up", type=int, default=100)
    parser.add_argument("--layers", type=int, default=Shape.layers)
    parser.add_argument("--width", type=int, default=Shape.width)
    parser.add_argument("--save-minutes", type=float, default=3.0)
    parser.add_argument("--threads", type=int, help="default: one per core")
    parser.add_argument("--no-compile", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Trains until the last step or a signal."""
    arguments = parse_arguments()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "train.pid").write_text(f"{os.getpid()}\n")
    shape = Shape(layers=arguments.layers, width=arguments.width)
    model = Decoder(shape).to(device)
    optimizer_list = optimizers(model, arguments)
    set_rates(optimizer_list, 1.0)

    def losses_of(inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean loss of each row in nats per token."""
        with torch.autocast(device, torch.bfloat16):
            logits = model(inputs)
        losses = F.cross_entropy(logits.float().view(-1, shape.vocabulary), targets.reshape(-1), reduction="none")
        return losses.view(targets.shape).mean(1)

    loss_function = losses_of if arguments.no_compile else torch.compile(losses_of, dynamic=False)
    checkpoint = arguments.out / "checkpoint.pt"
    step, tokens, drawn = 0, 0, {}
    average = {name: value.clone() for name, value in model.state_dict().items()}
    source = checkpoint if checkpoint.exists() else arguments.start
    cool_from = None
    if source:
        state = torch.load(source, map_location=device)
        model.load_state_dict(state["model"])
        average = state.get("average") or {name: value.clone() for name, value in state["model"].items()}
        for optimizer, saved in zip(optimizer_list, state.get("optimizers", []), strict=False):
            optimizer.load_state_dict(saved)
        step, tokens, drawn = state["step"], state["tokens"], state.get("drawn", {})
        cool_from = state.get("cool_from", step)
    last = arguments.steps if arguments.cool_down is None else cool_from + arguments.cool_down

    def save() -> None:
        state = {
            "shape": dataclasses.asdict(shape),
            "model": model.state_dict(),
            "average": average,
            "optimizers": [o.state_dict() for o in optimizer_list],
            "step": step,
            "tokens": tokens,
            "drawn": drawn,
        }
        if arguments.cool_down is not None:
            state["cool_from"] = cool_from
        torch.save(state, checkpoint.with_suffix(".new"))
        checkpoint.with_suffix(".new").replace(checkpoint)

    batches: dict[int, Batches] = {}
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    saved_at, reported_at, reported_tokens = time.monotonic(), time.monotonic(), tokens
    losses: dict[str, list[float]] = {name: [] for name in arguments.shares}
    while step < last and not stopping:
        length = shape.context if step % arguments.long_every == 0 else arguments.length
        if length not in batches:
            batches[length] = Batches(arguments.data, length, arguments.shares, drawn.get(str(length), {}))
        factor = min(1.0, (step + 1) / arguments.warm_up)
        if arguments.cool_down is not None:
            factor *= (last - step) / arguments.cool_down
        set_rates(optimizer_list, arguments.peak * factor)
        rows = max(1, arguments.micro_tokens // length)
        parts = max(1, arguments.batch_tokens // (rows * length))
        for _ in range(parts):
            ids, names = batches[length].next(rows)
            ids = ids.to(device)
            row_losses = loss_function(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
            (row_losses.mean() / parts).backward()
            for name, value in zip(names, row_losses.tolist(), strict=True):
                losses[name].append(value)
                if not math.isfinite(value):
                    raise SystemExit(f"the loss is {value} at step {step}")
        for optimizer in optimizer_list:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        # The first steps of a run count less, or the average would keep what was there before training.
        weight = 1 - min(arguments.average, (1 + step) / (10 + step))
        for name, value in model.state_dict().items():
            average[name].lerp_(value, weight)
        tokens += rows * parts * length
        drawn[str(length)] = dict(batches[length].drawn)
        now = time.monotonic()
        if step % 20 == 0:
            means = {name: sum(values) / len(values) for name, values in losses.items() if values}
            line = {
                "step": step,
                "loss": round(sum(arguments.shares[n] * v for n, v in means.items()), 4),
                "sources": {name: round(value, 3) for name, value in means.items()},
                "lr": round(arguments.peak * factor, 4),
                "tokens": tokens,
                "tokens_s": round((tokens - reported_tokens) / (now - reported_at)),
            }
            with (arguments.out / "log.jsonl").open("a") as log:
                log.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)
            reported_at, reported_tokens = now, tokens
            losses = {name: [] for name in arguments.shares}
        if now - saved_at > arguments.save_minutes * 60:
            save()
            saved_at = now
    save()


if __name__ == "__main__":
    main()
