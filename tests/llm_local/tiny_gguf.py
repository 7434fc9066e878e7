"""A model of some thousand random weights as a GGUF file, small enough to be written by a test, for a real llama.cpp.

What it says is noise. The format is described in ggml's docs/gguf.md.
"""

from __future__ import annotations

import math
import random
import struct
from pathlib import Path
from typing import Any

WIDTH, HEADS, HIDDEN, WINDOW = 32, 2, 64, 512
UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9
VERSION, ALIGNMENT = 3, 32
SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
CHARACTERS = ["\N{LOWER ONE EIGHTH BLOCK}", *map(chr, range(33, 127))]
TOKENS = [*SPECIAL, *BYTES, *CHARACTERS]
TYPES = [2, 3, 3, *[6] * len(BYTES), *[1] * len(CHARACTERS)]
"""Unknown, control, byte and normal tokens."""

SHAPES = {
    "token_embd.weight": (WIDTH, len(TOKENS)),
    "output_norm.weight": (WIDTH,),
    "blk.0.attn_norm.weight": (WIDTH,),
    "blk.0.ffn_norm.weight": (WIDTH,),
    **{f"blk.0.attn_{name}.weight": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")},
    "blk.0.ffn_gate.weight": (WIDTH, HIDDEN),
    "blk.0.ffn_up.weight": (WIDTH, HIDDEN),
    "blk.0.ffn_down.weight": (HIDDEN, WIDTH),
}


def write_gguf(path: Path, template: str) -> None:
    """Write a model of the llama architecture with this chat template."""
    metadata: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.context_length": WINDOW,
        "llama.embedding_length": WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": HIDDEN,
        "llama.attention.head_count": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.scores": [0.0] * len(TOKENS),
        "tokenizer.ggml.token_type": TYPES,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.chat_template": template,
    }
    head = b"GGUF" + struct.pack("<IQQ", VERSION, len(SHAPES), len(metadata))
    head += b"".join(_text(name) + _typed(value) for name, value in metadata.items())
    data, chance = b"", random.Random(1)
    for name, shape in SHAPES.items():
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += _aligned(struct.pack(f"<{math.prod(shape)}f", *(chance.gauss(0, 0.1) for _ in range(math.prod(shape)))))
    path.write_bytes(_aligned(head) + data)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _typed(value: Any) -> bytes:
    if isinstance(value, list):
        kind = {str: STRING, float: FLOAT32, int: INT32}[type(value[0])]
        return struct.pack("<IIQ", ARRAY, kind, len(value)) + b"".join(_plain(kind, each) for each in value)
    kind = {str: STRING, float: FLOAT32, int: UINT32}[type(value)]
    return struct.pack("<I", kind) + _plain(kind, value)


def _plain(kind: int, value: Any) -> bytes:
    return _text(value) if kind == STRING else struct.pack({FLOAT32: "<f", UINT32: "<I", INT32: "<i"}[kind], value)


def _aligned(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGNMENT)
