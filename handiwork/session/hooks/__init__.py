"""The user's hooks: when they run, and how their commands do."""
