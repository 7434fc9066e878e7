"""Models whose replies are written in a file."""
