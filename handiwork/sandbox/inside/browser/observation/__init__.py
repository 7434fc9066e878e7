"""Observations of a page for an agent."""
