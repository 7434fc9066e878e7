"""What is sent for conversations that providers would refuse."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from handiwork.events.base import Part
from handiwork.llm.errors import TemplateRule
from handiwork.llm.normalise import NOT_DONE, Normaliser
from handiwork.llm.openai_compatible.wire import Wire, no_blobs
from handiwork.llm.types import Message, ToolCall


def sent(*messages: Message) -> list[dict[str, object]]:
    return [json.loads(text) for text in Wire(no_blobs, "m").texts(Normaliser().normalise(messages))]


def brief(*messages: Message) -> list[str]:
    return [f"{form['role']}: {form['content']}" for form in sent(*messages)]


def called(*ids: str, text: str = "") -> Message:
    return Message.text("assistant", text, tool_calls=tuple(ToolCall(i, "run", "{}") for i in ids))


def user(text: str) -> Message:
    return Message.text("user", text)


def assistant(text: str) -> Message:
    return Message.text("assistant", text)


def tool(call_id: str, text: str = "out") -> Message:
    return Message.text("tool", text, tool_call_id=call_id)


def test_an_ordinary_conversation_is_sent_as_it_is() -> None:
    messages = [Message.text("system", "s"), user("u"), called("a", "b"), tool("a"), tool("b"), user("v")]
    assert Normaliser().normalise(messages) == messages


def test_neighbours_of_one_role_are_merged() -> None:
    assert brief(user("a"), user("b"), assistant("c"), assistant("d"), user("e")) == [
        "user: a\n\nb",
        "assistant: c\n\nd",
        "user: e",
    ]


def test_system_messages_come_first_and_later_ones_from_the_user() -> None:
    assert brief(Message.text("system", "a"), Message.text("system", "b"), user("u")) == [
        "system: a\n\nb",
        "user: u",
    ]
    assert brief(user("u"), assistant("a"), Message.text("system", "late")) == ["user: u", "assistant: a", "user: late"]


def test_a_conversation_begins_and_ends_with_the_user() -> None:
    assert brief(assistant("a")) == ["user: Begin.", "assistant: a", "user: Go on."]
    assert brief() == ["user: Begin."]


def test_empty_messages_are_left_out_and_the_rest_still_alternates() -> None:
    assert brief(user("a"), assistant(""), user("b"), user("")) == ["user: a\n\nb"]


def test_a_call_without_an_answer_gets_one_that_says_so() -> None:
    assert brief(user("u"), called("a", "b"), tool("a"), user("stop")) == [
        "user: u",
        "assistant: ",
        "tool: out",
        f"tool: {NOT_DONE}",
        "user: stop",
    ]


def test_an_answer_that_comes_late_is_put_behind_its_call() -> None:
    assert brief(user("u"), called("a"), user("hey"), tool("a")) == ["user: u", "assistant: ", "tool: out", "user: hey"]


def test_an_answer_without_a_call_becomes_user_text() -> None:
    (form,) = sent(tool("lost", "result"))
    assert form["role"] == "user"
    assert str(form["content"]).endswith("result")


def test_an_id_that_is_used_again_answers_the_later_call() -> None:
    forms = sent(user("u"), called("a"), tool("a", "one"), called("a"), tool("a", "two"))
    assert [form["content"] for form in forms if form["role"] == "tool"] == ["one", "two"]


def test_an_answer_without_text_says_so() -> None:
    assert sent(user("u"), called("a"), tool("a", ""))[2]["content"] == "(no output)"


def test_broken_arguments_become_an_object_that_shows_them() -> None:
    broken = Message("assistant", (), (ToolCall("a", "run", '{"cmd": '), ToolCall("b", "run", "[1]")))
    form: dict[str, Any] = sent(user("u"), broken)[1]
    arguments = [json.loads(call["function"]["arguments"]) for call in form["tool_calls"]]
    assert arguments == [{"arguments": '{"cmd": '}, {"arguments": "[1]"}]


def test_images_of_an_answer_follow_from_the_user_after_all_answers() -> None:
    picture = Message("tool", (Part(text="seen"), Part(blob="ff", media_type="image/png")), tool_call_id="a")
    messages = Normaliser().normalise([user("u"), called("a", "b"), picture, tool("b"), user("and?")])
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert [bool(part.blob) for part in messages[-1].content] == [True, False]


def test_where_a_template_wants_it_an_answer_has_one_call() -> None:
    normaliser = Normaliser()
    normaliser.rules.add("single calls")
    talk = [user("u"), called("a", "b", text="both"), tool("a", "1"), tool("b", "2"), user("v")]
    wire = [json.loads(text) for text in Wire(no_blobs, "m").texts(normaliser.normalise(talk))]
    calls = [form.get("tool_call_id") or [call["id"] for call in form.get("tool_calls", [])] for form in wire]
    assert calls == [[], ["a"], "a", ["b"], "b", []]
    assert [form["content"] for form in wire] == ["u", "both", "1", "", "2", "v"]


def test_where_a_template_has_no_system_its_text_begins_the_first_message() -> None:
    normaliser = Normaliser()
    normaliser.rules.add("no system")
    talk = normaliser.normalise([Message.text("system", "Be brief."), user("u"), assistant("a"), user("v")])
    forms = map(json.loads, Wire(no_blobs, "m").texts(talk))
    assert [form["content"] for form in forms] == ["Be brief.\n\nu", "a", "v"]


def test_messages_of_blanks_are_left_out() -> None:
    assert brief(user("u"), assistant("\n\n"), user("Your reply was empty.")) == ["user: u\n\nYour reply was empty."]


def test_where_a_template_wants_it_the_assistant_speaks_between_a_tool_and_the_user() -> None:
    normaliser = Normaliser()
    normaliser.rules.add("alternating")
    messages = normaliser.normalise([user("u"), called("a", "b"), tool("a"), tool("b"), user("v")])
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "assistant", "user"]


roles = st.sampled_from(["system", "user", "assistant", "calls", "tool", "empty"])


RULES: tuple[TemplateRule, ...] = ("alternating", "single calls", "no system")


@given(st.lists(roles, max_size=30), st.sets(st.sampled_from(RULES)))
def test_any_conversation_comes_out_in_order_and_its_prefix_stays_the_same(
    kinds: list[str], rules: set[TemplateRule]
) -> None:
    made = {"calls": lambda: called("a", "b"), "tool": lambda: tool("a"), "empty": lambda: user("")}
    messages = [made[kind]() if kind in made else Message.text(kind, kind) for kind in kinds]  # type: ignore[arg-type]
    normaliser, wire = Normaliser(), Wire(no_blobs, "m")
    normaliser.rules |= rules
    forms = wire.texts(normaliser.normalise(messages))
    check_order([json.loads(form) for form in forms])
    longer = wire.texts(normaliser.normalise([*messages, assistant("more"), user("end")]))
    check_order([json.loads(form) for form in longer])
    if "single calls" in rules:
        assert all(len(json.loads(form).get("tool_calls", [])) < 2 for form in longer)
    assert "no system" not in rules or all(json.loads(form)["role"] != "system" for form in longer)
    # The last message may grow; all before it are the very same objects.
    kept = max(len(forms) - 2, 0)
    assert all(a is b or a == b for a, b in zip(forms[:kept], longer[:kept], strict=True))


def check_order(forms: list[dict[str, object]]) -> None:
    body = [form for form in forms if form["role"] != "system"]
    assert all(form["role"] != "system" for form in forms[1:])
    assert body[0]["role"] == "user"
    assert body[-1]["role"] in ("user", "tool")
    waiting: list[str] = []
    for before, form in zip([None, *body], body, strict=False):
        if form["role"] == "tool":
            assert form["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        if before is not None and before["role"] != "tool":
            assert before["role"] != form["role"]
        waiting = [call["id"] for call in form.get("tool_calls", ())]  # type: ignore[attr-defined]
    assert not waiting
