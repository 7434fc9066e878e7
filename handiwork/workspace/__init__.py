"""The user's files: a session's copy of them, its snapshots and its changes."""
