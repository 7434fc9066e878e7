"""The files of sessions, and their removal."""
