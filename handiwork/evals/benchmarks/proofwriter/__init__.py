"""ProofWriter, with logic programs and a solver."""
