"""What an agent puts into ``state.extra_data`` is an event, so it outlives the process and the agent's object."""

from __future__ import annotations

from handiwork.agents.base import Agent, Step
from handiwork.agents.state import State
from handiwork.events.action import AgentFinishAction, CmdRunAction
from handiwork.events.record import AgentDataEvent
from tests.session.bench import Bench


class Counter(Agent):
    """Counts its steps, and changes what it keeps in place."""

    async def step(self, state: State) -> Step:
        steps = state.extra_data.setdefault("steps", [])
        assert isinstance(steps, list)
        if len(steps) == 3:
            return AgentFinishAction(outputs={"steps": list(steps)})
        steps.append(len(steps) + 1)
        return CmdRunAction(command=f"echo {len(steps)}")


class Careless(Agent):
    """Keeps what no log can hold."""

    async def step(self, state: State) -> Step:
        state.extra_data["seen"] = object()  # pyright: ignore[reportArgumentType]
        return CmdRunAction(command="true")


async def test_a_new_process_goes_on_with_the_agents_data(bench: Bench) -> None:
    log = await bench.log()
    first = await bench.session([], log, agent=Counter, iterations=2)
    assert (await first.run("count")).extra_data == {"steps": [1, 2]}
    second = await bench.session([], log, agent=Counter, iterations=9)
    state = await second.run(None)
    assert state.outputs == {"steps": [1, 2, 3]}
    kept = [event.data for event in await log.read() if isinstance(event, AgentDataEvent)]
    assert kept == [{"steps": [1]}, {"steps": [1, 2]}, {"steps": [1, 2, 3]}]
    folded = State()
    for event in await log.read():
        folded.apply(event)
    assert folded == state


async def test_data_that_is_no_json_is_the_agents_error(bench: Bench) -> None:
    session = await bench.session([], await bench.log(), agent=Careless)
    state = await session.run("keep it")
    assert (state.agent_state, state.change.reason) == ("error", "agent")
    assert "Careless raised ValidationError" in state.change.content
