"""MINT: tasks of reasoning and code, with feedback in natural language."""
