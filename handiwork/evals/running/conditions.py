"""The conditions of a run: all that decides what a rollout does."""

from __future__ import annotations

from pydantic import Field

from handiwork.events.base import Model
from handiwork.events.record import Limits


class Conditions(Model):
    """What is run on what.

    ``benchmark`` is a name or the absolute path of a file, ``data`` the absolute folder of its data. ``user_model``
    plays the user, or judges, where the benchmark has one. ``deadline`` is seconds of running for one rollout, and
    ``limits`` what its session may spend besides.
    """

    benchmark: str
    split: str
    data: str
    agent: str
    model: str
    base_url: str | None = None
    user_model: str
    user_base_url: str | None = None
    limits: Limits = Limits()
    deadline: float = Field(default=1800.0, gt=0)
