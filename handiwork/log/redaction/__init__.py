"""Removes secrets from stored and displayed data."""
