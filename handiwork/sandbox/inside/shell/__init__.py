"""The bash session and its jobs."""
