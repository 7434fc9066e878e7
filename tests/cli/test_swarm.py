"""``handiwork swarm``: training that is resumed by the same command, pictures, and the file as an agent."""

from __future__ import annotations

import asyncio
import json

import pytest

from handiwork.agents.swarm.graph import DECISION, load, save
from handiwork.agents.swarm.svg import draw_graph, draw_learning_curve
from tests.cli.program import Program
from tests.evals import swarm_family
from tests.evals.swarm_family import TeamServer
from tests.llm.standin import serving

FILE = swarm_family.__file__


@pytest.mark.slow
async def test_the_commands_train_resume_draw_and_measure_a_swarm(program: Program) -> None:
    server = TeamServer()
    async with serving(server):
        await train_and_measure(program, server.base_url)


async def train_and_measure(program: Program, base_url: str) -> None:
    data = program.folder / "letters"
    data.mkdir()
    (data / "letters.json").write_text(json.dumps(list("AB")))
    where = ("--data", str(data), "--sandbox", "none", "--model", "team", "--base-url", base_url)
    options = "--agents io,adversarial, --strategy majority_vote --batch 2"
    train = ("swarm", "train", FILE, *where, *options.split())
    done = await asyncio.to_thread(program, *train, "--iterations", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("iteration 1 of 1: score ")
    (program.workspace / "swarm.svg").unlink()
    done = await asyncio.to_thread(program, *train, "--iterations", "2", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("iteration 2 of 2: score ")
    swarm = load(program.workspace / "swarm.json")
    assert len(swarm.training.iterations) == 2
    assert [len(iteration.scores) for iteration in swarm.training.iterations] == [2, 2]
    assert (program.workspace / "swarm.svg").read_text() == draw_graph(swarm)
    assert (program.workspace / "swarm-learning.svg").read_text() == draw_learning_curve(swarm)
    heard = swarm.model_copy(update={"links": (("io 1/answer", DECISION),), "edges": ()})
    save(heard, program.workspace / "heard.json")
    measure = ("eval", "run", FILE, *where, "--agent", "heard.json", "--out", "../run", "--json")
    measured = await asyncio.to_thread(program, *measure)
    assert measured.returncode == 0, measured.stderr
    assert json.loads(measured.stdout)["score"]["mean"] == 1.0
    refused = program("swarm", "train", FILE, *where, "--agents", "nobody", "--out", "other.json")
    assert refused.returncode == 2
    assert "there is no agent 'nobody'" in refused.stderr
    assert not (program.workspace / "other.json").exists()
