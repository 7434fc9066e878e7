"""REINFORCE on the edges of a swarm: graphs are drawn, their scores move the logits of the edges by Adam."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from handiwork.agents.swarm.graph import Swarm, Training, TrainingIteration, sigmoid

RATE, MOMENTUM, VARIANCE, EPSILON = 0.1, 0.9, 0.999, 1e-8
"""Adam's constants (Kingma and Ba, 2015); the rate is GPTSwarm's."""

MEMORY = 0.9
"""The weight of the past in the moving average of scores that is the baseline."""

Choices = Mapping[int, bool]
"""By the index of an edge whether it was drawn; edges that would have closed a cycle are missing."""


@dataclass(frozen=True)
class GraphSample:
    """A graph drawn from a swarm, and the choices that led to it."""

    swarm: Swarm
    choices: Choices


def draw(swarm: Swarm, random: Random) -> GraphSample:
    """Draw a graph without cycles.

    Edges come in a new random order, so that neither of two edges that exclude each other is favoured.
    """
    order = list(range(len(swarm.edges)))
    random.shuffle(order)
    return GraphSample(*swarm.realise(order, lambda index: random.random() < swarm.edges[index].probability))


def log_probability(logits: Sequence[float], choices: Choices) -> float:
    """Return the logarithm of the probability of the choices, given the order of the edges."""
    return sum(math.log(sigmoid(logits[index] if chosen else -logits[index])) for index, chosen in choices.items())


def gradient(logits: Sequence[float], samples: Sequence[Choices], advantages: Sequence[float]) -> list[float]:
    """Return the estimate of the expected score's gradient with respect to the logits (Williams, 1992).

    It is the mean over the samples of advantage times the gradient of ``log_probability``, which for an edge is 1 or 0,
    whether it was drawn, less its probability, and 0 for an edge that was not asked for.
    """
    estimate = [0.0] * len(logits)
    for choices, advantage in zip(samples, advantages, strict=True):
        for index, chosen in choices.items():
            estimate[index] += advantage * (chosen - sigmoid(logits[index])) / len(samples)
    return estimate


def learn(swarm: Swarm, samples: Sequence[Choices], scores: Sequence[float], cost: float = 0.0) -> Swarm:
    """Return the swarm after one iteration: its edges moved towards the samples whose scores exceed the baseline.

    The baseline is the moving average of the scores of earlier iterations; in the first, their mean.
    """
    past, logits = swarm.training, [edge.logit for edge in swarm.edges]
    mean = sum(scores) / len(scores)
    baseline = mean if past.baseline is None else past.baseline
    slope = gradient(logits, samples, [score - baseline for score in scores])
    zeros, number = (0.0,) * len(logits), len(past.iterations) + 1
    momentum = [MOMENTUM * m + (1 - MOMENTUM) * g for m, g in zip(past.momentum or zeros, slope, strict=True)]
    variance = [VARIANCE * v + (1 - VARIANCE) * g * g for v, g in zip(past.variance or zeros, slope, strict=True)]
    moved = [
        logit + RATE * (m / (1 - MOMENTUM**number)) / (math.sqrt(v / (1 - VARIANCE**number)) + EPSILON)
        for logit, m, v in zip(logits, momentum, variance, strict=True)
    ]
    return swarm.model_copy(
        update={
            "edges": tuple(
                edge.model_copy(update={"logit": logit}) for edge, logit in zip(swarm.edges, moved, strict=True)
            ),
            "training": Training(
                iterations=(*past.iterations, TrainingIteration(scores=tuple(scores), cost=cost)),
                baseline=MEMORY * baseline + (1 - MEMORY) * mean,
                momentum=tuple(momentum),
                variance=tuple(variance),
                prompt_cost=past.prompt_cost,
                lost_cost=past.lost_cost,
            ),
        }
    )
