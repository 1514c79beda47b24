"""A small Llama-style decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU."""

from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor, nn


ATTENTION_BLOCK = 128


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of the network; ``head`` is the width of one attention head."""

    vocabulary: int = 4096
    layers: int = 6
    width: int = 384
    heads: int = 6
    kv_heads: int = 2
    head: int = 64
    mlp: int = 1024
    context: int = 2048
    theta: float = 10000.0
    epsilon: float = 1e-5


def rotary_tables(shape: Shape) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every position and frequency, float32 [context, head / 2]."""
    frequency = shape.theta ** (-torch.arange(0, shape.head, 2, dtype=torch.float64) / shape.head)
    angle = torch.arange(shape.context, dtype=torch.float64)[:, None] * frequency[None]
    return angle.cos().float(), angle.sin().float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates the pairs (i, i + head / 2) of x [batch, sequence, heads, head]."""
    first, second = x.float().chunk(2, dim=-1)
    cos, sin = cos[None, :, None], sin[None, :, None]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of q [batch, heads, sequence, head] to k and v [batch, kv_heads, sequence, head].

    Head h reads key-value head h // (heads / kv_heads). On a CPU this is written out, because PyTorch's fused
    kernel is slow in the backward pass there; queries go in blocks, which skips most of the masked scores.
    """
    if q.is_cuda:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    batch, heads, length, head = q.shape
    grouped = (q * head**-0.5).reshape(batch, k.shape[1], -1, length, head)
    blocks = []
    for start in range(0, length, ATTENTION_BLOCK):
        stop = min(start + ATTENTION_BLOCK, length)
        queries = grouped[:, :, :, start:stop].flatten(2, 3)
        scores = queries @ k[:, :, :stop].transpose(2, 3)
        scores = scores.view(batch, k.shape[1], -1, stop - start, stop)
        visible = torch.ones(stop - start, stop, dtype=torch.bool, device=q.device).tril(start)
        weights = scores.float().masked_fill(~visible, float("-inf")).softmax(-1).to(v.dtype)
        blocks.append((weights.flatten(2, 3) @ v[:, :, :stop]).view(batch, heads, stop - start, head))
    return torch.cat(blocks, dim=2)


class Norm(nn.Module):
    """RMSNorm with one weight a channel."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


class Block(nn.Module):
    """Attention and MLP, each behind a norm and added to the residual stream."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
        self.attention_norm = Norm(shape.width, shape.epsilon)
        self.qkv = nn.Linear(shape.width, queries + 2 * keys, bias=False)
        self.output = nn.Linear(queries, shape.width, bias=False)
        self.mlp_norm = Norm(shape.width, shape.epsilon)
        self.gate_up = nn.Linear(shape.width, 2 * shape.mlp, bias=False)
        self.down = nn.Linear(shape.mlp, shape.width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        s, (batch, length, _) = self.shape, x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, length, -1, s.head)
        q, k, v = qkv.split((s.heads, s.kv_heads, s.kv_heads), dim=2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        attended = attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        x = x + self.output(attended.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    """Token ids [batch, sequence] to logits [batch, sequence, vocabulary].

    The embedding rows are normalised before use. save.py writes them normalised, so that the exported
    network is a plain Llama.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.final_norm = Norm(shape.width, shape.epsilon)
        self.lm_head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        cos, sin = rotary_tables(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.reset()

    def reset(self) -> None:
        """Every block starts as the identity: what writes to the residual stream is zero."""
        nn.init.normal_(self.embedding.weight)
        nn.init.normal_(self.lm_head.weight, std=0.001)
        for block in self.blocks:
            bound = (3 / self.shape.width) ** 0.5
            nn.init.uniform_(block.qkv.weight, -bound, bound)
            nn.init.uniform_(block.gate_up.weight, -bound, bound)
            nn.init.zeros_(block.output.weight)
            nn.init.zeros_(block.down.weight)

    def embeddings(self) -> Tensor:
        """The normalised embedding table [vocabulary, width]."""
        return F.rms_norm(self.embedding.weight, (self.shape.width,), eps=self.shape.epsilon)

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        x = F.rms_norm(self.embedding(ids), (self.shape.width,), eps=self.shape.epsilon)
        cos, sin = self.cos[:length], self.sin[:length]
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.lm_head(self.final_norm(x))
