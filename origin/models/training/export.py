"""Write a checkpoint as a model folder: ONNX graph with 8-bit weights, tokenizer and configuration.

The graph is as the exporter of the origin writes one: lengths of the rows in place of a mask, logits of the positions in
``logits_index`` only, queries, keys and values in one product. ``past_key_values.N.key/value`` in, ``present.N.key/value``
out, rotary positions inside GroupQueryAttention.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from exported import LAST_POSITIONS, LOGITS_INDEX, TOTAL_LENGTH
from model import Decoder, Shape, rotary_tables
from prepare import END, SPECIAL

MICROSOFT = "com.microsoft"
BLOCK = 32


class Graph:
    """Collects nodes and initializers; every method returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, name: str, value: np.ndarray) -> str:
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, op: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"{outputs[0]}/{op}", domain=domain, **attributes))
        return outputs[0]

    def linear(self, x: str, weight: np.ndarray, name: str, output: str | None = None) -> str:
        """x times the transpose of weight [outputs, inputs], stored in 8 bits with a scale per 32 inputs."""
        rows, columns = weight.shape
        blocks = weight.reshape(rows, columns // BLOCK, BLOCK)
        scales = np.maximum(np.abs(blocks).max(axis=2), 1e-12) / 127
        quantised = (np.clip(np.rint(blocks / scales[:, :, None]), -127, 127) + 128).astype(np.uint8)
        inputs = [
            x,
            self.constant(f"{name}.weight_Q8", quantised),
            self.constant(f"{name}.weight_scales", scales.astype(np.float32).reshape(-1)),
        ]
        return self.node(
            "MatMulNBits",
            inputs,
            [output or f"{name}/output_0"],
            MICROSOFT,
            K=columns,
            N=rows,
            bits=8,
            block_size=BLOCK,
            accuracy_level=4,
        )


def build(model: Decoder) -> onnx.ModelProto:
    """The whole graph."""
    shape = model.shape
    weights = {name: value.detach().float().cpu().numpy() for name, value in model.state_dict().items()}
    graph = Graph()
    info = helper.make_tensor_value_info
    inputs = [
        info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
        info(LAST_POSITIONS, TensorProto.INT32, ["batch_size"]),
        info(TOTAL_LENGTH, TensorProto.INT32, []),
        info(LOGITS_INDEX, TensorProto.INT64, ["logit_rows"]),
    ]
    outputs = [info("logits", TensorProto.FLOAT, ["logit_rows", shape.vocabulary])]

    cos, sin = (graph.constant(n, t.numpy()) for n, t in zip(("cos_cache", "sin_cache"), rotary_tables(shape)))
    table = model.embeddings().detach().cpu().numpy().astype(np.float16)
    embedded = graph.node(
        "Gather", [graph.constant("model.embed_tokens.weight", table), "input_ids"], ["model.embed_tokens/gathered"]
    )
    stream = graph.node("Cast", [embedded], ["model.embed_tokens/output_0"], to=TensorProto.FLOAT)

    def norm(name: str, weight: str, branch: str | None) -> str:
        """Adds ``branch`` to the residual stream and normalises it."""
        nonlocal stream
        constant = graph.constant(f"{name}.weight", weights[weight])
        if branch is None:
            return graph.node(
                "SimplifiedLayerNormalization", [stream, constant], [f"{name}/output_0"], epsilon=shape.epsilon, axis=-1
            )
        out = [f"{name}/output_0", "", "", f"{name}/residual"]
        graph.node("SkipSimplifiedLayerNormalization", [stream, branch, constant], out, MICROSOFT, epsilon=shape.epsilon)
        stream = out[3]
        return out[0]

    branch: str | None = None
    for index in range(shape.layers):
        name, source = f"model.layers.{index}", f"blocks.{index}"
        normed = norm(f"{name}.input_layernorm", f"{source}.attention_norm.weight", branch)
        packed = graph.linear(normed, weights[f"{source}.qkv.weight"], f"{name}.attn.qkv_proj")
        attention_inputs = [packed, "", ""]
        for kind in ("key", "value"):
            cache = ["batch_size", shape.kv_heads, "past_sequence_length", shape.head]
            inputs.append(info(f"past_key_values.{index}.{kind}", TensorProto.FLOAT, cache))
            cache = ["batch_size", shape.kv_heads, "total_sequence_length", shape.head]
            outputs.append(info(f"present.{index}.{kind}", TensorProto.FLOAT, cache))
            attention_inputs.append(f"past_key_values.{index}.{kind}")
        attended = graph.node(
            "GroupQueryAttention",
            [*attention_inputs, LAST_POSITIONS, TOTAL_LENGTH, cos, sin],
            [f"{name}.attn/output_0", f"present.{index}.key", f"present.{index}.value"],
            MICROSOFT,
            num_heads=shape.heads,
            kv_num_heads=shape.kv_heads,
            scale=shape.head**-0.5,
            do_rotary=1,
            rotary_interleaved=0,
            local_window_size=-1,
        )
        branch = graph.linear(attended, weights[f"{source}.output.weight"], f"{name}.attn.o_proj")
        normed = norm(f"{name}.post_attention_layernorm", f"{source}.mlp_norm.weight", branch)
        gate, up = np.split(weights[f"{source}.gate_up.weight"], 2)
        gate = graph.linear(normed, gate, f"{name}.mlp.gate_proj")
        up = graph.linear(normed, up, f"{name}.mlp.up_proj")
        sigmoid = graph.node("Sigmoid", [gate], [f"{name}.mlp/sigmoid"])
        active = graph.node("Mul", [gate, sigmoid], [f"{name}.mlp/silu"])
        active = graph.node("Mul", [active, up], [f"{name}.mlp/product"])
        branch = graph.linear(active, weights[f"{source}.down.weight"], f"{name}.mlp.down_proj")

    normed = norm("model.norm", "final_norm.weight", branch)
    # Nothing reads the residual stream after the last norm.
    del graph.nodes[-1].output[1:]
    rows = graph.node("Reshape", [normed, graph.constant("lm_head/shape", np.array([-1, shape.width], np.int64))], ["lm_head/rows"])
    selected = graph.node("Gather", [rows, LOGITS_INDEX], ["lm_head/selected"], axis=0)
    graph.linear(selected, weights["lm_head.weight"], "lm_head", "logits")

    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    proto = helper.make_graph(graph.nodes, "main_graph", inputs, outputs, graph.initializers)
    return helper.make_model(proto, opset_imports=opsets, ir_version=8, producer_name="continuo")


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

    onnx.save(build(model), arguments.out / "model.onnx")
    (arguments.out / "tokenizer.json").write_text(arguments.tokenizer.read_text())
    write("config.json", configuration(shape))
    write("tokenizer_config.json", tokenizer_configuration(shape))
    defaults = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0, "do_sample": True, "temperature": 0.8, "top_p": 0.95}
    write("generation_config.json", defaults)
    size = (arguments.out / "model.onnx").stat().st_size
    print(f"step {state['step']}, {state['tokens']} tokens, {sum(p.numel() for p in model.parameters())} parameters, {size} bytes")


if __name__ == "__main__":
    main()
