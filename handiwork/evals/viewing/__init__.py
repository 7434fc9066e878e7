"""Runs as the web app shows them."""
