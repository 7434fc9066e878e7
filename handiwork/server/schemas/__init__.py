"""The JSON requests and responses of the HTTP API."""
