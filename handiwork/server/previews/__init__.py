"""Previews of servers that run in sandboxes, each on an origin of its own."""
