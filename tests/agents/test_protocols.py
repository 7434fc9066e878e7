"""The protocols: one set of tools, written and read in three ways; the golden files are to be read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact import CodeActAgent
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.protocols import BOUND_TEXT, JSON, NATIVE, TEXT, ModelReply, ReplyProtocol, protocol_of
from handiwork.agents.protocols.action_tools import ActionTool, parameters
from handiwork.agents.protocols.ask import read
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.protocols.transcript import conversation
from handiwork.agents.state import State
from handiwork.events.action import (
    AgentFinishAction,
    AgentRejectAction,
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    ForkAction,
    MessageAction,
)
from handiwork.events.base import Action
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, FileEditObservation
from handiwork.events.overview import WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.events.record import CondensationEvent
from handiwork.llm.errors import UnsupportedError
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import (
    Capabilities,
    Completion,
    JsonSchema,
    Message,
    OnDelta,
    ReplyForm,
    Tool,
    ToolCall,
    with_protocol,
)
from tests.agents.states import check_golden, native_actions, reply, shown, state_of, task

RUN = {"id": "c1", "name": "bash", "arguments": '{"command": "pytest"}'}
EDIT = {"id": "c2", "name": "edit", "arguments": '{"path": "a.py", "old": "1", "new": "2"}'}
PROTOCOLS: tuple[ReplyProtocol, ...] = (NATIVE, JSON, TEXT)


def history() -> State:
    output = CmdOutputObservation(command="pytest", content="1 failed\n", exit_code=1)
    return state_of(
        task("make the tests pass"),
        WorkspaceOverviewAction(budget=100),
        WorkspaceOverviewObservation(content="Files:\na.py (2 bytes)", paths=("a.py",), files=1),
        reply("I run the tests.", RUN),
        CmdRunAction(command="pytest", tool_call_id="c1"),
        output,
        task("and hurry"),
        reply("", EDIT),
        FileEditAction(path="a.py", old="1", new="2", tool_call_id="c2"),
        FileEditObservation(path="a.py", content="-1\n+2\n"),
        reply("", {"id": "c3", "name": "bash", "arguments": '{"command'}),
        ErrorObservation(content="The arguments of bash do not fit: ...", error_id="malformed"),
    )


async def prompt(window: int | None, **capabilities: bool) -> Sequence[Message]:
    """Return the first conversation of CodeActAgent with a model of these capabilities."""
    llm = ScriptedLLM([""] * 9, capabilities=Capabilities(window=window, **capabilities))
    overview = (
        WorkspaceOverviewAction(budget=100),
        WorkspaceOverviewObservation(content="Files:\na.py (2 bytes)", paths=("a.py",), files=1),
    )
    with pytest.raises(MalformedReplyError):
        await CodeActAgent(llm).step(state_of(task("make the tests pass"), *overview))
    return llm.requests[0]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_a_session_that_began_with_native_calls_reads_on_in_each_protocol(protocol: ReplyProtocol) -> None:
    check_golden(f"transcript_{protocol.name}", shown(conversation(history(), MessageCache(), protocol, ())))


@pytest.mark.parametrize(
    ("name", "window", "capabilities"),
    [
        ("codeact_native", None, {}),
        ("codeact_json", None, {"tools": False}),
        ("codeact_small_json", 16_384, {"tools": False}),
        ("codeact_small_text", 16_384, {"tools": False, "schema": False}),
    ],
)
async def test_the_prompt_is_the_golden_one(name: str, window: int | None, capabilities: dict[str, bool]) -> None:
    check_golden(name, shown(await prompt(window, **capabilities)))


def test_the_messages_of_earlier_events_stay_the_same_objects() -> None:
    cache, state = MessageCache(), history()
    first, second = conversation(state, cache, NATIVE, ()), conversation(state, cache, NATIVE, ())
    assert all(a is b for a, b in zip(first, second, strict=True))


def test_an_output_that_collapsed_is_shown_short_and_all_else_stays_the_same() -> None:
    output = CmdOutputObservation(command="pytest", content="1 failed\n" * 100, exit_code=1)
    state = state_of(task(), reply("", RUN), CmdRunAction(command="pytest", tool_call_id="c1"), output)
    cache = MessageCache()
    before = conversation(state, cache, NATIVE, ())
    state.apply(CondensationEvent(first=1, last=state.last_id, how="collapse").with_fields(id=state.last_id + 1))
    after = conversation(state, cache, NATIVE, ())
    assert shown(before[:2]) == shown(after[:2])
    assert "900 bytes in all, exit code 1; left out here" in (after[-1].content[0].text or "")


LOCAL = Capabilities(tools=False, grammar=True, protocol="text")


@pytest.mark.parametrize(
    ("capabilities", "protocol", "for_short_arguments"),
    [
        (Capabilities(), NATIVE, NATIVE),
        (Capabilities(tools=False), JSON, JSON),
        (Capabilities(tools=False, schema=False), TEXT, TEXT),
        (LOCAL, BOUND_TEXT, JSON),
        (replace(LOCAL, grammar=False), TEXT, JSON),
        (with_protocol(LOCAL, "json"), JSON, JSON),
        (with_protocol(LOCAL, "text"), BOUND_TEXT, BOUND_TEXT),
        (with_protocol(LOCAL, "native"), NATIVE, NATIVE),
    ],
)
def test_the_protocol_follows_from_the_capabilities(
    capabilities: Capabilities, protocol: ReplyProtocol, for_short_arguments: ReplyProtocol
) -> None:
    assert protocol_of(capabilities) is protocol
    assert protocol_of(capabilities, short=True) is for_short_arguments


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("```read PATH\n```", "PATH"),
        ("```write path\n1\n```", "PATH"),
        ("```write a.py\nCONTENT\n```", "CONTENT"),
        ("```bash\nCOMMAND\n```", "COMMAND"),
    ],
)
def test_a_word_that_stands_for_an_argument_is_no_argument(reply: str, word: str) -> None:
    with pytest.raises(
        MalformedReplyError, match=f"{word} in the form of a block stands for the {word.lower()} itself"
    ):
        read(TEXT, Completion(reply), TOOLS)
    assert read(TEXT, Completion(reply.replace(word, "./x").replace("path", "./path")), TOOLS)


class TestNative:
    def test_finish_runs_after_the_other_calls_of_a_reply(self) -> None:
        calls = (ToolCall("a", "finish", '{"message": "ok"}'), ToolCall("b", "bash", '{"command": "ls"}'))
        first, last = native_actions(Completion("", calls))
        assert isinstance(first, CmdRunAction)
        assert isinstance(last, AgentFinishAction)
        assert (first.tool_call_id, last.tool_call_id) == ("b", "a")

    def test_plain_text_asks_the_user(self) -> None:
        (action,) = native_actions(Completion("which one?"))
        assert isinstance(action, MessageAction)
        assert action.wait_for_response

    @pytest.mark.parametrize("arguments", ["[]", "null", '{"command": null}', "{", '{"cmd": "x"}'])
    def test_arguments_that_do_not_fit_are_malformed(self, arguments: str) -> None:
        with pytest.raises(MalformedReplyError, match="bash"):
            native_actions(Completion("", (ToolCall("a", "bash", arguments),)))

    @pytest.mark.parametrize(
        "text",
        [
            '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>',
            'I look.\n<tool_call>{"name": "bash", "arguments": {"command": "ls"}}',
            '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```',
            '{"name": "bash", "parameters": {"command": "ls"}}',
            'Now:\n{"function": {"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}}',
            '[{"tool": "bash", "args": {"command": "ls"}}]',
            '[TOOL_CALLS] [{"name": "bash", "arguments": {"command": "ls"}}]',
            '<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}',
            "I look.\n<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
            '<function=bash>{"command": "ls"}</function>',
            '<function_calls><invoke name="bash"><parameter name="command">ls</parameter></invoke></function_calls>',
            "<function=bash>\n<parameter=command>\nls",
        ],
    )
    @pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
    def test_calls_written_as_text_are_understood(self, protocol: ReplyProtocol, text: str) -> None:
        (action,) = read(protocol, Completion(text), TOOLS)
        assert isinstance(action, CmdRunAction)
        assert action.command == "ls"

    def test_parameters_in_tags_have_the_types_of_the_tools_arguments(self) -> None:
        run, write, fork = native_actions(
            Completion(
                "Both.\n<function=bash>\n<parameter=command>\nls\n-a\n</parameter>\n<parameter=background>\nTrue\n"
                "</parameter>\n<parameter=timeout>2</parameter>\n</function>\n<function=write>\n<parameter=path>a.json"
                '</parameter>\n<parameter=content>\n{"a": 1}\n</parameter>\n</function>\n<function=fork>\n'
                '<parameter=tasks>["a", "b"]</parameter>\n</function>'
            )
        )
        assert isinstance(run, CmdRunAction)
        assert (run.command, run.background, run.timeout, run.thought) == ("ls\n-a", True, 2, "Both.")
        assert isinstance(write, FileWriteAction)
        assert write.content == '{"a": 1}'
        assert isinstance(fork, ForkAction)
        assert len(fork.children) == 2

    def test_json_or_tags_that_are_no_call_are_a_message(self) -> None:
        (action,) = native_actions(Completion("Write <function=NAME> and <parameter=KEY>, and it is called."))
        assert isinstance(action, MessageAction)
        for record in ('{"name": "Ann", "age": 3}', '{"name": {"first": "Ann"}}', '{"tool": ["saw"], "action": null}'):
            (action,) = native_actions(Completion(f"It returns {record}."))
            assert isinstance(action, MessageAction)


ARGUMENTS = st.text(max_size=40)


@given(st.sampled_from(TOOLS), st.data())
def test_a_call_is_read_as_it_is_written(tool: Any, data: st.DataObject) -> None:
    """A session that changes its protocol shows earlier calls in the new one, which reads them as the same calls."""
    arguments: dict[str, Any] = {}
    for name, schema in tool.tool.parameters["properties"].items():
        if name in tool.tool.parameters["required"]:
            arguments[name] = data.draw(_value(schema))
    for protocol in (JSON, TEXT):
        written = protocol.reply(ModelReply("I do it.", (ToolCall("c1", tool.name, json.dumps(arguments)),)))
        again = protocol.read(written.content[0].text or "", (), TOOLS)
        assert again.text == "I do it."
        assert [(call.name, json.loads(call.arguments)) for call in again.calls] == [(tool.name, arguments)]


def _value(schema: JsonSchema) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    return st.lists(ARGUMENTS, max_size=2) if schema["type"] == "array" else ARGUMENTS


class TestText:
    def acts(self, text: str) -> list[Action]:
        return read(TEXT, Completion(text), TOOLS)

    def test_several_blocks_are_several_actions_and_the_text_is_their_thought(self) -> None:
        write, run = self.acts("A script.\n\n```write a/b.sh\necho 1\n```\n\nI try it.\n```sh\nsh a/b.sh\n```")
        assert isinstance(write, FileWriteAction)
        assert (write.path, write.content) == ("a/b.sh", "echo 1\n")
        assert isinstance(run, CmdRunAction)
        assert "A script." in run.thought

    def test_a_file_may_hold_fences(self) -> None:
        (write,) = self.acts("```write README.md\n# Use\n```bash\nls\n```\nThat is all.\n```")
        assert isinstance(write, FileWriteAction)
        assert write.content == "# Use\n```bash\nls\n```\nThat is all.\n"

    def test_a_fence_in_a_here_document_belongs_to_it(self) -> None:
        command = "cat > README.md <<'EOF'\n# App\n\n```\npython3 app.py\n```\nEOF\necho made"
        (run,) = self.acts(f"```bash\n{command}\n```\nIt is written.")
        assert isinstance(run, CmdRunAction)
        assert run.command == command
        (cut,) = self.acts("```bash\ncat > a <<'EOF'\ntext\n```\nThe end is missing.")
        assert isinstance(cut, CmdRunAction)
        assert cut.command == "cat > a <<'EOF'\ntext"

    @pytest.mark.parametrize("opening", ["finish", "write docs/use.md", 'write "my notes.md"'])
    def test_fences_without_a_word_come_in_pairs_in_a_text(self, opening: str) -> None:
        text = "It prints:\n```\n1\n```\nThat is one line."
        (action,) = self.acts(f"```{opening}\n{text}\n```")
        written = action.content if isinstance(action, FileWriteAction) else None
        answer = action.outputs["message"] if isinstance(action, AgentFinishAction) else None
        assert (written or answer) in (text, f"{text}\n")
        write, run = self.acts("```write a.py\nx = 1\n```\nI run it:\n```\nls\n```\n\n```bash\npython3 a.py\n```")
        assert isinstance(write, FileWriteAction)
        assert (write.content, isinstance(run, CmdRunAction)) == ("x = 1\n", True)

    def test_a_block_in_a_list_loses_the_indentation_of_its_fence(self) -> None:
        (write,) = self.acts("1. Make it:\n\n   ```write a.py\n   if x:\n       y()\n   ```")
        assert isinstance(write, FileWriteAction)
        assert write.content == "if x:\n    y()\n"

    def test_what_stands_beside_the_name_of_a_tool_is_its_text(self) -> None:
        for head in ("It prints 1.", 'message="It prints 1."'):
            (end,) = self.acts(f"```finish {head}\n```")
            assert isinstance(end, AgentFinishAction)
            assert end.outputs["message"] == "It prints 1."
        (run,) = self.acts("```bash python3 app.py\n```")
        assert isinstance(run, CmdRunAction)
        assert run.command == "python3 app.py"

    def test_a_block_that_names_no_tool_is_answered_with_the_tools_that_there_are(self) -> None:
        with pytest.raises(MalformedReplyError, match=r"```python, which is no tool\. To write a file"):
            self.acts("```python\nprint(1)\n```")
        few = [tool for tool in TOOLS if tool.name in ("ipython", "finish")]
        with pytest.raises(MalformedReplyError, match=r"which is no tool\. The tools are ipython, finish\. Write"):
            read(TEXT, Completion("```python\nprint(1)\n```"), few)

    def test_a_file_of_json_is_no_arguments(self) -> None:
        (write,) = self.acts('```write conf.json\n{"path": "/b"}\n```')
        assert isinstance(write, FileWriteAction)
        assert (write.path, write.content) == ("conf.json", '{"path": "/b"}\n')
        (write,) = self.acts('```write\n{"path": "a.txt", "content": "a"}\n```')
        assert isinstance(write, FileWriteAction)
        assert (write.path, write.content) == ("a.txt", "a")

    def test_a_path_with_spaces_is_quoted(self) -> None:
        (write,) = self.acts('```write "plan b.txt"\nb\n```')
        assert isinstance(write, FileWriteAction)
        assert write.path == "plan b.txt"
        for path in ("plan b.txt", "my notes/plan b.txt", "a.b c/d"):
            with pytest.raises(MalformedReplyError, match="Write a path with spaces in quotes"):
                self.acts(f"```write {path}\nb\n```")
        (write,) = self.acts("```write a.py (new)\nb\n```")
        assert isinstance(write, FileWriteAction)
        assert write.path == "a.py"

    def test_an_edit_is_a_search_and_its_replacement(self) -> None:
        block = "```edit a.py\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n```"
        first, second = self.acts(f"{block.format('x = 1', 'x = 2')}\n{block.format('gone', '')}")
        assert isinstance(first, FileEditAction)
        assert isinstance(second, FileEditAction)
        assert (first.path, first.old, first.new) == ("a.py", "x = 1", "x = 2")
        assert second.new == ""

    def test_a_body_of_replacements_alone_is_an_edit(self) -> None:
        (edit,) = self.acts("```write a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n```")
        assert isinstance(edit, FileEditAction)
        assert (edit.path, edit.old, edit.new) == ("a.py", "x = 1", "x = 2")

    @pytest.mark.parametrize(
        ("block", "call"),
        [
            ("bash\nwrite a.ini\n[http]\ntimeout = 5", "write a.ini\n[http]\ntimeout = 5"),
            ("bash\nfinish\nIt is done.", "finish\nIt is done."),
            ("bash\nfinish It is done.", "finish\nIt is done."),
            ("bash\nread src/a.py", "read src/a.py"),
            ("ipython\nbrowse tanks.html", "browse tanks.html"),
        ],
    )
    def test_a_block_without_its_fence_inside_a_block_of_code_is_that_block(self, block: str, call: str) -> None:
        actions = [self.acts(f"```{text}\n```")[0].model_dump(exclude={"timestamp"}) for text in (block, call)]
        assert actions[0] == actions[1]

    @pytest.mark.parametrize("command", ["write a.ini", "write a b\nc", "read line", "read a.py\nls", "jobs", "bash"])
    def test_other_commands_are_commands(self, command: str) -> None:
        (run,) = self.acts(f"```bash\n{command}\n```")
        assert isinstance(run, CmdRunAction)
        assert run.command == command

    def test_the_name_of_a_tool_alone_is_no_command(self) -> None:
        for runner in ("bash", "ipython"):
            with pytest.raises(MalformedReplyError, match="`finish` is no command"):
                self.acts(f"```{runner}\nfinish\n```")
        (end,) = self.acts("```finish\nreject\n```")
        assert isinstance(end, AgentFinishAction)
        assert end.outputs["message"] == "reject"

    def test_the_grammar_has_the_values_that_an_argument_may_have(self) -> None:
        arguments = parameters(["size"], size={"enum": [1, "very large"]}, quiet=("boolean", "No output."))
        tool = ActionTool(Tool("cut", "Cut.", arguments), lambda a: CmdRunAction(command=f"cut {a['size']}"))
        rules = BOUND_TEXT.request([tool])[1]
        assert """tool-0 ::= "```cut" " " ( "1" | "'very large'" ) ( ( " quiet=" ) word )* "\\n"  "```\"""" in str(
            rules
        )
        (action,) = read(BOUND_TEXT, Completion("I cut.\n\n```cut 'very large' quiet=true\n```"), [tool])
        assert isinstance(action, CmdRunAction)
        assert action.command == "cut very large"

    def test_short_arguments_stand_after_the_name(self) -> None:
        (action,) = self.acts("```bash background=true timeout=2.5\nsleep 9\n```")
        assert isinstance(action, CmdRunAction)
        assert (action.background, action.timeout) == (True, 2.5)

    def test_a_fence_that_the_model_left_out_is_understood(self) -> None:
        (action,) = self.acts("write report.py\nprint(1)\n```")
        assert isinstance(action, FileWriteAction)
        assert (action.path, action.content) == ("report.py", "print(1)\n")

    @pytest.mark.parametrize(
        "text", ["", " \n", "```edit a.py\nx = 2\n```", "```python\nprint(1)\n```", "```read\n```"]
    )
    def test_what_names_no_tool_or_lacks_an_argument_is_malformed(self, text: str) -> None:
        with pytest.raises(MalformedReplyError):
            self.acts(text)

    def test_a_reply_that_was_cut_is_told_to_be(self) -> None:
        with pytest.raises(MalformedReplyError, match="length limit"):
            read(TEXT, Completion("```edit a.py\n<<<<<<< SEARCH\nx", finish_reason="length"), TOOLS)

    def test_half_a_command_or_file_is_not_run_or_written(self) -> None:
        for block in ("```bash\nrm -r build", "```write a.py\nx = 1\n"):
            with pytest.raises(MalformedReplyError, match=r"length limit and was cut: write less\. Nothing was done"):
                read(TEXT, Completion(block, finish_reason="length"), TOOLS)
            assert read(TEXT, Completion(f"{block}\n```", finish_reason="length"), TOOLS)
            assert read(TEXT, Completion(block), TOOLS), "a model that stops by itself may leave the fence out"

    @pytest.mark.parametrize("protocol", [NATIVE, TEXT, JSON])
    def test_half_a_call_in_tags_is_not_carried_out(self, protocol: ReplyProtocol) -> None:
        call = "I clear.\n<function=bash>\n<parameter=command>\nrm -r build"
        second = f"{call}</parameter></function>\n<tool_call>{{"
        for cut in (call, f"{call}\n</parameter>", f"{call} '</function>' lib", second, "<tool_call>{"):
            with pytest.raises(MalformedReplyError, match="length limit"):
                read(protocol, Completion(cut, finish_reason="length"), TOOLS)
        (action,) = read(protocol, Completion(call), TOOLS)
        assert isinstance(action, CmdRunAction)
        if protocol is not TEXT:
            whole = f"{call}\n</parameter>\n</function>\n"
            assert read(protocol, Completion(whole, finish_reason="length"), TOOLS)

    @pytest.mark.parametrize("protocol", [NATIVE, TEXT, JSON])
    def test_line_breaks_in_the_strings_of_a_call_are_understood(self, protocol: ReplyProtocol) -> None:
        call = '{"name": "write", "arguments": {"path": "a.py", "content": "x = 1\ny = 2\n"}}'
        for text in (f"<tool_call>\n{call}\n</tool_call>", f"```json\n{call}\n```", call, f"{call}; {call}"):
            *others, action = read(protocol, Completion(text), TOOLS)
            assert isinstance(action, FileWriteAction)
            assert action.content == "x = 1\ny = 2\n"
            assert len(others) == text.count("; ")

    @pytest.mark.parametrize("protocol", [NATIVE, TEXT, JSON])
    @pytest.mark.parametrize(
        "lost",
        [
            '<tool_call>{"name": "bash", "arguments": {"command": "ls"</tool_call>',
            '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
            "<function=fly>\n<parameter=to>\nRome\n</parameter>\n</function>",
        ],
    )
    def test_calls_are_not_carried_out_without_one_of_them(self, protocol: ReplyProtocol, lost: str) -> None:
        done = '<tool_call>{"name": "finish", "arguments": {"message": "Done."}}</tool_call>'
        if "<function" in lost:
            done = "<function=finish>\n<parameter=message>\nDone.\n</parameter>\n</function>"
        for text in (lost, f"{lost}\n{done}"):
            with pytest.raises(MalformedReplyError):
                read(protocol, Completion(text), TOOLS)

    @pytest.mark.parametrize(
        "content",
        [
            "<project>\n<configuration>\n<parameters>true</parameters>\n</configuration>\n</project>",
            "The end is </function> here.\nAnd here: </invoke>.",
        ],
    )
    @pytest.mark.parametrize("end", ["\n</parameter>\n</function>", "\n</function>", "</parameter></function>\nDone."])
    def test_a_file_in_a_call_may_have_such_tags(self, content: str, end: str) -> None:
        text = f"<function=write>\n<parameter=path>\na.xml\n</parameter>\n<parameter=content>\n{content}{end}"
        (action,) = read(NATIVE, Completion(text), TOOLS)
        assert isinstance(action, FileWriteAction)
        assert action.content == content

    def test_a_cut_message_of_an_end_is_still_one(self) -> None:
        (end,) = read(TEXT, Completion("Here:\n\n```finish\nThe project adds", finish_reason="length"), TOOLS)
        assert isinstance(end, AgentFinishAction)
        assert end.outputs["message"] == "The project adds"

    def test_an_answer_that_was_cut_is_still_one(self) -> None:
        (action,) = read(NATIVE, Completion("The tags <b> and", finish_reason="length"), TOOLS)
        assert isinstance(action, MessageAction)

    def test_reject_and_fork_are_there_for_every_model(self) -> None:
        reject, fork = self.acts('```reject\nno data\n```\n```fork\n{"tasks": ["a", "b"]}\n```')
        assert isinstance(reject, AgentRejectAction)
        assert isinstance(fork, ForkAction)
        assert [inputs["task"] for _, inputs in fork.children] == ["a", "b"]


class Stubborn:
    """A model whose server refuses tools, then schemas, each once it meets them."""

    name = "stubborn"

    def __init__(self) -> None:
        self.capabilities = Capabilities(window=16_384)
        self.asked: list[str] = []

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
        self.asked.append(protocol_of(self.capabilities).name)
        if tools:
            self.capabilities = Capabilities(tools=False, window=16_384)
            raise UnsupportedError("it does not support tools")
        if form:
            self.capabilities = Capabilities(tools=False, schema=False, window=16_384)
            raise UnsupportedError("json_schema is not supported")
        return Completion("```finish\ndone\n```")


async def test_a_server_that_refuses_a_protocol_gets_the_next_one() -> None:
    llm = Stubborn()
    overview = WorkspaceOverviewObservation(paths=("a.py",), files=1)
    steps = await CodeActAgent(llm).step(state_of(task(), WorkspaceOverviewAction(budget=9), overview))
    assert isinstance(steps, list)
    assert isinstance(steps[0], AgentFinishAction)
    assert llm.asked[:3] == ["native", "json", "text"]
