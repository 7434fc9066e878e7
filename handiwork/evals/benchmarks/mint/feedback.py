"""MINT's feedback in natural language: a second model comments on each step that has not solved the task.

As upstream (mint/agents/openai_feedback_agent.py, mint/envs/general_env.py, configuration "GT-textual"): the model
reads an example, the conversation so far and the reference, which it must not disclose, and answers as an expert at
temperature 0; its answer ends before it would speak for the others. It is not asked after a step that solves the task
or is the last one. The rules of the prompt are upstream's, in other words, and the example is another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from handiwork.agents.history import is_from_user
from handiwork.agents.state import State
from handiwork.evals.benchmark import Instance
from handiwork.events.base import Action, Observation
from handiwork.events.describe import describe

LONGEST = 3000
"""The characters kept of one step or observation: its start and its end."""

HEADING = "Expert feedback:"

OTHERS_TURN = re.compile(r"\n(?:Observation|Task|Assistant):")
"""The start of text that the feedback model writes in another speaker's name."""

PROMPT = f"""You are an expert: you judge how an assistant works on a task, and give it feedback.

---
Here is an example. Answer in its form.

Task:
A box holds 6 rows of 4 eggs, and 3 eggs are broken. How many are whole?
Assistant:
finish The answer is 7.
Observation:
That answer is wrong.
Correct solution (please DO NOT disclose the correct solution to the assistant): 21
{HEADING}
This is BAD. You add the rows and the eggs in a row instead of working out how many eggs the box holds. Find that number
first, and only then take the broken ones away.

---

{{trajectory}}

Correct solution (please DO NOT disclose the correct solution to the assistant): {{solution}}

Be concise and constructive. You are like a teacher: do not give the solution or details of the answer away, but guide
the assistant towards finding it, so that it thinks critically and answers accurately. Now give your feedback.
{HEADING}
"""


def prompt(instance: Instance, state: State, observation: str) -> str:
    """Return the prompt of the feedback on the last step; ``observation`` is the environment's answer to a proposal."""
    parts = [f"Task:\n{instance.row['prompt'].strip()}", *_steps(state)]
    if observation:
        parts.append(f"Observation:\n{observation}")
    return PROMPT.format(trajectory="\n".join(parts), solution=str(instance.row["reference"]).strip())


def message(answer: str) -> str:
    """Return the feedback model's answer as the agent reads it."""
    return f"{HEADING}\n{OTHERS_TURN.split(answer.strip())[0].strip()}"


def _steps(state: State) -> Iterator[str]:
    """Yield the steps of the conversation after the task, each with its observation."""
    started = False
    for action, observation in state.history:
        if is_from_user(action):
            if started:
                yield f"Observation:\n{_cut(action.content)}"
            started = True
        elif action.source == "agent":
            yield f"Assistant:\n{_cut(_action_text(action))}"
            if observation is not None:
                yield f"Observation:\n{_cut(_result_text(observation))}"


def _action_text(action: Action) -> str:
    description = describe(action)
    head = " ".join(filter(None, (description.verb, description.object)))
    return f"{head}: {description.body}" if description.body else head


def _result_text(observation: Observation) -> str:
    return observation.text.strip() or "(no output)"


def _cut(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n[...]\n{text[-half:]}"
