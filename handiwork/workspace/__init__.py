"""The user's files: the copy a session works on, its snapshots, its changes."""
