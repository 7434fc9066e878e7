"""What CodeNavAgent asks the model in each protocol, on states as a session would have logged them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from handiwork.agents.base import MalformedReplyError, Step
from handiwork.agents.codenav import CodeNavAgent, CodeNavNotes
from handiwork.agents.codenav.codebase import DescribeCodebaseAction, DescribeCodebaseObservation
from handiwork.agents.codenav.execution import RunCodeAction, RunCodeObservation, printed_by
from handiwork.agents.codenav.retrieval import (
    Prototype,
    QueryResult,
    RetrieveAction,
    RetrieveObservation,
    block_id,
    response,
)
from handiwork.agents.codenav.settings import CodeNavSettingsError
from handiwork.agents.registry import find
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, AgentRejectAction, AgentThinkAction, IPythonRunCellAction
from handiwork.events.base import Action, Event, Observation
from handiwork.events.code_memory import (
    CodeEpisode,
    CodeMemoryObservation,
    RecallCodeAction,
    RecallDocstringsAction,
    RememberCodeAction,
    RememberDocstringsAction,
    SummarizeCodeAction,
    UsefulBlock,
)
from handiwork.events.observation import CodeBlock, ErrorObservation, IPythonRunCellObservation
from handiwork.events.record import CompletionEvent
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities, Message
from tests.agents.states import check_golden, shown, state_of, task

Reply = Mapping[str, Any]

TAX = CodeBlock(
    file_path="shop/tax.py",
    type="FUNCTION",
    first=4,
    last=6,
    name="value_added_tax",
    prototype="def value_added_tax(net, rate=RATE)",
    code="def value_added_tax(net, rate=RATE):\n    return net * rate",
)
LONG = TAX.model_copy(
    update={
        "name": "long",
        "prototype": "def long(net)",
        "code": "def long(net):" + "\n    net += 1  # one more of the same steps" * 15,
    }
)
RESULTS = (
    QueryResult(
        query="tax",
        best=(TAX, LONG),
        further=(
            Prototype(id="1", file_path="shop/more.py", type="FUNCTION", name="more_tax", text="def more_tax(net)"),
        ),
        unseen=2,
    ),
)
FOUND = RetrieveObservation(results=RESULTS, content="\n\n".join(response(RESULTS, 16_000)))
RAN = RunCodeObservation(
    code="tax = value_added_tax(100)", content="STDOUT:\n19.0\n\nNEW AND CHANGED VARIABLES:\ntax = 19.0"
)
SOLVED = CodeEpisode(
    task="What is the tax on 100?",
    blocks=(UsefulBlock(file_path="shop/tax.py", type="FUNCTION", prototype=TAX.prototype),),
    solution=RAN.code,
)
XML = Capabilities(tools=False, schema=False)
PROTOCOLS = {"native": Capabilities(), "json": Capabilities(tools=False), "xml": XML}


def written(protocol: str, thought: str, kind: str, content: str) -> Reply:
    """A model's reply as it writes it in a protocol."""
    if protocol == "native":
        return {"content": thought, "tool_calls": [{"name": kind, "arguments": {"content": content}}]}
    if protocol == "json":
        return {"content": json.dumps({"thought": thought, "action": kind, "content": content})}
    elements = ("thought", thought), ("type", kind), ("content", content)
    return {"content": "\n".join(f"<{name}>\n{text}\n</{name}>" for name, text in elements)}


def episode(protocol: str) -> State[CodeNavNotes]:
    """The state of an episode that has described, searched, run and summarised."""
    events: list[Event] = [
        task("What is the tax on 100?"),
        DescribeCodebaseAction(),
        DescribeCodebaseObservation(content="shop: a library of taxes."),
    ]
    steps = [
        ("I look for it.", "search", "tax", RetrieveAction(query="tax"), FOUND),
        ("I run it.", "code", RAN.code, RunCodeAction(code=RAN.code), RAN),
        (
            "That is all.",
            "code_summary",
            RAN.code,
            SummarizeCodeAction(code=RAN.code),
            CodeMemoryObservation(content="The summary is kept."),
        ),
    ]
    for number, (thought, kind, content, action, observation) in enumerate(steps):
        reply = written(protocol, thought, kind, content)
        calls = [
            {"id": f"call{number}", "name": call["name"], "arguments": json.dumps(call["arguments"])}
            for call in reply.get("tool_calls", [])
        ]
        said: dict[str, Any] = {"content": reply["content"], "tool_calls": calls, "thinking": []}
        call_id = calls[0]["id"] if calls else None
        events += [CompletionEvent(model="m", response=said), action.with_fields(tool_call_id=call_id), observation]
    state: State[CodeNavNotes] = state_of(*events)
    state.data = CodeNavNotes(code_summary=RAN.code)
    return state


