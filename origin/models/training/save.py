"""Write a checkpoint as a folder of weights that ``continuo model build`` reads: safetensors, tokenizer, configuration.

The tensors have the names of Hugging Face's Llama and are float32.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from model import Decoder, Shape
from prepare import END, SPECIAL


def tensors(model: Decoder) -> dict[str, np.ndarray]:
    """The weights by name; restore.weights_of is the inverse, except for rounding."""
    shape = model.shape
    queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
    weights = {name: value.detach().float().cpu().numpy() for name, value in model.state_dict().items()}
    found = {
        "model.embed_tokens.weight": model.embeddings().detach().float().cpu().numpy(),
        "model.norm.weight": weights["final_norm.weight"],
        "lm_head.weight": weights["lm_head.weight"],
    }
    for index in range(shape.layers):
        name, source = f"model.layers.{index}", f"blocks.{index}"
        found[f"{name}.input_layernorm.weight"] = weights[f"{source}.attention_norm.weight"]
        found[f"{name}.post_attention_layernorm.weight"] = weights[f"{source}.mlp_norm.weight"]
        projections = np.split(weights[f"{source}.qkv.weight"], [queries, queries + keys])
        found |= {f"{name}.self_attn.{kind}_proj.weight": part for kind, part in zip("qkv", projections)}
        found[f"{name}.self_attn.o_proj.weight"] = weights[f"{source}.output.weight"]
        gate, up = np.split(weights[f"{source}.gate_up.weight"], 2)
        found |= {f"{name}.mlp.gate_proj.weight": gate, f"{name}.mlp.up_proj.weight": up}
        found[f"{name}.mlp.down_proj.weight"] = weights[f"{source}.down.weight"]
    return {name: np.ascontiguousarray(value) for name, value in found.items()}


def configuration(shape: Shape) -> dict[str, object]:
    """config.json in the words of Hugging Face's Llama."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "intermediate_size": shape.mlp,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head,
        "hidden_act": "silu",
        "max_position_embeddings": shape.context,
        "rope_theta": shape.theta,
        "rms_norm_eps": shape.epsilon,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "pad_token_id": 0,
        "torch_dtype": "float32",
    }


def tokenizer_configuration(shape: Shape) -> dict[str, object]:
    """tokenizer_config.json: one end token, never put in front of a prompt."""
    added = {
        str(i): {"content": t, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
        for i, t in enumerate(SPECIAL)
    }
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_bos_token": False,
        "add_eos_token": False,
        "bos_token": END,
        "eos_token": END,
        "pad_token": END,
        "additional_special_tokens": list(SPECIAL[1:]),
        "added_tokens_decoder": added,
        "clean_up_tokenization_spaces": False,
        "model_max_length": shape.context,
    }


def main() -> None:
    """Command line; see README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--weights", choices=("average", "model"), default="average", help="which of the checkpoint's")
    parser.add_argument("--start", type=Path, help="checkpoint to average with: the one that the run began from")
    parser.add_argument("--start-share", type=float, default=0.4, help="share of --start in the average")
    arguments = parser.parse_args()

    state = torch.load(arguments.checkpoint, map_location="cpu")
    shape = Shape(**state["shape"])
    model = Decoder(shape)
    weights = state[arguments.weights]
    if arguments.start:
        start = torch.load(arguments.start, map_location="cpu")["model"]
        weights = {name: torch.lerp(start[name], value, 1 - arguments.start_share) for name, value in weights.items()}
    model.load_state_dict(weights)
    arguments.out.mkdir(parents=True, exist_ok=True)

    def write(name: str, content: object) -> None:
        (arguments.out / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    save_file(tensors(model), arguments.out / "model.safetensors")
    (arguments.out / "tokenizer.json").write_text(arguments.tokenizer.read_text())
    write("config.json", configuration(shape))
    write("tokenizer_config.json", tokenizer_configuration(shape))
    defaults = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0, "do_sample": True, "temperature": 0.8, "top_p": 0.95}
    write("generation_config.json", defaults)
    size = (arguments.out / "model.safetensors").stat().st_size
    print(f"step {state['step']}, {state['tokens']} tokens, {sum(p.numel() for p in model.parameters())} parameters, {size} bytes")


if __name__ == "__main__":
    main()
