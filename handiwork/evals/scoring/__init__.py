"""Scoring code shared by several benchmarks."""
