"""The loop that drives an agent, and what bounds it."""
