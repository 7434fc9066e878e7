"""An agent that keeps data between its steps: run it with `--agent examples/custom_data.py:ScriptAgent`."""

from pydantic import BaseModel

from handiwork import Action, Agent, State
from handiwork.events.action import AgentFinishAction, CmdRunAction


class Progress(BaseModel):
    """The data: a session begins with the defaults, and a step's change is in the log together with its action."""

    commands: int = 0


class Summary(BaseModel):
    """The outputs that an agent gets which delegates to this one."""

    commands: int


class ScriptAgent(Agent[Progress]):
    """Runs the lines of its task as commands, one a step; after `kill -9` it resumes with the line that is next."""

    description = "Runs the lines of its task as commands, without a model."
    outputs = Summary

    def step(self, state: State[Progress]) -> Action:
        """Run the next line, or finish after the last one."""
        lines = state.task.splitlines()
        if state.data.commands == len(lines):
            return AgentFinishAction(outputs=Summary(commands=len(lines)).model_dump())
        state.data.commands += 1
        return CmdRunAction(command=lines[state.data.commands - 1])
