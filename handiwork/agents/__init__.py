"""The hub of agents: what an agent is, what it sees, and how it is found by name."""
