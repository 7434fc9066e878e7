"""Programs of a scoring sandbox: one process runs the tests, another serves the solution's functions."""

from pathlib import Path

FOLDER = Path(__file__).parent
