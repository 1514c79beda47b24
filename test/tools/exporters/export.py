"""Writes small random models, exports them, and computes the greedy tokens that transformers generates.

    python export.py OUTPUT ARCHITECTURE EXPORTER PRECISION
    python export.py OUTPUT ARCHITECTURE reference

EXPORTER is `builder` (onnxruntime-genai's model builder) or `optimum` (optimum-onnx). PRECISION is fp32, fp16 or int4;
for the builder, `fp16-cuda` and `fp16-cpu` name the execution provider that the graph is for.
"""

import json
import subprocess
import sys
from pathlib import Path

PROMPT_LENGTHS = [1, 7, 33, 70, 200]
NEW_TOKENS = 12
VOCABULARY = 256
POSITIONS = 512
WINDOW = 64

# Field names differ between architectures, as they do in published models.
MODERN = dict(
    hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=POSITIONS,
)
ARCHITECTURES = {
    "llama": MODERN,
    "mistral": MODERN | dict(sliding_window=WINDOW, head_dim=16),
    "qwen2": MODERN,
    "qwen3": MODERN | dict(head_dim=16),
    "gemma": MODERN | dict(head_dim=16),
    "gemma2": MODERN | dict(head_dim=16, sliding_window=WINDOW, query_pre_attn_scalar=16),
    "gemma3_text": MODERN | dict(head_dim=16, sliding_window=WINDOW, query_pre_attn_scalar=16, num_hidden_layers=6),
    "phi": MODERN | dict(num_attention_heads=2, num_key_value_heads=2),
    # The builder takes every projection onto as many values as the vocabulary has tokens for the logits' one.
    "phi3": MODERN | dict(intermediate_size=160, pad_token_id=0, original_max_position_embeddings=POSITIONS),
    "gpt2": dict(n_embd=64, n_layer=2, n_head=4, n_positions=POSITIONS),
    "gpt_neo": dict(
        hidden_size=64, num_layers=2, num_heads=4, max_position_embeddings=POSITIONS,
        attention_types=[[["global", "local"], 1]], window_size=WINDOW,
    ),
    "gpt_neox": dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                     max_position_embeddings=POSITIONS),
    "gptj": dict(n_embd=64, n_layer=2, n_head=4, n_positions=POSITIONS, rotary_dim=8),
    "codegen": dict(n_embd=64, n_layer=2, n_head=4, n_positions=POSITIONS, n_ctx=POSITIONS, rotary_dim=8),
    "gpt_bigcode": dict(n_embd=64, n_layer=2, n_head=4, n_positions=POSITIONS, multi_query=True),
    "bloom": dict(hidden_size=64, n_layer=2, n_head=4),
    "falcon": dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, multi_query=True),
    "mpt": dict(d_model=64, n_layers=2, n_heads=4, max_seq_len=POSITIONS),
    "opt": dict(hidden_size=64, ffn_dim=128, num_hidden_layers=2, num_attention_heads=4,
                max_position_embeddings=POSITIONS, word_embed_proj_dim=64),
    "olmo": MODERN,
    "olmo2": MODERN,
    "granite": MODERN,
    "arcee": MODERN | dict(head_dim=16),
    "cohere": MODERN,
    "ernie4_5": MODERN | dict(head_dim=16),
    "glm": MODERN | dict(head_dim=16, pad_token_id=0),
    "gpt_oss": MODERN | dict(head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=WINDOW),
    "helium": MODERN | dict(head_dim=16),
    "hunyuan_v1_dense": MODERN | dict(head_dim=16),
    "nemotron": MODERN | dict(head_dim=32),
    "qwen3_moe": MODERN | dict(head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=96),
    "smollm3": MODERN | dict(pad_token_id=0),
    "stablelm": MODERN,
    "deepseek_v3": MODERN | dict(
        num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16,
        n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1, first_k_dense_replace=1,
        moe_intermediate_size=96,
    ),
    # Its text model is nested in `text_config`.
    "gemma3": dict(
        image_token_index=VOCABULARY - 1, boi_token_index=VOCABULARY - 2, eoi_token_index=VOCABULARY - 3,
        text_config=MODERN | dict(vocab_size=VOCABULARY, head_dim=16, sliding_window=WINDOW, query_pre_attn_scalar=16),
        vision_config=dict(hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                           image_size=28, patch_size=14),
    ),
    "phi3-longrope": MODERN | dict(
        intermediate_size=160, pad_token_id=0, original_max_position_embeddings=WINDOW,
        rope_scaling=dict(type="longrope", short_factor=[1.0] * 8, long_factor=[1 + i / 2 for i in range(8)]),
    ),
}


