"""The operations of the HTTP API."""
