"""How a model writes its actions: what a server can do decides, also in the middle of a session.

The server refuses what real servers refuse, in their words; ``tests.llm.standin`` also checks the order of messages.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from handiwork.agents.protocols.ask import SMALL_WINDOW
from handiwork.agents.repair.agent import RepairAgent
from handiwork.agents.state import State
from handiwork.events.action import CmdRunAction, MessageAction
from handiwork.events.observation import FileEditObservation, FileWriteObservation
from handiwork.llm.create import create
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities
from tests.llm.standin import QUICK, Json, Refusal, StandIn, Stream, answer, serving
from tests.session.bench import Bench, bash, calls, finish

pytestmark = pytest.mark.slow

NO_TOOLS = Refusal(400, {"error": {"message": "registry.ollama.ai/library/standin-1 does not support tools"}})
NO_SCHEMA = Refusal(400, {"error": {"message": "response_format of type json_schema is not supported"}})
NO_GRAMMAR = Refusal(400, {"error": {"message": "the field grammar is not supported"}})


class Served:
    """A bench whose sessions talk to a server, each as a new process does."""

    def __init__(self, bench: Bench, server: StandIn, stack: AsyncExitStack) -> None:
        self.bench, self.server, self._stack = bench, server, stack

    async def run(
        self, task: str, *plans: Refusal | Stream | Reply | str, model: str = "standin-1", **rest: Any
    ) -> State:
        """Run a session in which the server answers its requests so, one after the other."""
        for number, plan in enumerate(plans):
            reply = Reply(content=plan) if isinstance(plan, str) else plan
            self.server.planned.append(answer(reply, number) if isinstance(reply, Reply) else reply)
        llm = create(model, base_url=self.server.base_url, patience=QUICK)
        self._stack.push_async_callback(llm.close)
        state = await (await self.bench.session([], llm=llm, **rest)).run(task)
        assert not self.server.planned, "every reply was asked for"
        return state

    def asked(self) -> list[str]:
        """Return in which protocol each request so far asked, and forget them."""
        names = [protocol(request) for request in self.server.requests]
        self.server.requests.clear()
        return names

    def file(self, name: str) -> str:
        return (self.bench.workspace / name).read_text()


def protocol(request: Json) -> str:
    kinds = {"tools": "native", "response_format": "json", "grammar": "bound text"}
    (kind,) = [kinds[key] for key in kinds if key in request] or ["text"]
    return kind


def act(action: str, **arguments: Any) -> str:
    """An action as the JSON protocol has it."""
    return json.dumps({"thought": "", "action": action, **arguments})


@pytest.fixture
async def served(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path / "cache"))
    async with serving(StandIn()) as server, AsyncExitStack() as stack:
        yield Served(bench, server, stack)


class TestFallback:
    async def test_a_session_goes_on_in_the_next_protocol_when_the_server_refuses_one(self, served: Served) -> None:
        state = await served.run(
            "Write two files.",
            bash("echo one > a"),
            NO_TOOLS,
            act("write", path="b", content="two\n"),
            NO_SCHEMA,
            "Both are there.\n\n```finish\nIt is done.\n```",
        )
        assert (state.agent_state, state.outputs) == ("finished", {"message": "It is done."})
        assert (served.file("a"), served.file("b")) == ("one\n", "two\n")
        heard = "\n".join(str(message["content"]) for message in served.server.requests[-1]["messages"])
        assert "echo one > a" in heard, "the text protocol shows what was called natively"
        assert served.asked() == ["native", "native", "json", "json", "text"]

    async def test_what_a_server_refuses_is_remembered_for_the_model_and_no_other(self, served: Served) -> None:
        end = "```finish\ndone\n```"
        await served.run("Nothing to do.", NO_TOOLS, NO_SCHEMA, end)
        assert served.asked() == ["native", "json", "text"]
        assert (await served.run("Nothing to do.", end)).agent_state == "finished"
        assert served.asked() == ["text"]
        await served.run("Nothing to do.", finish(), model="another")
        assert served.asked() == ["native"]

    async def test_a_protocol_that_the_user_has_chosen_is_kept_and_the_refusal_told(self, served: Served) -> None:
        state = await served.run("Nothing to do.", NO_TOOLS, protocol="native")
        assert state.agent_state == "error"
        assert "does not support tools; `--protocol auto` lets another" in state.last_error
        assert served.asked() == ["native"]

    async def test_the_search_for_a_repair_needs_no_schemas(self, bench: Bench) -> None:
        """RepairAgent asks for the line to replace as JSON; without a schema its prompt alone says so."""
        # The repair has another size: Python takes a file of the same second and size for the one that it has compiled.
        (bench.workspace / "two.py").write_text("def two():\n    return 33\n")
        (bench.workspace / "test_two.py").write_text("import two\nassert two.two() == 2\n")
        async with serving(LineServer()) as server:
            llm = create("standin-1", base_url=server.base_url, patience=QUICK)
            session = await bench.session([], llm=llm, agent=RepairAgent)
            state = await session.run("Make `python3 test_two.py` pass.")
            await llm.close()
        assert state.agent_state == "finished", state.outputs
        assert (bench.workspace / "two.py").read_text() == "def two():\n    return 2\n"
        assert [protocol(request) for request in server.requests].count("json") == 1


class LineServer(StandIn):
    """Refuses schemas; knows a line when it is asked for one, and nothing else."""

    def _answer(self, messages: list[Json], *, chat: bool) -> Refusal | Stream:
        if "response_format" in self.requests[-1]:
            return NO_SCHEMA
        asks = '{"line": ..., "new": ...}' in messages[-1]["content"]
        line = json.dumps({"line": "    return 33", "new": "    return 2"})
        return answer(Reply(content=f"This one: {line}" if asks else "I cannot tell."), 0)


class TestChatTemplate:
    """What a llama.cpp server tells of its GGUF decides before the first request."""

    @pytest.mark.parametrize(
        ("template", "asked"),
        [
            ("{% if tools %}{{ tools }}{% endif %}{{ messages }}", ["native"]),
            ("{{ messages }}", ["json"]),
        ],
    )
    async def test_one_with_tools_means_native_calls(self, served: Served, template: str, asked: list[str]) -> None:
        settings = {"n_ctx": 2 * SMALL_WINDOW}
        served.server.pages["/props"] = {"default_generation_settings": settings, "chat_template": template}
        end = finish() if asked == ["native"] else act("finish", message="done")
        assert (await served.run("Nothing to do.", end)).agent_state == "finished"
        assert served.asked() == asked

    async def test_a_grammar_that_is_refused_leaves_the_text(self, served: Served) -> None:
        settings = {"n_ctx": 2 * SMALL_WINDOW}
        served.server.pages["/props"] = {"default_generation_settings": settings, "chat_template": ""}
        state = await served.run("Nothing to do.", NO_GRAMMAR, "```finish\ndone\n```", protocol="text")
        assert state.agent_state == "finished"
        assert served.asked() == ["bound text", "text"]


class TestHostedModel:
    """A strong model behind an OpenAI-compatible server."""

    async def test_it_gets_the_tools_and_no_overview(self, served: Served) -> None:
        await served.run("Nothing to do.", finish())
        (request,) = served.server.requests
        tools = [tool["function"]["name"] for tool in request["tools"]]
        assert {"bash", "read", "write", "edit", "ipython", "browse", "plan_task"} <= set(tools)
        assert {"delegate", "fork", "ask", "finish", "reject"} <= set(tools)
        assert [message["role"] for message in request["messages"]] == ["system", "user"]

    async def test_the_calls_of_a_reply_run_in_order_and_each_is_answered(self, served: Served) -> None:
        both = calls(
            ("write", {"path": "a", "content": "1\n"}), ("bash", {"command": "cat a"}), ("read", {"path": "a"})
        )
        state = await served.run("Look.", both, finish())
        assert state.agent_state == "finished"
        heard = [(m["tool_call_id"], m["content"]) for m in served.server.requests[-1]["messages"][-3:]]
        assert heard == [("call_0_0", "a is created."), ("call_0_1", "1\n[exit code 0]"), ("call_0_2", "1\n")]

    async def test_none_of_several_calls_runs_if_one_is_malformed_and_each_is_told_so(self, served: Served) -> None:
        both = calls(("bash", {"command": "touch a"}), ("shell", {"command": "ls"}))
        state = await served.run("Look.", both, finish())
        assert (state.agent_state, list(served.bench.workspace.iterdir())) == ("finished", [])
        for message in served.server.requests[-1]["messages"][-2:]:
            assert "None of the 2 calls of your reply was carried out: There is no tool 'shell'" in message["content"]

    async def test_a_reply_without_a_call_is_said_to_the_user_who_may_answer(self, served: Served) -> None:
        served.server.planned += [answer(Reply(content="Which of the two?"), 0), answer(finish("That one."), 1)]
        llm = create("standin-1", base_url=served.server.base_url, patience=QUICK)
        session = await served.bench.session([], llm=llm)
        state = await session.run("Take one.")
        assert state.agent_state == "awaiting_user_input"
        state = await session.run("The first.")
        assert state.outputs == {"message": "That one."}
        assert [m["content"] for m in served.server.requests[-1]["messages"][-2:]] == [
            "Which of the two?",
            "The first.",
        ]
        await llm.close()

    async def test_an_end_in_words_stands_once_the_check_has_succeeded(self, served: Served) -> None:
        """The command that they show is no call of the model's."""
        words = "It is written. Use it so:\n```bash\nsh a\n```"
        write = calls(("write", {"path": "a", "content": "echo 1\n"}))
        (served.bench.workspace / "Makefile").write_text("test:\n\tsh a\n")
        state = await served.run("Write a. `make test` must succeed.", write, words, json.dumps({"answer": "run"}))
        assert state.agent_state == "awaiting_user_input"
        *_, (check, _), (end, _) = state.history
        assert isinstance(check, CmdRunAction)
        assert isinstance(end, MessageAction)
        assert (check.command, end.content) == ("make test", words)


