"""AgentlessAgent, the pipeline of the Agentless paper: localise, repair and validate in fixed stages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from handiwork.agents.agentless.pipeline import (
    BASE,
    CANDIDATE,
    EXCLUDED,
    FILES,
    FOLDERS,
    LOCATIONS,
    NEAREST,
    RELATED,
    SCRIPT,
    AgentlessInputs,
    AgentlessProgress,
    Pipeline,
)
from handiwork.agents.agentless.report import no_candidate, report
from handiwork.agents.agentless.reproduction import OTHER, REPRODUCED, RESOLVED, script_of
from handiwork.agents.agentless.retrieval import (
    LONGEST_TEXT,
    chunks_of,
    named_files,
    named_folders,
    nearest_files,
    retrieval_command,
)
from handiwork.agents.agentless.structure import Span, code, fit, skeleton, tree
from handiwork.agents.agentless.trial import TrialInputs, trials
from handiwork.agents.base import Agent, Completion, Step
from handiwork.agents.prompts import render
from handiwork.agents.protocols.ask import UNKNOWN_WINDOW, is_small
from handiwork.agents.repair import check as checks
from handiwork.agents.repair.edits import applied
from handiwork.agents.repair.files import fold, in_workspace
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, AgentRejectAction, AgentThinkAction, CmdRunAction
from handiwork.llm.errors import ContextWindowError, EmptyAnswerError, OutputLimitError
from handiwork.llm.types import Message

AT_ONCE = 4
"""Model calls of one step, side by side; a kill loses no more."""

RETRIEVAL_SECONDS = 120.0
"""Seconds after which the retrieval is stopped; then the model's files alone count."""

EMBEDDED_FILES, KEPT_FILES = 50, 10
"""Files whose chunks are embedded, and those that are kept of them."""

TEXTS_AT_ONCE = 8
"""Texts of one call for embeddings: the longest vectors of so many fit into an answer."""

TRIALS = 64
"""Trials of one step."""

SIDE_BY_SIDE = 4
"""How often the time limit of a lone trial one of many has: they share the processors."""

LEAST_SECONDS, LONGER = 15.0, 5.0
"""A candidate's tests get so many seconds, and so many times those of the unchanged code: it may loop without end."""

