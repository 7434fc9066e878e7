"""Reading git repositories without running the programs they name."""
