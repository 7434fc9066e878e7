"""Byte streams into a running sandbox."""
