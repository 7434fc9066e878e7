"""RepairAgent, and how a task's check is found, which other agents use without the rest."""
