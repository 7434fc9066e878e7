"""RepairAgent: repairs code until a check passes, by a search over candidates that are validated in forks."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from handiwork.agents.base import Agent, Step
from handiwork.agents.interface import TaskInputs
from handiwork.agents.repair import check as checks
from handiwork.agents.repair import localise
from handiwork.agents.repair.candidates import RETRIES, menu, propose
from handiwork.agents.repair.edits import edits_between
from handiwork.agents.repair.files import in_workspace
from handiwork.agents.repair.outcome import Outcome, patience
from handiwork.agents.repair.places import READ_MOST, Place, Project, files_to_read, suspects, unread_programs
from handiwork.agents.repair.progress import Candidate, RepairProgress, progress
from handiwork.agents.repair.validation import fork, waiting
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, AgentRejectAction, CmdRunAction

LEAST_WARM = 0.6
"""The share of the highest temperature at which the second series of candidates begins."""

WARMER = 0.1
"""The share of the highest temperature by which the temperature rises with each pass over the menu."""

SHORT_FILE = 6_000
"""Characters of the longest file that the outputs show."""

NAMED = 5
"""Files that could not be read that a rejection names."""

NO_CHECK = (
    "There is no check to repair by: the task names no test command in backticks, and the project shows no test "
    "runner. Name the command that must succeed, as in: make `make test` pass."
)


class RepairInputs(TaskInputs):
    """A delegate's inputs: ``check`` is the command that must succeed; if it is empty, the agent looks for one.

    There are at most ``rounds``, the first of one candidate, the others of ``candidates``. The first candidates are
    asked for at temperature 0, later ones up to ``temperature``.
    """

    check: str = ""
    candidates: int = Field(default=4, ge=1, le=16)
    rounds: int = Field(default=8, ge=1, le=50)
    temperature: float = Field(default=1.0, ge=0, le=2)


class RepairAgent(Agent):
    """Runs the check, localises the failure, and validates candidates in forks; the best one is kept each round."""

    description = "Repairs code until a check passes: several candidates a round, each tried in a copy of its own."
    inputs = RepairInputs
    sends_history = False

    async def step(self, state: State) -> Step:
        """Return the next action, which depends on the history alone."""
        inputs = state.inputs_as(RepairInputs)
        now = progress(state)
        if now.is_refused:
            return _reject("An action of the repair was not allowed.")
        if (listing := now.list_files(state.workspace)) is not None:
            return listing
        if (wait := waiting(state)) is not None:
            return wait
        if now.stale:
            return now.reads(sorted(now.stale))
        if changes := now.changes():
            return changes
        return await self._next(state, now, inputs)

    async def _next(self, state: State, now: RepairProgress, inputs: RepairInputs) -> Step:
        """Return the next action once the workspace's files are read and have the expected content."""
        listed = now.listed or []
        check = inputs.check.strip() or checks.named_check(now.task)
        if check is None:
            if reads := now.reads(checks.runner_files(listed)):
                return reads
            check = checks.runner(listed, now.originals)
        if check is None:
            return _reject(NO_CHECK)
        current = now.current
        command = in_workspace(state.workspace, check) if now.prefix or checks.moves(check) else check
        if current is None or now.first is None:
            return CmdRunAction(command=command)
        if now.trial is not None:
            return CmdRunAction(command=command, timeout=patience(now.first))
        if current.passed:
            return _finish(now, check)
        if checks.is_missing(check, current.output):
            return _reject(f"The check `{check}` cannot run here: a program is not installed, or there are no tests.")
        project = Project(check, current.output, listed, now.base)
        if reads := now.reads(files_to_read(project, now.unreadable)):
            return reads
        return await self._search(now, project, inputs)

    async def _search(self, now: RepairProgress, project: Project, inputs: RepairInputs) -> Step:
        """Return the next choice of places, or the next round of candidates."""
        unread = unread_programs(project, now.unreadable)
        if unread and (localise.WHICH_FILES in now.replies or not _has_room(project)):
            if localise.WHICH_FILES not in now.replies:
                return await localise.choose_files(self.llm, project, now.task, unread)
            chosen = localise.chosen_files(now.replies[localise.WHICH_FILES], unread)
            if reads := now.reads(chosen):
                return reads
        places = suspects(project)
        if len(places) > localise.FEW:
            if localise.WHICH_PLACES not in now.replies:
                return await localise.choose_places(self.llm, project, now.task)
            chosen_places = localise.chosen_places(now.replies[localise.WHICH_PLACES], project)
            places = [*places[:1], *chosen_places, *places[1:]]
        if not project.editable:
            return _give_up(now, project.check, "there is no file to repair that does not belong to the check")
        if len(now.rounds) >= inputs.rounds:
            return _give_up(now, project.check, "")
        candidates = await self._candidates(now, project, places, inputs)
        if not candidates:
            return _give_up(now, project.check, "the model gives no further candidates")
        assert now.first is not None
        return fork(candidates, project.check, patience(now.first))

    async def _candidates(
        self, now: RepairProgress, project: Project, places: Sequence[Place], inputs: RepairInputs
    ) -> list[Candidate]:
        """Return a round's candidates; each pass over the menu has a higher temperature.

        The first round is one candidate, which often is right, and a candidate that the model returns twice ends a
        round: a validation takes less time than the model calls that it may save.
        """
        most = inputs.candidates if now.rounds else 1
        asks = menu(places, project.editable)
        known = [candidate for one in now.rounds for candidate in one.candidates]
        found: list[Candidate] = []
        for number in range(now.asked, now.asked + max(most, len(asks)) * bool(asks)):
            if len(found) == most:
                break
            series = number // len(asks)
            warmth = [_temperature(series + retry, inputs.temperature) for retry in range(RETRIES + 1)]
            candidate = await propose(self.llm, project, now.task, asks[number % len(asks)], warmth, known)
            if candidate is not None and any(map(candidate.is_same_as, found)):
                break
            if candidate is not None:
                found.append(candidate.model_copy(update={"number": number}))
        return found


