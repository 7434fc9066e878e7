"""Sandboxes: isolated environments in which actions run."""
