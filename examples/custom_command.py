"""A command of one's own beside those of Handiwork: `python examples/custom_command.py repair "pytest -q"`."""

from pathlib import Path
from typing import Annotated

import typer

import handiwork
from handiwork.cli.command import command
from handiwork.cli.main import app, main
from handiwork.cli.options import ModelName, Workspace
from handiwork.errors import Exit


# A command that ships with Handiwork is declared in handiwork/cli/main.py, and carried out by a file of cli/commands.
@command(app)
def repair(
    test: Annotated[str, typer.Argument(help="A command that fails.")],
    workspace: Workspace = Path("."),
    model: ModelName = None,
) -> Exit:
    """Let an agent make the command TEST pass, and print its changes as a patch."""
    task = f"The command `{test}` fails. Find out why, and repair the code so that it passes."
    result = handiwork.run(task, workspace=workspace, model=model)
    print(result.diff, end="")
    return Exit.FINISHED if result.outcome == "finished" else Exit.FAILED


if __name__ == "__main__":
    main()
