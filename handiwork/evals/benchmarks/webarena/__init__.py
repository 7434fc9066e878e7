"""WebArena and WebArena-Verified."""
