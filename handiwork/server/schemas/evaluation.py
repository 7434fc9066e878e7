"""Answers about a run of an evaluation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from handiwork.server.schemas.sessions import Line, Shape


class RolloutQuery(Shape):
    """The rollouts to show: all, with shortened answers, or that of a session, with whole answers."""

    session: Line = ""


class RolloutRow(Shape):
    """A rollout of a run, finished or running; the totals of a running one are those so far."""

    session: str = Field(description='the id of the session with its events; "" without events')
    id: str = Field(description="that of the instance")
    name: str = Field(description="the instance, and the trial unless it is the first")
    trial: int
    group: str
    status: Literal["running", "solved", "unsolved", "failed"] = Field(
        description='"failed" is no fault of the agent: there is no score'
    )
    outcome: str = Field(description="the status in more detail, as reports name it")
    why: str
    score: float | None
    expected: str = Field(description='the right answer; "" if there is no single one, or not yet')
    answer: str
    steps: int
    tokens: int
    cost: float | None = Field(description="USD; null is unknown")
    seconds: float


class RunView(Shape):
    """A run of an evaluation: ``total`` counts its rollouts, also those that have not begun."""

    benchmark: str
    split: str
    agent: str
    model: str
    metric: str
    folder: str
    total: int
    rollouts: list[RolloutRow]
