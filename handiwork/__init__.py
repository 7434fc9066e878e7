"""Handiwork: an open platform for AI software developers as generalist agents."""

__version__ = "0.1.0"
