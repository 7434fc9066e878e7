"""Agents: their contract, the state and history they see, and their lookup by name."""
