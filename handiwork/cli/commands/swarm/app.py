"""The names, arguments and options of the commands of ``handiwork swarm``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from handiwork.cli.command import command
from handiwork.cli.commands.eval.app import Data, Workers
from handiwork.cli.options import AllowNet, BaseUrl, Image, ModelName, SandboxKind
from handiwork.errors import Exit

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Train and draw swarms: graphs of agents that SwarmAgent runs.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@command(app)
def train(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="BENCHMARK", help="A name from `handiwork eval list`, or your own as file.py.", show_default=False
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The swarm's file; if it exists, training continues it.", resolve_path=True)
    ] = Path("swarm.json"),
    agents: Annotated[
        str | None,
        typer.Option(
            help="The agents of a new swarm, separated by commas: io, cot, tot, reflection, tools, web, code, "
            "adversarial, or agents of the hub; by default io,cot,tools."
        ),
    ] = None,
    strategy: Annotated[
        Literal["references", "majority_vote", "random_choice", "self_consistency", "select_best"] | None,
        typer.Option(help="How a new swarm makes the final decision; by default references."),
    ] = None,
    iterations: Annotated[int, typer.Option(min=0, help="Iterations in all, earlier ones included.")] = 50,
    batch: Annotated[int, typer.Option(min=2, help="Graphs drawn in each iteration, each for one instance.")] = 4,
    improve: Annotated[bool, typer.Option("--improve", help="Then improve the nodes' prompts by rollouts.")] = False,
    seed: Annotated[int, typer.Option(help="The seed of what is drawn.")] = 0,
    model: ModelName = None,
    base_url: BaseUrl = None,
    split: Annotated[str | None, typer.Option(help="A split of the benchmark; by default its first.")] = None,
    data: Data = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Train on the first LIMIT instances only.")] = None,
    ids: Annotated[str | None, typer.Option(help="Train on these instances only, separated by commas.")] = None,
    workers: Workers = 1,
    sandbox: SandboxKind = None,
    image: Image = None,
    allow_net: AllowNet = None,
    deadline: Annotated[float, typer.Option(min=1, help="The time limit of a rollout in seconds.")] = 1800.0,
    max_iterations: Annotated[int | None, typer.Option(min=1, help="Steps per rollout; default: benchmark's.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="The budget of the whole training in US dollars.")] = None,
) -> Exit:
    """Train the edges of a swarm by REINFORCE on the scores of a benchmark, and draw the swarm.

    The file is written after each iteration, and after each pass of --improve over the instances: the same command
    resumes a training that was stopped or killed. Measure the result on other instances with `handiwork eval run
    BENCHMARK --agent FILE`, use it with `handiwork run --agent FILE`.

    \b
    handiwork swarm train mint --split gsm8k --limit 20 --agents io,cot,cot --strategy majority_vote --max-iterations 20
    """
    from handiwork.cli.commands.eval.commands import EvalRequest
    from handiwork.cli.commands.swarm.commands import TrainingRequest
    from handiwork.cli.commands.swarm.commands import train as train_swarm

    selection = None if ids is None else [one.strip() for one in ids.split(",")]
    request = EvalRequest(benchmark, split, data, limit, selection, 1, None, None, None, deadline, None)
    flags = {"agent": "SwarmAgent", "model": model, "base_url": base_url, "protocol": None, "sandbox": sandbox}
    flags |= {"image": image, "allow_net": allow_net, "max_iterations": max_iterations}
    names = None if agents is None else [name.strip() for name in agents.split(",") if name.strip()]
    training = TrainingRequest(out, names, strategy, iterations, batch, improve, seed, workers, max_cost)
    return train_swarm(request, flags, training)


@command(app, "swarm.commands:draw")
def draw(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The swarm's file.", show_default=False)],
) -> None:
    """Draw a swarm, and its learning curve if it was trained, as SVG beside its file."""
