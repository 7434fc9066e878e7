"""The JSON that the HTTP API takes and gives."""
