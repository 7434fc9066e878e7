"""Statistics, tables, plots and reports of runs."""
