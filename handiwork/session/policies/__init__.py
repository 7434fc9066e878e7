"""The policies of a session: budget, repetition, condensation."""
