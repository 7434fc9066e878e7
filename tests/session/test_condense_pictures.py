"""Pictures of old outputs leave the history with them: a window holds few pictures."""

from __future__ import annotations

from handiwork.events.action import IPythonRunCellAction
from handiwork.events.base import Part
from handiwork.events.observation import IPythonRunCellObservation
from handiwork.events.record import CompletionEvent
from handiwork.session.policies.condense import Condenser
from handiwork.session.policies.token_estimate import estimate
from tests.session.test_condense import Conversation, model

WINDOW = 32_768
PICTURE = Part(blob="0" * 64, media_type="image/png")


def plots(number: int) -> Conversation:
    """A task with cells that each draw a picture and print a short text."""
    talk = Conversation("Plot the sales.")
    for plot in range(number):
        completion = talk.put(CompletionEvent(model="m", response={}))
        cell = talk.put(IPythonRunCellAction(code=f"plot({plot})", completion=completion))
        text = f"plot {plot}\n".ljust(100, "-")
        talk.put(IPythonRunCellObservation(code="", content=text, images=(PICTURE,), cause=cell))
    return talk


async def test_old_pictures_collapse_with_their_outputs_and_new_ones_stay() -> None:
    llm, talk = model(window=WINDOW), plots(20)
    event = await Condenser(llm).condense(talk.state)
    assert event is not None
    assert event.how == "collapse"
    talk.put(event)
    assert "pictures: 1" in talk.outputs[0]
    assert talk.outputs[0].startswith("plot 0\n")
    seen = [isinstance(observation, IPythonRunCellObservation) for _, observation in talk.state.history]
    assert seen == sorted(seen)
    assert seen[-1]
    assert estimate(talk.state.history) < WINDOW / 2
    assert not llm.requests


async def test_what_pictures_take_of_the_window_is_made_free_when_the_model_refuses_the_prompt() -> None:
    talk, condenser = plots(20), Condenser(model(window=None))
    before = estimate(talk.state.history)
    event = await condenser.condense(talk.state, overflow=True)
    assert event is not None
    talk.put(event)
    assert event.how == "collapse"
    assert estimate(talk.state.history) < 0.6 * before
