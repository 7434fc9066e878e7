from tests.cli.conftest import cache, program

__all__ = ["cache", "program"]
