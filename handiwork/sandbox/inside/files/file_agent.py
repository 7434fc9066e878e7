"""Serves the files of a sandbox on a remote daemon: ``python -m inside.files.file_agent DIR``, run beside it.

It reads requests from its stdin, one line of JSON each, and ends with it. {"do": "put", "owner": [UID, GID]} is
followed by a stream of ``trees``. {"do": "get", "trees": [...], "limit": BYTES} is answered by one, with the changes in
those directories since they were last put or got.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, BinaryIO

from .tree_stream import FILE_COST, Signature, TreeStreamError, receive, scan, send, send_end

_TICK = 20_000_000  # nanoseconds within which two changes may have the same time of change
_READY = b"ready\n"


class FileAgent:
    """The client's known state of the files below ``root``, and the answers to its requests."""

    def __init__(self, root: str, stream_in: BinaryIO, stream_out: BinaryIO) -> None:
        self._root = root
        self._in, self._out = stream_in, stream_out
        self._client_state: dict[str, Signature | None] = {}

    def serve(self) -> None:
        """Answer requests until stdin ends."""
        self._out.write(_READY)
        self._out.flush()
        while line := self._in.readline():
            request: dict[str, Any] = json.loads(line)
            error = ""
            try:
                if request["do"] == "put":
                    receive(self._in, self._root, tuple(request["owner"]), sys.maxsize)
                    self._scan(request["trees"])
                else:
                    self._get(request["trees"], request["limit"])
            except (OSError, TreeStreamError) as problem:
                error = f"{problem}" or type(problem).__name__
            send_end(self._out, error)
            if error and request["do"] == "put":
                return  # the rest of the stream is not a request

    def _get(self, trees: list[str], limit: int) -> None:
        before = self._client_state
        signatures = self._scan(trees)
        size = sum(signature[3] + FILE_COST for signature in signatures.values())
        if size > limit:
            self._client_state = before
            raise TreeStreamError(f"they take {size} bytes of {limit}")
        changed = [path for path, signature in signatures.items() if before.get(path) != signature]
        send(self._out, self._root, changed, before.keys() - signatures.keys())

    def _scan(self, trees: list[str]) -> dict[str, Signature]:
        start = time.time_ns()
        signatures: dict[str, Signature] = {}
        for tree in trees:
            signatures |= scan(self._root, tree)
        # A later change of a file that was changed just now may have the same time of change.
        self._client_state = {
            path: signature if signature[1] < start - _TICK else None for path, signature in signatures.items()
        }
        return signatures


if __name__ == "__main__":
    FileAgent(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer).serve()
