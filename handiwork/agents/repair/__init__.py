"""RepairAgent, and the search for a task's check, which other agents use too."""
