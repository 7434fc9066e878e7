"""Sandboxes in Docker containers, on this machine or another."""
