"""The MCP servers of a session: their programs run in its sandbox, their addresses are reached through its egress."""
