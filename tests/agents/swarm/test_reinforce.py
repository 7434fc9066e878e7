"""REINFORCE: the gradient is the derivative of the expected score, and training finds whom to hear."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations, product
from random import Random

import pytest

from handiwork.agents.swarm.graph import DECISION, Swarm, Training, build
from handiwork.agents.swarm.reinforce import draw, gradient, learn, log_probability
from tests.evals.swarm_family import play

LOGITS = [0.3, -0.7, 1.1, 0.0]


def outcomes(swarm: Swarm) -> Iterator[tuple[float, dict[int, bool], Swarm]]:
    """Every graph that can be drawn, by every order of the edges: the order's probability, the choices, the graph."""
    orders = list(permutations(range(len(swarm.edges))))
    for order in orders:
        seen = set[tuple[tuple[int, bool], ...]]()
        for bits in product((False, True), repeat=len(order)):
            graph, choices = swarm.realise(order, lambda index, bits=bits: bits[index])
            if (key := tuple(choices.items())) not in seen:
                seen.add(key)
                yield 1 / len(orders), choices, graph


def score_of(graph: Swarm) -> float:
    """Any score: it differs from graph to graph."""
    return len(graph.order()) / 4 + 0.3 * (("io 1/answer", "io 2/answer") in graph.links) - 0.1 * len(graph.links)


def test_the_gradient_is_the_derivative_of_the_expected_score() -> None:
    swarm = build(["io", "io"], "majority_vote")
    assert [(edge.source, edge.target) for edge in swarm.edges][:2] == [
        ("io 1/answer", "io 2/answer"),
        ("io 2/answer", "io 1/answer"),
    ]  # which exclude each other
    cases = list(outcomes(swarm))

    def expected(logits: Sequence[float], value: Callable[[Swarm], float]) -> float:
        return sum(p * math.exp(log_probability(logits, choices)) * value(graph) for p, choices, graph in cases)

    assert expected(LOGITS, lambda _: 1.0) == pytest.approx(1)
    estimate = [0.0] * len(LOGITS)
    for p, choices, graph in cases:
        weight = p * math.exp(log_probability(LOGITS, choices))
        for index, slope in enumerate(gradient(LOGITS, [choices], [score_of(graph) - 0.37])):
            estimate[index] += weight * slope
    step = 1e-5
    for index in range(len(LOGITS)):
        above, below = ([x + sign * step * (n == index) for n, x in enumerate(LOGITS)] for sign in (1, -1))
        numerical = (expected(above, score_of) - expected(below, score_of)) / (2 * step)
        assert estimate[index] == pytest.approx(numerical, abs=1e-8)
        assert abs(numerical) > 1e-3


def test_the_gradient_of_several_samples_is_their_mean() -> None:
    samples: list[Mapping[int, bool]] = [{0: True, 2: False}, {1: True}]
    parts = [gradient(LOGITS, [sample], [advantage]) for sample, advantage in zip(samples, (0.5, -0.2), strict=True)]
    assert gradient(LOGITS, samples, [0.5, -0.2]) == pytest.approx([(a + b) / 2 for a, b in zip(*parts, strict=True)])


def test_graphs_are_drawn_with_the_probability_that_is_told() -> None:
    swarm = build(["io"], "majority_vote")
    drawn = sum(draw(swarm, Random(seed)).choices[0] for seed in range(3000))
    assert drawn / 3000 == pytest.approx(math.exp(log_probability([swarm.edges[0].logit], {0: True})), abs=0.03)


def test_extreme_logits_overflow_nothing() -> None:
    assert gradient([800.0, -800.0], [{0: True, 1: False}], [1.0]) == [0.0, 0.0]


def test_equal_scores_move_no_edge() -> None:
    swarm = build(["io", "io"], "majority_vote")
    samples = [draw(swarm, Random(seed)).choices for seed in range(4)]
    assert learn(swarm, samples, [1.0] * 4).edges == swarm.edges


@pytest.mark.parametrize("seed", range(3))
async def test_training_finds_whom_to_hear(seed: int) -> None:
    """Two truthful agents beside three that mislead: the ensemble is always outvoted."""
    random = Random(seed)
    swarm = build(["io", "io", "adversarial", "adversarial", "adversarial"], "majority_vote")

    async def accuracy() -> float:
        return sum([await play(swarm.most_probable(), letter) for letter in "KLMNOPQR"]) / 8

    untrained = await accuracy()
    for _ in range(80):
        samples = [draw(swarm, random) for _ in range(4)]
        scores = [await play(sample.swarm, random.choice("ABCDEF")) for sample in samples]
        swarm = learn(swarm, [sample.choices for sample in samples], scores)
    assert (untrained, await accuracy()) == (0.0, 1.0)
    heard = set(swarm.most_probable().inputs_of(DECISION))
    assert heard
    assert heard <= {"io 1/answer", "io 2/answer"}
    means = [iteration.mean for iteration in swarm.training.iterations]
    assert sum(means[-20:]) > sum(means[:20]) + 5


def test_the_cost_of_a_training_has_that_of_prompts_and_of_iterations_that_did_not_end() -> None:
    swarm = build(["io"], "majority_vote").model_copy(update={"training": Training(prompt_cost=0.5, lost_cost=0.25)})
    assert learn(swarm, [{0: True}], [1.0], cost=2.0).training.cost == 2.75
