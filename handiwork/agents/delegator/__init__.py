"""DelegatorAgent: it asks no model, and hands a task to agents that study, code and verify it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from handiwork.agents.base import Agent, Step
from handiwork.agents.history import History, is_sent_back, messages_of_user
from handiwork.agents.state import State
from handiwork.events.action import AgentDelegateAction, AgentFinishAction, AgentRejectAction, MessageAction
from handiwork.events.base import Action, Observation
from handiwork.events.observation import AgentDelegateObservation

STUDY, CODE, VERIFY = "StudyRepoForTaskAgent", "CoderAgent", "VerifierAgent"

ROUNDS = 3
"""How often the code is written before the agent gives up."""

SAYS = "The other developer says about the work:"
"""Begins the coder's message in the verifier's task: the answer to a question stands nowhere else."""


class DelegatorAgent(Agent):
    """Studies the code for the task once, then codes and verifies until the verifier says that the task is completed.

    If the study gives up, its reason takes the place of the summary; if the verifier does, its reason is an objection.
    A delegate's question goes to the user, whose answer starts the work over with all the user's messages.
    """

    description = "Hands the task to agents that study the code, write it, and verify it until it is completed."
    sends_history = False

    async def step(self, state: State) -> Step:
        """Return the next delegation, or the end."""
        steps = _delegations(state.history)
        task: dict[str, JsonValue] = {"task": _task(state)}
        if not steps:
            return AgentDelegateAction(agent=STUDY, inputs=task)
        action, observation = steps[-1]
        if not isinstance(observation, AgentDelegateObservation) or not _has_result(observation):
            return _failure(action, observation)
        found = {"summary": _summary(steps, STUDY)}
        newest = state.history[-1][0]
        if is_sent_back(newest):
            return AgentDelegateAction(agent=CODE, inputs={**task, **found, "objections": newest.content})
        if action.agent == STUDY:
            return AgentDelegateAction(agent=CODE, inputs={**task, **found})
        said = _last(steps, CODE)
        done = said.get("message") or "; ".join(f"{name}: {value}" for name, value in said.items())
        if action.agent == CODE:
            return AgentDelegateAction(agent=VERIFY, inputs={"task": f"{_task(state)}\n\n{SAYS}\n\n{done}"})
        verdict = _summary(steps, VERIFY)
        if observation.outputs.get("completed"):
            return AgentFinishAction(outputs={"message": f"{done}\n\nVerified: {verdict}"})
        if sum(action.agent == CODE for action, _ in steps) >= ROUNDS:
            return _reject(f"The task is not completed after {ROUNDS} rounds: {verdict}")
        return AgentDelegateAction(agent=CODE, inputs={**task, **found, "objections": verdict})


_Delegations = list[tuple[AgentDelegateAction, Observation | None]]


def _delegations(history: History) -> _Delegations:
    """Return the delegations since the user's last message."""
    last = max((message.id for message in messages_of_user(history)), default=0)
    return [(action, o) for action, o in history if isinstance(action, AgentDelegateAction) and action.id > last]


def _task(state: State) -> str:
    """Return all messages of the user as one text."""
    return "\n\n".join(message.content for message in messages_of_user(state.history))


def _has_result(observation: AgentDelegateObservation) -> bool:
    """Return whether the work goes on: a study or a verifier that gives up does not end it."""
    return observation.outcome == "finished" or (observation.outcome == "rejected" and observation.agent != CODE)


def _last(steps: _Delegations, agent: str) -> Mapping[str, JsonValue]:
    """Return the outputs of the agent's last delegation."""
    outcomes = (o for a, o in reversed(steps) if a.agent == agent and isinstance(o, AgentDelegateObservation))
    return next(outcome.outputs for outcome in outcomes)


def _summary(steps: _Delegations, agent: str) -> str:
    """Return the summary of the agent's last delegation, or its reason for giving up."""
    outputs = _last(steps, agent)
    return str(outputs.get("summary") or outputs.get("reason", ""))


def _failure(action: AgentDelegateAction, observation: Observation | None) -> Action:
    """Return the delegate's question to the user, or the end because the delegate failed."""
    if isinstance(observation, AgentDelegateObservation) and observation.outcome == "awaiting_user_input":
        return MessageAction(content=str(observation.outputs.get("message", "")), wait_for_response=True)
    return _reject(observation.text if observation is not None else f"{action.agent} gave no answer.")


def _reject(reason: str) -> AgentRejectAction:
    return AgentRejectAction(outputs={"reason": reason, "message": reason})
