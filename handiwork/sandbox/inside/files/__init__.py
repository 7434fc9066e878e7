"""Reads, writes and edits files."""
