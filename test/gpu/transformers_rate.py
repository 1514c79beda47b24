"""Decode rate of transformers: python transformers_rate.py DIRECTORY BATCHES CONTEXT STEPS; JSON on the last line."""

import json
import statistics
import sys
import time

import torch
from transformers import AutoModelForCausalLM

directory, batches, context, steps = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4])
if not torch.cuda.is_available():
    sys.exit("torch sees no CUDA device")
model = AutoModelForCausalLM.from_pretrained(directory, torch_dtype=torch.float16).to("cuda").eval()
rates = {}
for batch in map(int, batches):
    ids = (torch.arange(context, device="cuda") * 31 + 7) % model.config.vocab_size
    with torch.inference_mode():
        output = model(ids.repeat(batch, 1), use_cache=True, logits_to_keep=1)
        times = []
        for step in range(5 + steps):
            token = torch.full((batch, 1), (step * 13 + 5) % model.config.vocab_size, device="cuda")
            torch.cuda.synchronize()
            start = time.perf_counter()
            output = model(token, past_key_values=output.past_key_values, use_cache=True)
            output.logits[:, -1].float().cpu()
            times.append(time.perf_counter() - start)
    rates[batch] = batch / statistics.median(times[5:])
print(json.dumps(rates))
