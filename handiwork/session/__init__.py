"""The loop that drives an agent, and its limits."""