async def step(
    state: State[CodeNavNotes], *replies: Reply, agent: type[Any] = CodeNavAgent, capabilities: Capabilities = XML
) -> tuple[Step, ScriptedLLM]:
    # Replies of the script that earlier calls have used; a docstring's call is not in the history.
    asks = isinstance(state.history[-1][0], RecallDocstringsAction)
    said = 0 if asks else len({action.completion for action, _ in state.history if action.completion})
    llm = ScriptedLLM([*[""] * said, *replies], capabilities=capabilities)
    return await agent(llm).step(state), llm


def with_settings(folder: Path, text: str) -> type[Any]:
    (folder / "settings.toml").write_text(text)
    return find(str(folder / "settings.toml"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_episode_in_each_protocol(protocol: str) -> None:
    end = written(protocol, "It is 19.0.", "done", "True")
    action, llm = await step(episode(protocol), end, capabilities=PROTOCOLS[protocol])
    remembered, finish = cast("list[Action]", action)
    assert isinstance(finish, AgentFinishAction)
    assert finish.outputs == {"message": "It is 19.0.", "code_summary": RAN.code}
    assert isinstance(remembered, RememberCodeAction)
    assert remembered.episode == SOLVED
    check_golden(f"codenav_{protocol}", shown(llm.requests[0]))


async def test_blocks_that_were_shown_as_prototypes_are_remembered_if_the_code_uses_them() -> None:
    state = episode("xml")
    names = ("discount", "unused")
    prototypes = [
        Prototype(id=name, file_path="shop/sale.py", type="METHOD", name=f"Sale.{name}", text=f"def {name}(self)")
        for name in names
    ]
    ran = RunCodeObservation(code="Sale().discount()", content="")
    found = RetrieveObservation(results=(QueryResult(query="sale", further=tuple(prototypes)),))
    state.history += [(RetrieveAction(query="sale"), found), (RunCodeAction(code=ran.code), ran)]
    action, _ = await step(state, written("xml", "It is done.", "done", "True"))
    remembered = cast("list[Action]", action)[0]
    assert isinstance(remembered, RememberCodeAction)
    discount = UsefulBlock(file_path="shop/sale.py", type="METHOD", prototype="def discount(self)")
    assert remembered.episode.blocks == (*SOLVED.blocks, discount)


async def test_a_task_that_cannot_be_done_is_rejected() -> None:
    action, _ = await step(episode("xml"), written("xml", "There is no tax.", "done", "False"))
    assert isinstance(action, AgentRejectAction)
    assert action.outputs["reason"] == "There is no tax."


async def test_an_answer_in_place_of_true_is_told_to_the_user() -> None:
    action, _ = await step(episode("xml"), written("xml", "The tax is known.", "done", "<answer>19</answer>"))
    _, end = cast("list[Action]", action)
    assert isinstance(end, AgentFinishAction)
    assert end.outputs["message"] == "The tax is known.\n\n<answer>19</answer>"
    action, _ = await step(episode("xml"), written("xml", "There is no tax.", "done", "false."))
    assert isinstance(action, AgentRejectAction)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_next_search_knows_the_settings_and_what_was_seen(protocol: str, tmp_path: Path) -> None:
    settings = 'codebase = ["shop", "./lib/"]\nexpanded = 2\nprototypes = 4\n'
    search = written(protocol, "I look.", "search", "tax")
    capabilities = PROTOCOLS[protocol]
    agent = with_settings(tmp_path, settings)
    action, _ = await step(episode(protocol), search, agent=agent, capabilities=capabilities)
    assert isinstance(action, RetrieveAction)
    assert (action.folders, action.expanded, action.prototypes) == (("shop", "lib"), 2, 4)
    assert action.seen == (block_id(TAX), block_id(LONG))
    agent = with_settings(tmp_path, settings + 'retrieval = "prototypes"\n')
    action, _ = await step(episode(protocol), search, agent=agent, capabilities=capabilities)
    assert isinstance(action, RetrieveAction)
    assert (action.seen, action.expanded, action.prototypes) == (("1",), 0, 6)


@pytest.mark.parametrize(
    ("protocol", "reply", "rule"),
    [
        ("native", {"content": "Hello."}, "Your reply has no action: take one of search, code"),
        ("native", {"tool_calls": [{"name": "done", "arguments": {"content": "True"}}] * 2}, "exactly one action"),
        ("native", written("native", "I run.", "code", "  "), "the content is empty: it is Python code"),
        ("json", written("json", "I look.", "browse", "x"), "There is no tool 'browse'"),
        ("xml", {"content": "I search."}, "The thought is missing"),
        ("xml", written("xml", "I end.", "done", ""), "the content is empty: it is True or False"),
    ],
)
async def test_an_invalid_action_is_answered_with_the_rule(protocol: str, reply: Reply, rule: str) -> None:
    with pytest.raises(MalformedReplyError, match="RESPONSE .Invalid Action.:\n.*" + rule):
        await step(episode(protocol), reply, capabilities=PROTOCOLS[protocol])


async def test_a_docstring_of_the_model_replaces_longer_code(tmp_path: Path) -> None:
    agent = with_settings(tmp_path, 'retrieval = "code_or_docstring"\n')
    state = episode("xml")
    del state.history[-2:]  # the response is the last
    recall, llm = await step(state, agent=agent)
    assert isinstance(recall, RecallDocstringsAction)
    assert (recall.blocks, llm.requests) == ((block_id(LONG),), [])
    state.history.append((recall, CodeMemoryObservation()))
    remember, llm = await step(state, {"content": "Return net + 99; net is a number."}, agent=agent)
    question = shown(llm.requests[0])
    assert "Write the docstring of this function" in question
    assert LONG.code in question
    docstrings = {block_id(LONG): 'def long(net)\n    """Return net + 99; net is a number."""\n    ...'}
    assert state.data.docstrings == docstrings
    assert isinstance(remember, RememberDocstringsAction)
    assert remember.docstrings == docstrings
    state.history.append((remember, CodeMemoryObservation()))
    _, llm = await step(state, written("xml", "I look again.", "search", "tax"), agent=agent)
    asked = shown(llm.requests[0])
    assert "DocstringsAction" not in asked
    assert 'def long(net)\n    """Return net + 99; net is a number."""' in asked
    assert LONG.code not in asked
    assert TAX.code in asked  # the shorter one is shown as it is


async def test_a_docstring_of_an_earlier_session_is_used_and_not_written_again(tmp_path: Path) -> None:
    agent = with_settings(tmp_path, 'retrieval = "code_or_docstring"\n')
    state = episode("xml")
    del state.history[-2:]
    remembered = CodeMemoryObservation(docstrings={block_id(LONG): "def long(net): 'Return net + 99.'"})
    state.history.append((RecallDocstringsAction(blocks=(block_id(LONG),)), remembered))
    action, llm = await step(state, {}, written("xml", "I look again.", "search", "tax"), agent=agent)
    assert isinstance(action, RetrieveAction)
    (asked,) = map(shown, llm.requests)
    assert "Return net + 99." in asked
    assert LONG.code not in asked


async def test_tool_use_has_no_search_and_a_description_of_the_tools(tmp_path: Path) -> None:
    agent = with_settings(tmp_path, 'mode = "tool-use"\ndescription = "The shop computes taxes."\n')
    state: State[CodeNavNotes] = state_of(task("What is the tax on 100?"))
    state.data = CodeNavNotes()
    action, llm = await step(state, agent=agent)
    (describe,) = cast("list[Action]", action)
    assert isinstance(describe, DescribeCodebaseAction)
    assert (describe.tools, describe.readme, llm.requests) == ("prototypes", False, [])
    with pytest.raises(MalformedReplyError, match="no action of the type 'search'"):
        await step(episode("xml"), written("xml", "I look.", "search", "tax"), agent=agent)
    _, llm = await step(episode("xml"), written("xml", "Done.", "done", "True"), agent=agent)
    check_golden("codenav_tool_use", shown(llm.requests[0][:1]))


async def test_what_earlier_tasks_found_is_in_the_prompt() -> None:
    state = episode("xml")
    state.history.insert(1, (RecallCodeAction(task="x"), CodeMemoryObservation(episodes=(SOLVED, SOLVED))))
    _, llm = await step(state, written("xml", "I look.", "search", "tax"))
    prompt = shown(llm.requests[0])
    check_golden("codenav_recalled", prompt[prompt.index("# The codebase") : prompt.index("--- user")])
    assert "CodeMemoryObservation" not in prompt


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mode = 'guess'", "mode: Input should be 'code-use' or 'tool-use'"),
        ("codebase = ['../other']", "the folders are relative to the workspace and below it"),
        ("codebase = ['/etc']", "the folders are relative to the workspace and below it"),
        ("task = 'x'", "the task is no setting"),
        ("speed = 3", "speed: Extra inputs are not permitted"),
        ("mode =", "cannot be read"),
    ],
)
def test_settings_that_do_not_fit_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(CodeNavSettingsError, match=problem):
        with_settings(tmp_path, text)


