"""Resource limits of a sandbox, and what holds it to them."""
