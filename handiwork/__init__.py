"""Handiwork: run coding agents on a sandboxed copy of your code."""

__version__ = "0.1.0"
