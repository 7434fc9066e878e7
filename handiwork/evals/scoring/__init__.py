"""What several benchmarks use to score answers."""
