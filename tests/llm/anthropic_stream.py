"""Answers in the form that Anthropic's API streams, for the stand-in."""

from __future__ import annotations

from tests.llm.standin import Json, Stream


def block(index: int, start: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def reply(*blocks: list[Json], stop: str = "end_turn") -> Stream:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 70,
        "cache_creation_input_tokens": 20,
        "output_tokens": 1,
    }
    message: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    end = {"stop_reason": stop, "stop_sequence": None}
    return Stream(
        [
            {"type": "message_start", "message": message},
            *(event for events in blocks for event in events),
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ],
        end="close",
    )


def said(content: str, index: int = 0) -> list[Json]:
    deltas = [{"type": "text_delta", "text": piece} for piece in content.splitlines(keepends=True)]
    return block(index, {"type": "text", "text": ""}, *deltas)