LENGTHS = (LONGEST_TEXT, LONGEST_TEXT // 2, LONGEST_TEXT // 4)
"""The lengths in characters to which texts are cut for embeddings, until the model takes them."""

RETRY_TEMPERATURE = 1.0
"""The temperature of further calls for a reply that names no place that is there."""

SHARE, MOST_TOKENS = 1.5, 128_000
"""Characters of files in a prompt for each token of the window, and the paper's limit of a window that is larger."""

_BUG = {"task": "The list of prices has no title.", "example": "shop/prices.py"}
_CODE = "def table(prices):\n    lines = []\n    for name, price in prices.items():\n        lines.append(name)\n"
_FIX = (
    "The lines begin without a title.\n\nshop/prices.py\n<<<<<<< SEARCH\n    lines = []\n=======\n"
    '    lines = ["Prices"]\n>>>>>>> REPLACE'
)
"""A worked example of a candidate for small windows: small models follow it better than the form alone."""

NO_COPIES = "Each candidate is validated in a copy of the workspace, and that cannot be made"


class Sample(NamedTuple):
    """A model call: ``summary`` describes the contribution of a reply, "" for a useless one."""

    label: str
    prompt: str
    temperature: float
    summary: Callable[[str], str]
    tries: int = 0
    example: tuple[Message, ...] = ()


class AgentlessAgent(Agent):
    """Localises the issue, asks for many candidates, validates each in a fork, and applies the one it ranks first.

    The model only writes replies; the history determines the next stage. To change counts and temperatures, subclass
    it with other defaults of ``inputs``.
    """

    description = "Agentless: localises an issue, samples many repairs, tests each in its own copy, keeps the best."
    inputs = AgentlessInputs
    sends_history = False

    async def step(self, state: State) -> Step:
        """Return the next action of the stage that the history has come to."""
        inputs = state.inputs_as(self.inputs)
        assert isinstance(inputs, AgentlessInputs)
        now = fold(AgentlessProgress, state)
        if now.is_refused:
            return _reject("An action was not allowed.")
        if now.problem:
            return _reject(f"{NO_COPIES}: {now.problem}")
        if (listing := now.list_files(state.workspace)) is not None:
            return listing
        if now.stale:
            return now.reads(sorted(now.stale))
        is_named = bool(inputs.tests.strip() or checks.named_test(now.task))
        if inputs.regression and not is_named and (reads := now.reads(checks.runner_files(now.listed or []))):
            return reads
        line = Pipeline(now, inputs, _check(now, inputs))
        if not line.programs:
            return _reject("There is no program to repair: the workspace has no source file that is not a test.")
        return await self._localise(state, line) or await self._repair(line) or await self._validate(line) or _end(line)

    def at_limit(self, state: State, limit: str) -> Step | None:
        """Apply the best candidate so far; pause without one, or at a cost, whose limit the user may raise."""
        inputs, now = state.inputs_as(self.inputs), fold(AgentlessProgress, state)
        assert isinstance(inputs, AgentlessInputs)
        line = Pipeline(now, inputs, _check(now, inputs))
        if limit == "cost" or now.is_refused or line.choice is None:
            return None
        end = _end(line)
        if not isinstance(end, AgentFinishAction):
            return end
        begin = f"The limit of {limit} came before the last stage, so this candidate is the best so far."
        return AgentFinishAction(outputs={"message": f"{begin}\n\n{end.outputs['message']}"})

    async def _localise(self, state: State, line: Pipeline) -> Step | None:
        """Return the next step up to the edit locations, None once they are known."""
        now, inputs = line.progress, line.inputs
        if line.check and BASE not in now.trials:
            return trials([TrialInputs(task=BASE, check=line.check, test_timeout=inputs.test_timeout)])
        listing = {"task": now.task, "tree": tree(line.programs, self._room)}
        most = max(5, inputs.files)
        asked = [Sample(FILES, render("agentless/files", **listing, most=most), 0.0, _files(line, most))]
        if inputs.retrieval and any("/" in path for path in line.programs):
            asked.append(Sample(FOLDERS, render("agentless/folders", **listing), 0.0, _folders(line)))
        if step := await self._ask(now, asked):
            return step
        if inputs.retrieval and now.found is None:
            command = in_workspace(state.workspace, retrieval_command(now.task, line.folders))
            return CmdRunAction(command=command, timeout=RETRIEVAL_SECONDS)
        if inputs.embeddings and now.nearest is None and now.found is not None:
            chosen = line.by_words[:EMBEDDED_FILES]
            return now.reads(chosen) or await self._nearest(line, chosen)
        if reads := now.reads(line.found):
            return reads
        if not line.files:
            return _reject(f"The suspicious files cannot be read: {', '.join(line.found)}. {now.reading_limits()}")
        skeletons = fit({path: skeleton(path, text) for path, text in line.files.items()}, self._room)
        prompt = render("agentless/related", task=now.task, skeletons=skeletons)
        if step := await self._ask(now, [Sample(RELATED, prompt, 0.0, _places(line), inputs.tries)]):
            return step
        shown = {path: code(line.files[path], spans, numbered=True) for path, spans in line.related.items()}
        prompt = render("agentless/locations", task=now.task, code=fit(shown, self._room))
        numbers = range(1, inputs.location_samples + 1)
        temperature = inputs.temperature if inputs.location_samples > 1 else 0.0
        return await self._ask(
            now, [Sample(f"{LOCATIONS} {n}", prompt, temperature, _places(line), inputs.tries) for n in numbers]
        )

    async def _nearest(self, line: Pipeline, paths: Sequence[str]) -> AgentThinkAction:
        """Return a thought that names the files whose chunks' embeddings are nearest to the task's, one a line."""
        known = line.progress.originals
        chunks = chunks_of({path: known[path] for path in paths if path in known})
        texts = [line.progress.task[:LONGEST_TEXT], *(text for _, text in chunks)]
        for length in LENGTHS:
            try:
                vectors = await self._vectors([text[:length] for text in texts], line.inputs.embeddings)
                break
            except ContextWindowError:  # of the model of the embeddings; the conversation is not too long
                continue
        else:
            return AgentThinkAction(
                thought=f"{NEAREST}: none, because the model takes no text of {LENGTHS[-1]} characters"
            )
        paths_of = [path for path, _ in chunks]
        found = nearest_files(vectors[0], list(zip(paths_of, vectors[1:], strict=True)), KEPT_FILES)
        return AgentThinkAction(thought="\n".join([f"{NEAREST}:", *found]))

    async def _vectors(self, texts: Sequence[str], model: str) -> list[tuple[float, ...]]:
        vectors: list[tuple[float, ...]] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            vectors += await self.llm.embed(texts[start : start + TEXTS_AT_ONCE], model)
        return vectors

    async def _repair(self, line: Pipeline) -> Step | None:
        """Return the next candidates of the model, None once it gave all."""
        samples: list[Sample] = []
        example = tuple(_example()) if is_small(self.llm.capabilities) else ()
        for group, spans in enumerate(line.locations, 1):
            shown = fit({path: code(line.files[path], spans[path]) for path in spans}, self._room)
            prompt = render("agentless/candidate", task=line.progress.task, code=shown, example=next(iter(shown)))
            for number in range(1, line.inputs.repair_samples + 1):
                temperature = line.inputs.temperature if number > 1 else 0.0
                label = f"{CANDIDATE} {group}.{number}"
                samples.append(Sample(label, prompt, temperature, _changes(line, label, spans), example=example))
        return await self._ask(line.progress, samples)

    async def _validate(self, line: Pipeline) -> Step | None:
        """Return the next step until every candidate is validated, None once they are or there is none."""
        now, inputs = line.progress, line.inputs
        if not line.distinct:
            return None
        if line.passing:
            tests = line.passing
            while len(tests) > 1 and sum(map(len, tests)) > self._room:
                tests = tests[: len(tests) // 2]
            prompt = render("agentless/regression", task=now.task, tests=tests)
            if step := await self._ask(now, [Sample(EXCLUDED, prompt, 0.0, str.strip)]):
                return step
        if inputs.reproduction:
            prompt = render(
                "agentless/reproduction",
                task=now.task,
                language=line.language.name,
                files=", ".join(line.files),
                reproduced=REPRODUCED,
                resolved=RESOLVED,
                other=OTHER,
            )
            if step := await self._ask(now, list(_scripts(prompt, inputs))):
                return step
            if line.untried:
                return trials([_script(line, label, script) for label, script in list(line.untried.items())[:TRIALS]])
        left = [(edits, label) for edits, label in line.distinct.items() if label not in now.trials]
        if not left or not (line.selected or line.elected):
            return None
        chosen = _script(line, line.elected[0], line.scripts[line.elected[0]]) if line.elected else TrialInputs(task="")
        checked = {"check": line.check, "tests": tuple(line.selected)} if line.selected else {}
        base = now.trials.get(BASE)
        alone = inputs.test_timeout
        if base is not None and base.seconds is not None:
            alone = min(alone, LEAST_SECONDS + LONGER * base.seconds)
        same = {"test_timeout": SIDE_BY_SIDE * alone, **checked}
        return trials(
            [chosen.model_copy(update={"task": label, "edits": edits, **same}) for edits, label in left[:TRIALS]]
        )

    @property
    def _room(self) -> int:
        """The characters of files that a prompt has room for."""
        return int(SHARE * min(self.llm.capabilities.window or UNKNOWN_WINDOW, MOST_TOKENS))

    async def _ask(self, now: AgentlessProgress, samples: Sequence[Sample]) -> list[AgentThinkAction]:
        """Ask for the first of the samples that have no reply yet, side by side; return them as thoughts."""
        missing = [sample for sample in samples if sample.label not in now.replies][:AT_ONCE]
        try:
            async with asyncio.TaskGroup() as group:
                calls = [group.create_task(self._sample(sample)) for sample in missing]
        except* Exception as errors:  # noqa: BLE001 - the session handles the first error as the step's own
            raise errors.exceptions[0] from None
        return [call.result() for call in calls]

    async def _sample(self, sample: Sample) -> AgentThinkAction:
        messages = [*sample.example, Message.text("user", sample.prompt)]
        event, summary = None, ""
        for temperature in (sample.temperature, *[RETRY_TEMPERATURE] * sample.tries):
            try:
                completion: Completion = await self.llm.complete(messages, temperature=temperature)
            except (EmptyAnswerError, OutputLimitError):
                continue
            event, summary = completion.event, sample.summary(completion.content)
            if summary:
                break
        return AgentThinkAction(thought=f"{sample.label}: {summary or 'nothing of use'}", completion=event)


def _check(now: AgentlessProgress, inputs: AgentlessInputs) -> str | None:
    """Return the test command that the inputs or the task name, else that of the runner's files that were read."""
    if not inputs.regression:
        return None
    return inputs.tests.strip() or checks.named_test(now.task) or checks.runner(now.listed or [], now.originals)


def _example() -> Iterator[Message]:
    yield Message.text("user", render("agentless/candidate", code={_BUG["example"]: _CODE}, **_BUG), example=True)
    yield Message.text("assistant", _FIX, example=True)


def _files(line: Pipeline, most: int) -> Callable[[str], str]:
    return lambda reply: ", ".join(named_files(reply, line.programs, most))


def _folders(line: Pipeline) -> Callable[[str], str]:
    return lambda reply: ", ".join(named_folders(reply, line.programs))


def _places(line: Pipeline) -> Callable[[str], str]:
    def summary(reply: str) -> str:
        found = line.located(reply).items()
        return "; ".join(f"{path} {', '.join(f'{a + 1}-{b + 1}' for a, b in spans)}" for path, spans in found)

    return summary


def _changes(line: Pipeline, label: str, spans: Mapping[str, Sequence[Span]]) -> Callable[[str], str]:
    def summary(reply: str) -> str:
        candidate = line.candidate(label, reply, spans)
        return f"changes {', '.join(edit.path for edit in candidate.edits)}" if candidate.patch else ""

    return summary


def _scripts(prompt: str, inputs: AgentlessInputs) -> Iterable[Sample]:
    for number in range(1, inputs.test_samples + 1):
        temperature = inputs.temperature if number > 1 else 0.0
        yield Sample(f"{SCRIPT} {number}", prompt, temperature, script_of)


def _script(line: Pipeline, label: str, script: str) -> TrialInputs:
    """Return the trial of a reproduction test in the unchanged code."""
    return TrialInputs(
        task=label,
        script=script,
        suffix=line.language.suffix,
        command=line.language.command,
        script_timeout=SIDE_BY_SIDE * line.inputs.script_timeout,
    )


def _end(line: Pipeline) -> Step:
    """Return the edits of the chosen candidate, and then the end; of one that cannot be made whole, nothing stays."""
    if line.choice is None:
        return _reject(no_candidate(line))
    candidate = line.candidates[line.choice.number]
    now = line.progress
    if blocked := now.blocked & {edit.path for edit in candidate.edits}:
        before = {path: now.actual[path] if path in now.blocked else text for path, text in now.originals.items()}
        if undo := now.changes_to(before):
            return undo
        return _reject(f"The chosen candidate cannot be applied: {', '.join(sorted(blocked))} cannot be edited.")
    if changes := now.changes_to(applied(now.originals, candidate.edits)):
        return changes
    return AgentFinishAction(outputs={"message": report(line, line.choice)})


def _reject(reason: str) -> AgentRejectAction:
    return AgentRejectAction(outputs={"reason": reason})
