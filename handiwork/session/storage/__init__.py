"""The files that sessions keep, and how they are removed."""
