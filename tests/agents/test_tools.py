"""An agent's own tools: functions that become tools, and calls that become cells."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, JsonValue

from handiwork.agents.base import MalformedReplyError
from handiwork.agents.codeact.toolbox import TOOLS
from handiwork.agents.protocols.action_tools import with_functions
from handiwork.agents.tools import call, tools_of
from handiwork.events.action import IPythonRunCellAction
from handiwork.events.base import Action
from handiwork.llm.types import Completion, ToolCall
from tests.agents.states import native_actions


def echo(value: Any, times: int = 1) -> str:
    """Say `value` as JSON, several times."""
    import json

    return json.dumps(value) * times


def test_a_tool_is_its_name_its_docstring_and_the_schema_of_its_parameters() -> None:
    (tool,) = tools_of([echo])
    assert (tool.name, tool.description) == ("echo", "Say `value` as JSON, several times.")
    assert tool.parameters["required"] == ["value"]
    assert tool.parameters["properties"]["times"]["type"] == "integer"
    assert tool.parameters["additionalProperties"] is False


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class CountLinesAction(Action):
    """Count the lines of a file."""

    path: str
    most: int = Field(default=10, ge=1, description="Where to stop.")


class TestActionClass:
    def test_is_a_tool_of_its_own_fields(self) -> None:
        (tool,) = tools_of([CountLinesAction])
        assert (tool.name, tool.description) == ("count_lines", "Count the lines of a file.")
        assert tool.parameters["required"] == ["path"]
        assert list(tool.parameters["properties"]) == ["path", "most"]
        assert tool.parameters["properties"]["most"]["description"] == "Where to stop."

    def test_a_call_becomes_the_action(self) -> None:
        completion = Completion("Let me count.", (ToolCall("1", "count_lines", '{"path": "a"}'),))
        (action,) = native_actions(completion, [CountLinesAction])
        assert isinstance(action, CountLinesAction)
        assert (action.path, action.most, action.thought, action.tool_call_id) == ("a", 10, "Let me count.", "1")

    @pytest.mark.parametrize("arguments", [{}, {"path": "a", "most": 0}, {"path": "a", "source": "user"}, "a"])
    def test_a_call_that_does_not_fit_is_a_malformed_reply(self, arguments: JsonValue) -> None:
        with pytest.raises(MalformedReplyError, match="arguments of count_lines"):
            call(CountLinesAction, arguments)

    def test_one_without_a_docstring_is_refused(self) -> None:
        class SilentAction(Action):
            pass

        with pytest.raises(TypeError, match="SilentAction cannot be a tool: it has no docstring"):
            tools_of([SilentAction])


def test_an_action_cannot_have_the_name_of_one_of_handiwork() -> None:
    with pytest.raises(TypeError, match="there is an event CmdRunAction already"):
        type("CmdRunAction", (Action,), {})


@given(JSON)
def test_the_cell_gives_the_function_exactly_what_the_model_gave(value: JsonValue) -> None:
    cell = call(echo, {"value": value})
    assert isinstance(cell, IPythonRunCellAction)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.parse(cell.code), "<cell>", "exec"), {})
    assert json.loads(printed.getvalue()) == value


@pytest.mark.parametrize(
    "arguments", [{}, {"value": 1, "times": "many"}, {"value": 1, "other": 2}, [1], None, {"value": math.inf}]
)
def test_arguments_that_do_not_fit_go_back_to_the_model(arguments: JsonValue) -> None:
    with pytest.raises(MalformedReplyError, match="echo"):
        call(echo, arguments)


def undescribed(path: str) -> None:
    pass


def takes_what_has_no_name(*paths: str) -> None:
    """Take paths."""


def closes_over() -> Any:
    word = "word"

    def inner() -> str:
        """Say a word."""
        return word

    return inner


@pytest.mark.parametrize("function", [undescribed, takes_what_has_no_name, closes_over(), lambda: 1, len])
def test_a_function_that_cannot_be_a_tool_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="cannot be a tool"):
        tools_of([function])


def bash(command: str) -> None:
    """Run nothing."""


def test_a_tool_cannot_take_the_name_of_another() -> None:
    with pytest.raises(TypeError, match="there is one of this name"):
        with_functions(TOOLS, [bash])


def test_a_call_of_ones_own_tool_is_a_cell() -> None:
    calls = (ToolCall("a", "echo", '{"value": "x"}'),)
    (action,) = native_actions(Completion("", calls), [echo])
    assert isinstance(action, IPythonRunCellAction)
    assert action.code.endswith("(echo(value='x', times=1))")
    with pytest.raises(MalformedReplyError, match="There is no tool 'echo'"):
        native_actions(Completion("", calls))
