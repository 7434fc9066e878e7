"""Swarms: no graph of theirs has a cycle, files keep them, and what is no swarm is told."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handiwork.agents.registry import find
from handiwork.agents.swarm import SwarmAgent
from handiwork.agents.swarm.graph import (
    DECISION,
    TEMPLATES,
    Swarm,
    SwarmEdge,
    SwarmError,
    SwarmNode,
    build,
    default_swarm,
    load,
    save,
)
from handiwork.agents.swarm.reinforce import draw, learn


@st.composite
def swarms(draw_: st.DrawFn) -> Swarm:
    """Any nodes, links without a cycle, and edges between any two nodes, both ways."""
    names = [f"a{number}/n" for number in range(draw_(st.integers(1, 7)))]
    pairs = [(a, b) for a in names for b in names if a != b] + [(a, DECISION) for a in names]
    links = draw_(st.sets(st.sampled_from([(a, b) for a, b in pairs if b == DECISION or a < b])))
    edges = draw_(st.permutations([pair for pair in pairs if pair not in links]))
    logits = draw_(st.lists(st.floats(-3, 3), min_size=len(edges), max_size=len(edges)))
    return Swarm(
        nodes=(
            *(SwarmNode(name=one, operation="direct") for one in names),
            SwarmNode(name=DECISION, operation=DECISION),
        ),
        links=tuple(links),
        edges=tuple(SwarmEdge(source=a, target=b, logit=x) for (a, b), x in zip(edges, logits, strict=True)),
    )


def places(graph: Swarm) -> dict[str, int]:
    """The places of nodes in an order in which each comes after its inputs; fails if there is a cycle."""
    found: dict[str, int] = {}
    names = [node.name for node in graph.nodes]
    while len(found) < len(names):
        ready = [n for n in names if n not in found and all(source in found for source in graph.inputs_of(n))]
        assert ready, f"a cycle: {graph.links}"
        found |= {name: len(found) for name in ready}
    return found


@given(swarms(), st.integers())
@settings(max_examples=40)
def test_no_graph_has_a_cycle(swarm: Swarm, seed: int) -> None:
    sample = draw(swarm, Random(seed))
    for graph in (sample.swarm, swarm.most_probable()):
        places(graph)
        assert set(swarm.links) <= set(graph.links)
        assert Swarm.model_validate(graph.model_dump()) == graph
        order = graph.order()
        assert order[-1] == DECISION
        assert len(set(order)) == len(order)
        for number, name in enumerate(order):
            assert set(graph.inputs_of(name)) <= set(order[:number])
    drawn = {(edge.source, edge.target) for n, edge in enumerate(swarm.edges) if sample.choices.get(n)}
    assert set(sample.swarm.links) == set(swarm.links) | drawn


@given(swarms(), st.integers())
@settings(max_examples=40)
def test_only_an_edge_that_would_close_a_cycle_is_not_asked_for(swarm: Swarm, seed: int) -> None:
    sample = draw(swarm, Random(seed))
    for number, edge in enumerate(swarm.edges):
        if number not in sample.choices:
            with pytest.raises(AssertionError, match="a cycle"):
                places(sample.swarm.model_copy(update={"links": (*sample.swarm.links, (edge.source, edge.target))}))


def test_of_two_edges_that_exclude_each_other_each_is_drawn_as_often() -> None:
    swarm = build(["io", "io"], "majority_vote")
    forth, back = ("io 1/answer", "io 2/answer"), ("io 2/answer", "io 1/answer")
    graphs = [draw(swarm, Random(seed)).swarm for seed in range(2000)]
    counts = [sum(pair in graph.links for graph in graphs) for pair in (forth, back)]
    # With a fixed order they would differ by a third: 0.4 against 0.6 * 0.4.
    assert abs(counts[0] - counts[1]) < 120


def test_an_untrained_swarm_is_the_ensemble_of_its_agents() -> None:
    graph = build(["io", "cot", "tot", "CoderAgent"], "references").most_probable()
    assert graph.inputs_of(DECISION) == ["io 1/answer", "cot 2/answer", "tot 3/combine", "CoderAgent 4/work"]
    assert graph.inputs_of("tot 3/combine") == ["tot 3/branch 1", "tot 3/branch 2", "tot 3/branch 3"]
    assert graph.node("CoderAgent 4/work").delegate == "CoderAgent"
    assert len(graph.order()) == 10


def test_edges_join_agents_both_ways_and_each_node_with_the_decision() -> None:
    swarm = build(["cot", "io"], "references")
    pairs = {(edge.source, edge.target) for edge in swarm.edges}
    cot = ["cot 1/step 1", "cot 1/step 2", "cot 1/answer"]
    others = {(a, "io 2/answer") for a in cot} | {("io 2/answer", a) for a in cot}
    assert pairs == others | {(a, DECISION) for a in [*cot, "io 2/answer"]}


def test_a_node_that_leads_nowhere_does_not_run() -> None:
    swarm = build(["io", "io"], "references")
    pairs = [(edge.source, edge.target) for edge in swarm.edges]
    aside, to_decision = pairs.index(("io 1/answer", "io 2/answer")), pairs.index(("io 1/answer", DECISION))
    assert swarm.realise([aside], lambda _: True)[0].order() == [DECISION]
    assert swarm.realise([aside, to_decision], lambda _: True)[0].order() == ["io 1/answer", DECISION]


@pytest.mark.parametrize("strategy", ["references", "majority_vote"])
def test_a_file_keeps_a_swarm_with_its_training(strategy: str, tmp_path: Path) -> None:
    swarm = build([*TEMPLATES, "CoderAgent"], strategy)  # type: ignore[arg-type]
    for seed in range(3):
        sample = draw(swarm, Random(seed))
        swarm = learn(swarm, [sample.choices], [seed / 3], cost=0.25)
    file = tmp_path / "swarm.json"
    save(swarm, file)
    assert load(file) == swarm
    assert [one.name for one in tmp_path.iterdir()] == ["swarm.json"]
    agent = find(str(file))
    assert issubclass(agent, SwarmAgent)
    assert agent.__name__ == "SwarmAgent"
    assert agent.swarm == swarm


NODE = {"name": "a/n", "operation": "direct"}
LAST = {"name": DECISION, "operation": DECISION}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"nodes": [NODE]}, "has one node of the operation 'decision'"),
        ({"nodes": [NODE, NODE, LAST]}, "two nodes have the name 'a/n'"),
        ({"nodes": [NODE, LAST], "links": [["b", DECISION]]}, "names 'b', which is no node"),
        ({"nodes": [NODE, LAST], "links": [[DECISION, "a/n"]]}, "leaves 'decision'"),
        ({"nodes": [NODE, LAST], "links": [["a/n", "a/n"]]}, "joins a node with itself"),
        (
            {"nodes": [NODE, NODE | {"name": "b"}, LAST], "links": [["a/n", "b"], ["b", "a/n"]]},
            "the links have a cycle",
        ),
        ({"nodes": [NODE | {"operation": "delegate"}, LAST]}, "names an agent in 'delegate'"),
        ({"nodes": [NODE | {"operation": "dream"}, LAST]}, "nodes.0.operation"),
        ({"nodes": [LAST], "strategy": "dice"}, "strategy"),
        ({"nodes": [LAST], "colour": "red"}, "colour"),
    ],
)
def test_what_is_no_swarm_is_told(fields: dict[str, object], told: str, tmp_path: Path) -> None:
    file = tmp_path / "swarm.json"
    file.write_text(json.dumps(fields))
    with pytest.raises(SwarmError, match=told):
        find(str(file))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SwarmError, match="cannot be read: No such file"):
        find(str(tmp_path / "none.json"))


def test_an_agent_of_the_hub_may_be_named_with_hyphens() -> None:
    swarm = build(("io", "swe-agent"), "references")
    assert [(node.name, node.delegate) for node in swarm.nodes if node.delegate] == [("swe-agent 2/work", "swe-agent")]


@pytest.mark.parametrize("name", ["own.md", "agents/own", "2", "", "my agent"])
def test_an_agent_of_no_valid_name_is_told(name: str) -> None:
    with pytest.raises(SwarmError, match=f"{name!r} cannot join a swarm: name io, cot, "):
        build(["io", name], "references")


def test_the_default_swarm_hears_an_agent_that_changes_files() -> None:
    swarm = default_swarm().most_probable()
    (node,) = (node for node in swarm.nodes if node.operation == "delegate")
    assert node.delegate == "CodeActAgent"
    assert node.name in swarm.inputs_of(DECISION)
