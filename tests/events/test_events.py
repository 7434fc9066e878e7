"""Every event is frozen, closed, and the same after it was written as JSON and read back."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from handiwork.events.action import AgentFinishAction, CmdRunAction, MessageAction
from handiwork.events.base import Event, UnknownEvent
from handiwork.events.codec import EVENT_TYPES, from_dict, from_json, to_dict, to_json
from handiwork.events.record import CompletionEvent

BUILT_IN = [cls for cls in EVENT_TYPES.values() if cls.__module__.startswith("handiwork.events.")]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
moments = st.datetimes(timezones=st.just(UTC))

st.register_type_strategy(str, texts)
st.register_type_strategy(datetime, moments)


def events_of(cls: type[Event]) -> st.SearchStrategy[Event]:
    """Events with every field drawn, through validation."""
    given_fields: dict[str, st.SearchStrategy[Any]] = {"schema_version": st.just(1)}
    for name, info in cls.model_fields.items():
        if name != "schema_version":
            given_fields[name] = FIELDS[name] if name in FIELDS else st.from_type(cast("type[Any]", info.annotation))

    return st.fixed_dictionaries(given_fields).map(cls.model_validate)


parts = st.one_of(
    st.fixed_dictionaries({"text": texts}),
    st.fixed_dictionaries({"blob": st.just("ab" * 32), "media_type": st.just("image/png")}),
)
objects = st.dictionaries(texts, json_values, max_size=3)
positive = st.floats(min_value=0.001, max_value=1e9)
counts = st.integers(min_value=0, max_value=10**15)
limits = st.fixed_dictionaries({"iterations": st.none() | st.integers(1, 999), "cost": st.none() | positive})
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": counts,
    "timestamp": moments,
    "timeout": st.none() | positive,
    "tool_call_id": st.none() | texts,
    "end": st.integers(1, 10**6),
    "start": st.integers(1, 10**6),
    "size": counts,
    "images": st.lists(parts, max_size=2),
    "screenshot": st.none() | parts,
    "marked_screenshot": st.none() | parts,
    "inputs": objects,
    "outputs": objects,
    "arguments": objects,
    "settings": objects,
    "data": objects,
    "response": objects,
    "children": st.lists(st.tuples(texts, objects), max_size=2),
    "outcomes": st.lists(
        st.fixed_dictionaries({"agent": texts, "outcome": st.just("finished"), "outputs": objects, "diff": texts}),
        max_size=2,
    ),
    "limits": limits,
    "count": st.integers(1, 1_000),
    "usage": st.fixed_dictionaries({"input": counts, "cache_read": counts}),
    "latency": finite,
    "duration": finite,
    "seconds": finite,
    "cost": st.none() | finite,
    "first_token": st.none() | finite,
}


@pytest.mark.parametrize("cls", BUILT_IN, ids=lambda cls: cls.__name__)
class TestEveryType:
    @settings(max_examples=25, deadline=None)
    @given(data=st.data())
    def test_comes_back_the_same_through_json(self, cls: type[Event], data: st.DataObject):
        event = data.draw(events_of(cls))
        text = to_json(event)
        assert from_json(text) == event
        assert type(from_json(text)) is cls
        assert to_json(from_json(text)) == text
        assert from_dict(to_dict(event)) == event
        assert to_dict(event) == json.loads(text)
        assert "\n" not in text

    @settings(max_examples=25, deadline=None)
    @given(data=st.data())
    def test_refuses_fields_it_does_not_have_and_cannot_be_changed(self, cls: type[Event], data: st.DataObject):
        event = data.draw(events_of(cls))
        with pytest.raises(ValidationError, match="surprise"):
            from_dict({**to_dict(event), "surprise": 1})
        with pytest.raises(ValidationError, match="frozen"):
            event.id = 5


@settings(deadline=None)
@given(st.dictionaries(texts, json_values, max_size=4), counts.map(lambda n: n + 1))
def test_an_unknown_type_is_kept_and_written_back_exactly(fields: dict[str, object], number: int):
    written = {"type": "FromTheFuture", "id": number, **{k: v for k, v in fields.items() if k not in ("type", "id")}}
    event = from_json(json.dumps(written))
    assert isinstance(event, UnknownEvent)
    assert event.id == number
    assert json.loads(to_json(event)) == written


def test_a_newer_schema_of_a_known_type_is_kept_as_unknown():
    written = {"type": "MessageAction", "schema": 2, "id": 4, "source": "robot", "words": ["a"], "cause": 3}
    event = from_dict(written)
    assert isinstance(event, UnknownEvent)
    assert (event.id, event.cause, event.source) == (4, 3, "environment")
    assert to_dict(event) == written


def test_an_unknown_event_takes_its_new_place_in_another_log():
    event = from_dict({"type": "FromTheFuture", "id": 4, "x": 1})
    assert to_dict(event.with_fields(id=9)) == {"type": "FromTheFuture", "id": 9, "x": 1}


@pytest.mark.parametrize(
    "text", ["", "[]", "1", '"x"', "{", '{"type":"CmdRunAction"}', '{"type":"CmdRunAction","schema":null}']
)
def test_what_is_no_event_is_a_value_error(text: str):
    with pytest.raises(ValueError, match=r"\S"):
        from_json(text)


def test_lone_surrogates_are_replaced_and_all_other_text_is_kept():
    event = AgentFinishAction(outputs={"a": "\ud800b", "n": "\0\u2028\U0001f600"}, thought="\udfff")
    back = from_json(to_json(event))
    assert isinstance(back, AgentFinishAction)
    assert back.outputs == {"a": "\ufffdb", "n": "\0\u2028\U0001f600"}
    assert back.thought == "\ufffd"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_are_refused(number: float):
    with pytest.raises(ValidationError, match="finite"):
        CompletionEvent(model="m", response={}, cost=number)
    with pytest.raises(ValidationError, match="finite"):
        CompletionEvent(model="m", response={"logprobs": [number]})


def test_timestamps_are_utc_and_never_naive():
    there = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    event = MessageAction(content="", timestamp=there)
    assert event.timestamp == there
    assert event.timestamp.utcoffset() == timedelta(0)
    with pytest.raises(ValidationError, match="timezone"):
        CmdRunAction(command="ls", timestamp=datetime(2026, 1, 1))
