"""Runs of a benchmark: the plan, the rollouts and their results."""
