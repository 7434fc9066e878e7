"""An agent's models: what they are called in errors and lists, and how a class gets the model of its data."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from handiwork.agents.base import Agent
from handiwork.agents.browsing import BrowsingAgent, VisualBrowsingAgent
from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.interface import AnyOutputs, Data, InterfaceError, TaskInputs, fields_text, parse
from handiwork.agents.registry import descriptions
from handiwork.agents.repair.agent import RepairAgent
from handiwork.agents.state import State
from tests.agents.states import state_of, task


class Notes(BaseModel):
    lines: list[str] = []
    depth: int = Field(default=0, alias="level")


class Keeper(Agent[Notes]):
    pass


class Heir(Keeper):
    pass


class Sharing(CodeActAgent, Agent[Notes]):
    """Gives an agent that keeps nothing a model of its own."""


class Generic(Agent[Data]):
    """An agent whose subclasses choose the model."""


class Chosen(Generic[Notes]):
    pass


class Free(Agent[Any]):
    pass


@pytest.mark.parametrize(
    ("agent", "model"),
    [
        (Keeper, Notes),
        (Heir, Notes),
        (Sharing, Notes),
        (Chosen, Notes),
        (Generic, None),
        (Free, None),
        (CodeActAgent, None),
    ],
)
def test_a_class_and_its_subclasses_have_the_model_of_their_data(
    agent: type[Agent], model: type[BaseModel] | None
) -> None:
    assert agent.data_model is model


@pytest.mark.parametrize("model", [dict, "Notes", list[int]])
def test_data_that_are_no_model_are_refused_where_the_class_is_defined(model: object) -> None:
    with pytest.raises(TypeError, match=r"Wrong: Agent\[...\] takes a pydantic model"):

        class Wrong(Agent[model]):  # type: ignore[valid-type]
            pass


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (TaskInputs, "task: str, ..."),
        (AnyOutputs, "..."),
        (BrowsingAgent.inputs, "task: str, url: str = ''"),
        (Notes, "lines: list[str] = [], level: int = 0"),
        (
            RepairAgent.inputs,
            "task: str, check: str = '', candidates: int = 4, rounds: int = 8, temperature: float = 1.0, ...",
        ),
    ],
)
def test_the_fields_of_a_model_are_told_as_code(model: type[BaseModel], text: str) -> None:
    assert fields_text(model) == text


def test_an_error_names_every_wrong_field_and_the_fields_there_are() -> None:
    with pytest.raises(InterfaceError) as raised:
        parse(Notes, {"lines": ["a", 1], "level": {}}, "the notes")
    assert str(raised.value) == (
        "the notes do not fit Notes: lines.1: Input should be a valid string; level: Input should be a valid integer. "
        "Notes has: lines: list[str] = [], level: int = 0."
    )


def test_the_inputs_of_the_sessions_own_task_are_its_first_message() -> None:
    state = state_of(task("look"))
    assert state.inputs_as(TaskInputs) == TaskInputs(task="look")
    state.inputs = {"task": "look", "url": "file:///a"}
    assert state.inputs_as(TaskInputs).model_dump() == state.inputs
    with pytest.raises(InterfaceError, match="the inputs of CodeActAgent do not fit Notes: level"):
        State(agent="CodeActAgent", inputs={"level": "high"}).inputs_as(Notes)


def test_an_agent_that_declares_nothing_takes_a_task_and_gives_anything() -> None:
    agents = {agent.name: agent for agent in descriptions()}
    assert (agents["CodeActAgent"].takes, agents["CodeActAgent"].gives) == ("task: str, ...", "...")
    assert agents["BrowsingAgent"].inputs["required"] == ["task"]
    assert agents["BrowsingAgent"].inputs["additionalProperties"] is False
    assert VisualBrowsingAgent.inputs is BrowsingAgent.inputs
