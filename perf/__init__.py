"""What Handiwork costs on top of the model, beside its peers: ``python -m perf --help``."""
