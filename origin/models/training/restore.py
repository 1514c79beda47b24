"""Write the 8-bit weights of a built model folder as a checkpoint, so that training can continue from them."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from model import Decoder, Shape

# The decoder normalises the rows, so their length changes nothing but the effect of one step of Adam, which at the
# length 1 of exported rows would overwrite them. Training had made them about this long.
EMBEDDING_LENGTH = 8.0


def shape_of(configuration: dict[str, object]) -> Shape:
    """The sizes in config.json; the inverse of save.configuration."""
    names = {
        "vocabulary": "vocab_size",
        "layers": "num_hidden_layers",
        "width": "hidden_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head": "head_dim",
        "mlp": "intermediate_size",
        "context": "max_position_embeddings",
        "theta": "rope_theta",
        "epsilon": "rms_norm_eps",
    }
    return Shape(**{field: configuration[name] for field, name in names.items()})


def weights_of(graph: onnx.GraphProto, shape: Shape) -> dict[str, Tensor]:
    """The state of a Decoder; the inverse of save.tensors, except for rounding."""
    constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}

    def matrix(name: str) -> Tensor:
        """Levels around 128, with a scale for each block of a row."""
        levels = constants.get(f"{name}/levels", constants.get(f"{name}/levels/rows"))
        scales = constants.get(f"{name}/scales", constants.get(f"{name}/row-scales"))[:, :, None]
        blocks = levels.astype(np.float32).reshape(*scales.shape[:2], -1) - 128
        return torch.from_numpy((blocks * scales).reshape(len(levels), -1))

    def vector(name: str) -> Tensor:
        return torch.from_numpy(constants[f"{name}.weight"])

    state = {
        "embedding.weight": EMBEDDING_LENGTH * matrix("model.embed_tokens.weight"),
        "final_norm.weight": vector("model.norm"),
        "lm_head.weight": matrix("lm_head.weight"),
    }
    for index in range(shape.layers):
        name, target = f"model.layers.{index}", f"blocks.{index}"
        # The builder joins the three projections in one matrix.
        joined = matrix("|".join(f"{name}.self_attn.{kind}_proj.weight" for kind in "qkv"))
        # It multiplies the queries by the scale of attention.
        joined[: shape.heads * shape.head] *= math.sqrt(shape.head)
        state[f"{target}.attention_norm.weight"] = vector(f"{name}.input_layernorm")
        state[f"{target}.qkv.weight"] = joined
        state[f"{target}.output.weight"] = matrix(f"{name}.self_attn.o_proj.weight")
        state[f"{target}.mlp_norm.weight"] = vector(f"{name}.post_attention_layernorm")
        state[f"{target}.gate_up.weight"] = torch.cat([matrix(f"{name}.mlp.{part}_proj.weight") for part in ("gate", "up")])
        state[f"{target}.down.weight"] = matrix(f"{name}.mlp.down_proj.weight")
    return state


def main() -> None:
    """Command line; see README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="built folder")
    parser.add_argument("--out", type=Path, required=True, help="checkpoint for train.py --start")
    arguments = parser.parse_args()

    shape = shape_of(json.loads((arguments.model / "config.json").read_text()))
    state = weights_of(onnx.load(arguments.model / "model.onnx").graph, shape)
    Decoder(shape).load_state_dict(state)
    torch.save({"shape": dataclasses.asdict(shape), "model": state, "step": 0, "tokens": 0}, arguments.out)


if __name__ == "__main__":
    main()
