"""The commands of ``handiwork eval``."""
