"""Questions that skills in a sandbox ask the session's model, which is outside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from handiwork.errors import SandboxError
from handiwork.events.answers import TEXT_LIMIT
from handiwork.events.base import Part

MAX_QUESTIONS = 100
"""Questions of one action."""

AskModel = Callable[[str, Part], Awaitable[str]]
"""Returns the answer of the session's model to a question about a picture or sound. Raises QuestionError."""


class QuestionError(Exception):
    """The model cannot answer a question of a skill; the text tells the agent why."""


class ModelQuestions:
    """The questions of one action, answered one after the other beside it.

    ``fetch`` returns a question's picture or sound from the sandbox, ``send`` brings the answer, or the problem, there.
    """

    def __init__(
        self,
        ask: AskModel | None,
        fetch: Callable[[object], Awaitable[Part]],
        send: Callable[[int, str, str], Awaitable[None]],
    ) -> None:
        self._ask, self._fetch, self._send = ask, fetch, send
        self._turn = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, number: int, prompt: str, media: object) -> None:
        """Answer a question in the background. Raises SandboxError for more than MAX_QUESTIONS."""
        if len(self._tasks) == MAX_QUESTIONS:
            raise SandboxError(f"a cell asked the model more than {MAX_QUESTIONS} questions.")
        self._tasks.append(asyncio.create_task(self._answer(number, prompt, media)))

    async def drop(self) -> None:
        """Cancel the unanswered questions and their model calls. Raises the error of a failed one."""
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    async def _answer(self, number: int, prompt: str, media: object) -> None:
        async with self._turn:
            text, problem = "", ""
            try:
                part = await self._fetch(media)
                if self._ask is None:
                    raise QuestionError("there is no session whose model could answer")
                text = await self._ask(prompt[:TEXT_LIMIT], part)
            except QuestionError as error:
                problem = str(error)
            await self._send(number, text, problem)