CAPABILITIES = {
    "native": Capabilities(),
    "json": Capabilities(tools=False),
    "text": Capabilities(tools=False, schema=False),
}


@pytest.mark.parametrize("name", CAPABILITIES)
async def test_an_edit_tells_the_syntax_error_that_it_makes(bench: Bench, name: str) -> None:
    written = {"path": "a.py", "content": "def f(:\n    pass\n"}
    edited = {"path": "a.py", "old": "(:", "new": "():"}
    replies: dict[str, list[Reply | str]] = {
        "native": [calls(("write", written)), calls(("edit", edited)), finish()],
        "json": [act("write", **written), act("edit", **edited), act("finish", message="done")],
        "text": [
            f"```write a.py\n{written['content']}```",
            f"```edit a.py\n<<<<<<< SEARCH\n{edited['old']}\n=======\n{edited['new']}\n>>>>>>> REPLACE\n```",
            "```finish\ndone\n```",
        ],
    }
    (bench.workspace / "large.txt").write_text("x" * 10_000)  # one that the overview does not show: `edit` is offered
    state = await (await bench.session(replies[name], capabilities=CAPABILITIES[name])).run("Write a.py.")
    assert state.agent_state == "finished"
    after_write, after_edit = (str(request[-1].content[0].text) for request in bench.llm.requests[1:])
    assert after_write == "a.py is created.\nSyntax error in line 1: invalid syntax"
    assert "Syntax error" not in after_edit
    errors = [o.syntax_error for o in bench.events if isinstance(o, FileWriteObservation | FileEditObservation)]
    assert errors == ["line 1: invalid syntax", ""]
