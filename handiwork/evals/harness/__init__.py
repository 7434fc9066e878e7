"""Programs of a scoring sandbox: the tests run in one process, the solution in another that serves its functions."""

from pathlib import Path

FOLDER = Path(__file__).parent