def test_a_missing_file_of_settings_is_named(tmp_path: Path) -> None:
    with pytest.raises(CodeNavSettingsError, match=r"nowhere\.toml cannot be read"):
        find(str(tmp_path / "nowhere.toml"))


@pytest.mark.parametrize(("window", "code"), [(8_192, "price(7)"), (None, "price(8)")])
async def test_a_model_with_a_small_window_is_asked_again_instead_of_running_the_same_code_again(
    window: int | None, code: str
) -> None:
    state = episode("xml")
    state.history = [*state.history[:-1], (RunCodeAction(code="price(8)"), RunCodeObservation(code="price(8)"))]
    replies = [written("xml", "Again.", "code", "price(8)"), written("xml", "Differently.", "code", "price(7)")]
    capabilities = Capabilities(tools=False, schema=False, window=window)
    llm = ScriptedLLM([*[""] * 2, *replies], capabilities=capabilities)
    action = await CodeNavAgent(llm).step(state)
    assert isinstance(action, RunCodeAction)
    assert action.code == code


async def test_a_summary_that_a_small_model_keeps_again_is_not_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forms: list[object] = []
    complete = ScriptedLLM.complete

    async def keeping(self: ScriptedLLM, messages: Sequence[Message], tools: object, form: object, **more: Any) -> Any:
        forms.append(form)
        return await complete(self, messages, **more)

    monkeypatch.setattr(ScriptedLLM, "complete", keeping)
    kept = written("xml", "I keep it.", "code_summary", RAN.code)
    replies = [*[""] * 3, kept, written("xml", "The tax is 19.0.", "done", "True")]
    capabilities = Capabilities(tools=False, schema=False, grammar=True, protocol="text", window=8_192)
    steps = await CodeNavAgent(ScriptedLLM(replies, capabilities=capabilities)).step(episode("xml"))
    assert isinstance(cast("list[Action]", steps)[-1], AgentFinishAction)
    assert ['"code_summary"' in str(form) for form in forms] == [True, False]


