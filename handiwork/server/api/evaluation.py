"""The operation on a run of an evaluation: its rollouts, whose events are sessions."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from handiwork.log.store import Store
from handiwork.server.operations import Operation, OperationCall, RequestRefusedError
from handiwork.server.schemas.evaluation import RolloutQuery, RunView


class FollowedRun(Protocol):
    """A run of an evaluation, which may go on meanwhile."""

    def followed(self, data: Path) -> AbstractAsyncContextManager[Store]:
        """Follow the run, and give the store in the folder ``data`` that has the rollouts' sessions."""
        ...

    def view(self, session: str) -> RunView:
        """Return the run with all rollouts, or only that of the session if it is not ""."""
        ...


async def show_run(call: OperationCall[RolloutQuery, None]) -> RunView:
    """Return the run that this server shows, with its rollouts."""
    run: FollowedRun | None = call.request.app.state.run
    if run is None:
        raise RequestRefusedError(404, "this server shows no run: start one with `handiwork eval view DIR`")
    return run.view(call.query.session)


OPERATIONS = (Operation("GET", "/api/evaluation", show_run, RunView, query=RolloutQuery, refuses=(404,)),)
