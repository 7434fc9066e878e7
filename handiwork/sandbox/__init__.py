"""Where actions run: isolation, the copy of the workspace, and what comes back from it."""
