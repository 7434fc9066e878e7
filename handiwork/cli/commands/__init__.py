"""The commands of ``handiwork``."""
