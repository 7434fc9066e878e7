"""The action execution server: runs inside a sandbox, standalone, with the standard library and uvicorn only."""
