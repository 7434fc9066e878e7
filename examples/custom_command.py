"""A command of one's own beside those of Handiwork: `python examples/custom_command.py repair "pytest -q"`."""

from pathlib import Path
from typing import Annotated

import typer

import handiwork
from handiwork.cli.errors import guarded
from handiwork.cli.main import app, main
from handiwork.cli.options import ModelName, Workspace
from handiwork.errors import Exit


# A command that ships with Handiwork stands in handiwork/cli/main.py, with its work in a file of cli/commands.
@app.command()
def repair(
    test: Annotated[str, typer.Argument(help="A command that fails.")],
    workspace: Workspace = Path("."),
    model: ModelName = None,
) -> None:
    """Have an agent make the command TEST pass, and print what it changed as a patch."""

    def command() -> Exit:
        task = f"The command `{test}` fails. Find out why, and repair the code so that it passes."
        result = handiwork.run(task, workspace=workspace, model=model)
        print(result.diff, end="")
        return Exit.FINISHED if result.outcome == "finished" else Exit.FAILED

    guarded(command)


if __name__ == "__main__":
    main()
