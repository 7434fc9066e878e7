"""The conditions of a run: all settings that determine a rollout."""

from __future__ import annotations

from pydantic import Field

from handiwork.events.base import Model
from handiwork.events.record import Limits, ProtocolName


class Conditions(Model):
    """The settings of a run.

    ``benchmark`` is a name or the absolute path of a file, ``data`` the absolute folder of its data. ``agent`` may be
    one of ``arms.ARMS``: then ``model`` is "". ``user_model`` plays the user, or judges, if the benchmark has one;
    ``feedback_model`` comments on the agent's steps, "" for a run without feedback. ``temperature`` is the least
    temperature of the agent's model calls, None for the agent's own. ``deadline`` is the running time of one rollout in
    seconds, and ``limits`` are the other limits of its session. ``sandbox``, ``image`` and ``allow_net`` are settings
    of the session; the hosts of the benchmark's own ``allow_net`` are added.
    """

    benchmark: str
    split: str
    data: str
    agent: str
    model: str
    base_url: str | None = None
    protocol: ProtocolName = "auto"
    user_model: str
    user_base_url: str | None = None
    feedback_model: str = ""
    temperature: float | None = Field(default=None, ge=0)
    limits: Limits = Limits()
    deadline: float = Field(default=1800.0, gt=0)
    sandbox: str = "bubblewrap"
    image: str | None = None
    allow_net: tuple[str, ...] = ()
