"""Keeps trees of files by their content."""
