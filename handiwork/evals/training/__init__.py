"""Training of SwarmAgent on a benchmark: the edges of its graph, and the prompts of its nodes."""
