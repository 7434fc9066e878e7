"""Forks, commits and the files of an earlier event."""
