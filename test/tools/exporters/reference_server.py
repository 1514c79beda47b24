"""Computes the logits of changed configurations of the cases of families.py.

    python reference_server.py MODELS

Reads a line {"case": NAME, "config": {...}, "length": N} with the tokens of the prompt, and answers with a line: {"logits": base64} of the positions STORED, or
{"error": text} if transformers does not load all weights of MODELS/NAME with that configuration.
"""

import copy
import json
import sys
import warnings
from pathlib import Path

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoModelForImageTextToText

from families import DEFAULT_ATTENTION, STORED, all_fields, base64_of, config_of, logits_of, prompt

#: A change can make another case of the same family need it.
DEFAULT_FAMILIES = {name.split("-")[0] for name in DEFAULT_ATTENTION}


def restored(config, originals):
    """JavaScript writes 5.0 as 5, which transformers refuses for a float. It has its own form of infinity."""
    if isinstance(config, dict):
        if "__float__" in config:
            return float(config["__float__"])
        inner = [one for one in originals if isinstance(one, dict)]
        return {name: restored(value, [one.get(name) for one in inner]) for name, value in config.items()}
    if isinstance(config, list):
        inner = [item for one in originals if isinstance(one, list) for item in one]
        return [restored(item, inner) for item in config]
    return next((one for one in originals if isinstance(one, float) and one == config), config)


class Case:
    def __init__(self, directory):
        config = config_of(directory.name)
        self.configs = [config, all_fields(config)]
        self.weights = directory / "transformers"
        self.attention = "sdpa" if directory.name.split("-")[0] in DEFAULT_FAMILIES else "eager"

    def logits(self, config, length):
        config = restored(config, self.configs)
        made = CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
        model_class = AutoModelForImageTextToText if "text_config" in config else AutoModelForCausalLM
        model, info = model_class.from_pretrained(
            self.weights, config=made, attn_implementation=self.attention, dtype=torch.float32, output_loading_info=True)
        lacking = {kind: sorted(map(str, info[kind])) for kind in ("missing_keys", "mismatched_keys") if info.get(kind)}
        if lacking:
            raise RuntimeError(str(lacking))
        logits = logits_of(model.eval(), prompt(length))[[position for position in STORED if position < length]]
        if not bool(torch.isfinite(logits).all()):
            raise RuntimeError("logits are not finite")
        return base64_of(logits)


def main():
    models = Path(sys.argv[1])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    cases = {}
    for line in sys.stdin:
        asked = json.loads(line)
        name = asked["case"]
        cases[name] = cases.get(name) or Case(models / name)
        try:
            answer = dict(logits=cases[name].logits(asked["config"], asked["length"]))
        except Exception as error:  # Any failure of a changed configuration is an answer.
            answer = dict(error=f"{type(error).__name__}: {error}"[:300])
        print(json.dumps(answer), flush=True)


main()
