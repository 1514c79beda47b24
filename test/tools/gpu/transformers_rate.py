"""Decode rate of transformers: python transformers_rate.py DIRECTORY BATCHES CONTEXT STEPS; JSON on the last line.

Half precision on the first CUDA card, float32 on the CPU where there is none. A directory without weights gets random ones.
"""

import json
import os
import statistics
import sys
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM, StaticCache

WARM_STEPS = 5
# As in greedy-start.ts.
PROMPT, GENERATED = 32, 16

directory, batches, context, steps = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4])
cuda = torch.cuda.is_available()
device, kind = ("cuda", torch.float16) if cuda else ("cpu", torch.float32)
has_weights = os.path.exists(os.path.join(directory, "model.safetensors"))
if has_weights:
    model = AutoModelForCausalLM.from_pretrained(directory)
else:
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(directory), dtype=kind)
model = model.to(device=device, dtype=kind).eval()
vocabulary = model.config.vocab_size


def prompt(length):
    return ((torch.arange(length, device=device) * 31 + 7) % vocabulary)[None]


def finish():
    if cuda:
        torch.cuda.synchronize()


def greedy():
    """The likeliest continuation, the lowest id of equal ones."""
    ids = []
    output = model(prompt(PROMPT), use_cache=True)
    while True:
        ids.append(int(output.logits[0, -1].float().argmax()))
        if len(ids) == GENERATED:
            return ids
        token = torch.tensor([[ids[-1]]], device=device)
        output = model(token, past_key_values=output.past_key_values, use_cache=True)


def rate(batch):
    """Tokens a second of full batches, logits brought back to the CPU; the median of the steps."""
    output = model(prompt(context).repeat(batch, 1), use_cache=True, logits_to_keep=1)
    times = []
    for step in range(WARM_STEPS + steps):
        token = torch.full((batch, 1), (step * 13 + 5) % vocabulary, device=device)
        finish()
        start = time.perf_counter()
        output = model(token, past_key_values=output.past_key_values, use_cache=True)
        output.logits[:, -1].float().cpu()
        times.append(time.perf_counter() - start)
    return batch / statistics.median(times[WARM_STEPS:])


def static_rate(batch):
    """Tokens a second with KV at fixed addresses and the step, its greedy draw included, as one CUDA graph."""
    cache = StaticCache(config=model.config, max_cache_len=context + 2 * WARM_STEPS + steps + 1)
    model(prompt(context).repeat(batch, 1), past_key_values=cache, logits_to_keep=1)
    token = torch.zeros((batch, 1), dtype=torch.long, device=device)
    position = torch.full((batch, 1), context, device=device)

    def step():
        logits = model(token, past_key_values=cache, position_ids=position).logits[:, -1]
        token.copy_(logits.argmax(-1, keepdim=True))
        position.add_(1)

    run = step
    if cuda:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(WARM_STEPS):
                step()
        finish()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        run = graph.replay
    times = []
    for _ in range(WARM_STEPS + steps):
        start = time.perf_counter()
        run()
        token.cpu()
        times.append(time.perf_counter() - start)
    return batch / statistics.median(times[WARM_STEPS:])


def tried(measure, batch):
    try:
        return measure(int(batch))
    except Exception as error:
        return str(error).splitlines()[0][:200]


with torch.inference_mode():
    name = torch.cuda.get_device_name() if cuda else "the CPU"
    versions = f"transformers in {str(kind).removeprefix('torch.')} on {name}"
    print(json.dumps({"device": versions, "greedy": greedy() if has_weights else [], "rates": {batch: rate(int(batch)) for batch in batches}, "static": {batch: tried(static_rate, batch) for batch in batches}}))
