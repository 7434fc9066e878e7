"""``handiwork swarm``."""
