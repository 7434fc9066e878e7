"""Name resolution and connections of this machine."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Mapping
from typing import Literal

from handiwork.sandbox.egress.relay import Streams
from handiwork.sandbox.egress.upstream import Upstream, upstream_for


class Internet:
    """Resolves names and connects; ``environment`` may name this machine's own proxy."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment

    def upstream(self, scheme: Literal["http", "https"], host: str) -> Upstream | None:
        """Return the machine's own proxy for a host, None if it has none. Raises UpstreamError."""
        return upstream_for(scheme, host, self._environment)

    async def resolve(self, host: str) -> list[str]:
        """Return the addresses of a name, in the order to try them. Raises OSError."""
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def connect(self, host: str, port: int, tls: bool = False) -> Streams:
        """Return a connection to an address, or to the machine's own proxy by its name. Raises OSError."""
        return await asyncio.open_connection(host, port, ssl=ssl.create_default_context() if tls else None)
