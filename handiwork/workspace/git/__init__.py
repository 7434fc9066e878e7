"""Reads git repositories without running what they name."""
