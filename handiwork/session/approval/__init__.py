"""Decide which actions need the user's approval, and ask for it."""
