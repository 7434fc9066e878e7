"""Models with replies from a file."""