def _temperature(series: int, highest: float) -> float:
    return 0.0 if series == 0 else highest * min(1.0, LEAST_WARM + WARMER * (series - 1))


def _has_room(project: Project) -> bool:
    return len(project.files) < READ_MOST and bool(project.editable)


def _finish(now: RepairProgress, check: str) -> AgentFinishAction:
    if not now.kept:
        return AgentFinishAction(outputs={"message": f"`{check}` succeeds already: nothing was changed."})
    message = f"`{check}` succeeds now. {_kept(now)}"
    return AgentFinishAction(outputs={"message": message, "files": _files(now)})


def _files(now: RepairProgress) -> str:
    """Return the changed files as they are now: the agent that delegated still knows them as they were before."""
    texts = {edit.path: now.base[edit.path] for edit in edits_between(now.originals, now.base)}
    return "\n".join(f"\n{path}:\n```\n{text.rstrip()}\n```" for path, text in texts.items() if len(text) <= SHORT_FILE)


def _give_up(now: RepairProgress, check: str, why: str) -> AgentRejectAction:
    """Return the rejection: the check that still fails, the kept changes, and the files that could not be read."""
    assert now.current is not None
    tried = sum(len(one.outcomes) for one in now.rounds)
    reason = f"`{check}` still fails ({now.current.summary}) after {tried} candidates"
    kept = _kept(now) if now.kept else "Nothing was kept: all files are as they were."
    unread = f"Not read: {', '.join(sorted(now.unreadable)[:NAMED])}. {now.reading_limits()}" if now.unreadable else ""
    parts = [f"{reason}{f': {why}' if why else ''}.", kept, unread, now.unlisted]
    return _reject(" ".join(filter(None, parts)))


def _kept(now: RepairProgress) -> str:
    """Return the kept changes, and whether each made the check pass or fail less."""
    paths = ", ".join(edit.path for edit in edits_between(now.originals, now.base))
    steps = "; ".join(f"{candidate.target} ({_effect(outcome)})" for candidate, outcome in now.kept)
    return f"Changed {paths}: {steps}."


def _effect(outcome: Outcome) -> str:
    return "then it passes" if outcome.passed else f"then: {outcome.summary}"


def _reject(reason: str) -> AgentRejectAction:
    return AgentRejectAction(outputs={"reason": reason})
