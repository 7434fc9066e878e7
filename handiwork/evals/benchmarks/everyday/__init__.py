"""Everyday tasks of a developer, which come with the package in ``tasks``."""