async def test_what_code_printed_is_whole_and_ends_before_the_other_parts_of_the_response() -> None:
    code = RunCodeAction(code="print('19.0\\n\\n20.0'); tax = 19.0")
    reports = iter(("line 1: no such name", "Your variables: tax\ntax = 19.0"))

    async def run(action: Action) -> Observation:
        assert isinstance(action, IPythonRunCellAction)
        content = "19.0\n\n20.0\n" if action.code == code.code else next(reports)
        return IPythonRunCellObservation(code=action.code, content=content)

    ran = await code.execute(run)
    assert isinstance(ran, RunCodeObservation)
    assert "STATIC CHECKS:" in ran.content
    assert printed_by(ran) == "19.0\n\n20.0"


async def test_a_small_model_is_asked_once_for_the_result_in_its_answer() -> None:
    capabilities = Capabilities(tools=False, schema=False, window=8_192)
    state, replies = episode("xml"), [*[""] * 3, written("xml", "It is solved.", "done", "True")]
    with pytest.raises(MalformedReplyError, match="does not say the result") as error:
        await CodeNavAgent(ScriptedLLM(replies, capabilities=capabilities)).step(state)
    told = ErrorObservation(content=str(error.value), error_id="malformed")
    state.history = [*state.history, (AgentThinkAction(), told)]
    steps = await CodeNavAgent(ScriptedLLM(replies, capabilities=capabilities)).step(state)
    end = cast("list[Action]", steps)[-1]
    assert isinstance(end, AgentFinishAction)
    assert end.outputs["message"] == "It is solved.\n\nThe code printed:\n19.0"
    answered = [*[""] * 3, written("xml", "The tax is 19.0.", "done", "True")]
    steps = await CodeNavAgent(ScriptedLLM(answered, capabilities=capabilities)).step(episode("xml"))
    assert isinstance(cast("list[Action]", steps)[-1], AgentFinishAction)