def prompt(length):
    return [(37 * i + i * i % 17 + 5) % (VOCABULARY - 8) + 4 for i in range(length)]


def write_source(directory, architecture):
    import torch
    from tokenizers import Tokenizer, models
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    fields = dict(vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2, initializer_range=0.2)
    config = AutoConfig.for_model(architecture.split("-")[0], **(fields | ARCHITECTURES[architecture]))
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    model.save_pretrained(directory)
    vocabulary = {f"t{i}": i for i in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="t0"))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="t1", eos_token="t2", unk_token="t0", pad_token="t0"
    ).save_pretrained(directory)


def write_reference(source, file):
    """Writes the tokens of greedy decoding and the smallest margin between the best two logits of each."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(source, attn_implementation="eager").eval()
    cases = []
    for length in PROMPT_LENGTHS:
        tokens, margin = prompt(length), float("inf")
        for _ in range(NEW_TOKENS):
            with torch.no_grad():
                logits = model(torch.tensor([tokens]), use_cache=False).logits[0, -1]
            best = torch.topk(logits, 2)
            margin = min(margin, float(best.values[0] - best.values[1]))
            tokens.append(int(best.indices[0]))
        cases.append(dict(prompt=tokens[:length], tokens=tokens[length:], margin=margin))
    file.write_text(json.dumps(cases))


def export(source, directory, exporter, precision):
    if exporter == "builder":
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(source), "-o", str(directory)]
        number, _, provider = precision.partition("-")
        subprocess.run([*command, "-p", number, "-e", provider or "cpu", "-c", str(directory / "cache")], check=True)
        return
    from optimum.exporters.onnx import main_export

    main_export(str(source), str(directory), task="text-generation-with-past", do_validation=False)
    if precision == "fp16":
        import onnx
        from onnxruntime.transformers.float16 import convert_float_to_float16

        file = directory / "model.onnx"
        onnx.save(convert_float_to_float16(onnx.load(file), disable_shape_infer=True), directory / "model_fp16.onnx")
        file.unlink()


def write_graph_reference(directory, file):
    """Writes the greedy tokens of the exported graph itself, computed without a past by ONNX Runtime."""
    import numpy
    import onnxruntime

    graph = next(directory.glob("*.onnx"))
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    config = json.loads((directory / "genai_config.json").read_text())["model"]["decoder"]
    types = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16}
    # Windowed caches must not be shorter than the window. A prompt from position 0 does not read them.
    positions = POSITIONS if b"GroupQueryAttention" in graph.read_bytes() else 0
    unread = (1, config["num_key_value_heads"], positions, config["head_size"])
    cases = []
    for length in PROMPT_LENGTHS:
        tokens, margin = prompt(length), float("inf")
        for _ in range(NEW_TOKENS):
            ids = numpy.array([tokens], dtype=numpy.int64)
            feed = {"input_ids": ids, "attention_mask": numpy.ones_like(ids)}
            for one in session.get_inputs():
                if one.name == "position_ids":
                    feed[one.name] = numpy.arange(len(tokens), dtype=numpy.int64)[None]
                elif one.name not in feed:
                    feed[one.name] = numpy.zeros(unread, dtype=types[one.type])
            logits = session.run(["logits"], feed)[0][0, -1].astype(numpy.float32)
            ranked = numpy.argsort(-logits, kind="stable")
            margin = min(margin, float(logits[ranked[0]] - logits[ranked[1]]))
            tokens.append(int(ranked[0]))
        cases.append(dict(prompt=tokens[:length], tokens=tokens[length:], margin=margin))
    file.write_text(json.dumps(cases))


def main():
    output, architecture, exporter, *rest = sys.argv[1:]
    source = Path(output) / architecture / "source"
    if exporter == "reference":
        source.mkdir(parents=True, exist_ok=True)
        write_source(source, architecture)
        write_reference(source, source.parent / "transformers.json")
        return
    precision = rest[0]
    directory = source.parent / f"{exporter}-{precision}"
    directory.mkdir(parents=True, exist_ok=True)
    export(source, directory, exporter, precision)
    if exporter == "builder":
        write_graph_reference(directory, directory / "graph.json")


main()
