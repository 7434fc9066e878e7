"""Resource limits of a sandbox, and the means that enforce them."""
