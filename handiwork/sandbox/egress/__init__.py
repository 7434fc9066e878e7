"""A sandbox's way out: one proxy for each sandbox, running outside it, which allows only the user's hosts."""
