"""Browser commands of the platform itself, used by benchmarks; agents do not see them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from .actions.calls import CallError, parse_calls
from .actions.elements import DoneWrong
from .actions.primitives import ACTIONS, goto
from .engine import Engine, describe_dialog
from .explain import failure
from .observation.targets import targets
from .window import Window

TIMEOUT = 50.0
"""Seconds that one command may take."""

_DESCRIBING = 5.0  # seconds to describe the elements of calls

_T = TypeVar("_T")


class CommandError(Exception):
    """A command failed; the message says why."""


async def run_command(engine: Engine, name: str, arguments: dict[str, Any], workspace: Path) -> Any:
    """Run a command and return its JSON value. Raises CommandError, LostError."""
    command = _COMMANDS.get(name)
    if command is None:
        raise CommandError(f"there is no command {name!r} of the browser: there are {', '.join(_COMMANDS)}")
    try:
        async with asyncio.timeout(TIMEOUT):
            return await command(_Commands(engine, workspace), **arguments)
    except TypeError as error:
        raise CommandError(f"{name}: {str(error).removeprefix('_Commands.')}") from error
    except DoneWrong as error:
        raise CommandError(f"{name}: {error}") from error
    except PlaywrightError as error:
        raise CommandError(f"{name}: {failure(error)}") from error
    except TimeoutError as error:
        raise CommandError(f"{name}: it took longer than {TIMEOUT:.0f} s") from error


class _Commands:
    """The commands, as methods of the same names."""

    def __init__(self, engine: Engine, workspace: Path) -> None:
        self._engine, self._workspace = engine, workspace

    async def open(
        self,
        url: str = "",
        viewport: tuple[int, int] = (1280, 720),
        storage_state: dict[str, Any] | None = None,
        har: str = "",
        locale: str = "en-US",
        timezone: str = "",
    ) -> Any:
        options: dict[str, Any] = {"storage_state": storage_state} if storage_state else {}
        if har:
            options |= {
                "record_har_path": self._workspace / har,
                "record_har_content": "embed",
                "record_har_mode": "full",
            }
        if timezone:
            options["timezone_id"] = timezone
        window = await self._engine.new_window(viewport=(viewport[0], viewport[1]), locale=locale, **options)
        await window.open_tab()
        await self._engine.replace(window)
        if url:
            await window.do(goto(window, url))
            if window.traffic.failure:
                raise CommandError(window.traffic.failure)
        page = await window.page()
        return {"url": page.url, "title": await self._result_of(window, page.title())}

    async def evaluate(self, expression: str, argument: Any = None) -> Any:
        window = await self._engine.window()
        page = await window.page()
        return await self._result_of(window, page.evaluate(expression, argument))

    async def visit(self, url: str, expression: str = "") -> Any:
        window = await self._engine.window()
        page = await window.open_in_background()
        try:
            await page.goto(url, wait_until="load")
            value = {"value": await page.evaluate(expression)} if expression else {"content": await page.content()}
            return {"url": page.url, **value}
        finally:
            await page.close()

    async def state(self) -> Any:
        window = await self._engine.window()
        page = await window.page()
        return {
            "url": page.url,
            "title": await self._title(window, page),
            "open_pages": [each.url for each in window.pages],
            "active_page": window.active,
        }

    async def targets(self, calls: str) -> Any:
        try:
            parsed = parse_calls(calls, ACTIONS)
        except CallError:
            parsed = []  # nothing of it will run
        window = await self._engine.window()
        page = await window.page()
        elements: list[list[dict[str, Any] | None]] = [[{}] for _ in parsed]
        dialog = window.dialog
        if dialog is None:
            session = await (await self._engine.chromium()).devtools.session(page)
            describing = asyncio.wait_for(targets(session, parsed), _DESCRIBING)
            with contextlib.suppress(TimeoutError, CommandError):
                elements = await self._result_of(window, describing)
        return {
            "url": page.url,
            "dialog": {"type": dialog.type, "message": dialog.message} if dialog else None,
            "calls": [
                {"name": call.name, "text": call.text, "arguments": call.arguments, "targets": found}
                for call, found in zip(parsed, elements, strict=True)
            ],
        }

    async def storage(self) -> Any:
        return await (await self._engine.window()).context.storage_state()

    async def request(self, url: str, method: str = "GET", data: Any = None) -> Any:
        window = await self._engine.window()
        answer = await window.context.request.fetch(url, method=method, data=data)
        try:
            return {"status": answer.status, "text": await answer.text()}
        finally:
            await answer.dispose()

    async def close(self) -> None:
        await self._engine.close_window()

    async def _title(self, window: Window, page: Page) -> str:
        with contextlib.suppress(CommandError):
            return await self._result_of(window, page.title())
        return ""

    async def _result_of(self, window: Window, work: Awaitable[_T]) -> _T:
        """Return the result of work that a dialog would block."""
        task = asyncio.ensure_future(work)
        if not await window.during(task):
            assert window.dialog is not None
            raise CommandError(f"a dialog is open: {describe_dialog(window.dialog, window.typed)}")
        return task.result()


_COMMANDS: dict[str, Callable[..., Awaitable[Any]]] = {
    command.__name__: command
    for command in (
        *(_Commands.open, _Commands.evaluate, _Commands.visit, _Commands.state),
        *(_Commands.targets, _Commands.storage, _Commands.request, _Commands.close),
    )
}
