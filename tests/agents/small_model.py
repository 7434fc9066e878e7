"""A local model as guided agents meet it: without native tool calls, with a small window, bound to a grammar."""

from __future__ import annotations

from collections.abc import Sequence

from handiwork.agents.codeact import CodeActAgent
from handiwork.events.base import Action, Event
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.llm.types import Capabilities, Completion, Grammar, Message, OnDelta, ReplyForm, Tool
from tests.agents.states import state_of, task

RUN = "I run it.\n\n```bash\npython3 a.py\n```"
END = "It works.\n\n```finish\ndone\n```"


class Small:
    """A local model bound to a grammar: gives these replies in turn, and keeps how it was asked."""

    name = "small"
    capabilities = Capabilities(tools=False, grammar=True, protocol="text", window=16_384)

    def __init__(self, *replies: str) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[str, float | None]] = []
        """The grammar and the temperature of each call."""
        self.prompts: list[str] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        form: ReplyForm | None = None,
        on_delta: OnDelta | None = None,
        temperature: float | None = None,
    ) -> Completion:
        if isinstance(form, Grammar):
            self.asked.append((form, temperature))
            self.prompts.append("\n".join(part.text for message in messages for part in message.content))
        return Completion(self._replies.pop(0))


def began(*paths: str, shown: bool = True, message: str = "Make a.py work.") -> list[Event]:
    overview = WorkspaceOverviewObservation(content="Files: ...", paths=paths, files=len(paths), shown=paths * shown)
    return [task(message), WorkspaceOverviewAction(budget=9), overview]


async def step(llm: Small, *events: Event) -> Action:
    actions = await CodeActAgent(llm).step(state_of(*events))
    assert not isinstance(actions, tuple)
    return actions[-1] if isinstance(actions, list) else actions
