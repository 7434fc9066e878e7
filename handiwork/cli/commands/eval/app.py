"""The names, arguments and options of the commands of ``handiwork eval``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from handiwork.cli.command import command
from handiwork.cli.options import AllowNet, Image, Protocol, SandboxKind
from handiwork.errors import Exit, HandiworkError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure agents on benchmarks, and compare them.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder.", show_default=False, resolve_path=True)]
Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="A run's folder.", show_default=False, resolve_path=True)
]
Paper = Annotated[
    Literal["codenav"] | None, typer.Option("--paper", help="Show the tables of this paper, of all the runs together.")
]
Workers = Annotated[int, typer.Option(min=1, help="The number of rollouts at a time.")]
EngineName = Annotated[
    Literal["local", "ray"], typer.Option("--engine", help="Run rollouts on this machine, or on a Ray cluster.")
]
RayAddress = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="The cluster to join; by default a new one on this machine.")
]
Data = Annotated[
    Path | None, typer.Option(help="The folder with the upstream files; downloaded by default.", resolve_path=True)
]
AllData = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="The folder with a folder of upstream files for each benchmark; downloaded by default.",
        resolve_path=True,
    ),
]
Out = Annotated[
    Path | None, typer.Option(help="The new run's folder; by default a new one below evals/.", resolve_path=True)
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Resume a run that was stopped or killed, or lost rollouts.", resolve_path=True),
]
UserModel = Annotated[
    str | None, typer.Option("--user-model", help="The model that plays the user or judges; by default the same model.")
]
Temperature = Annotated[
    float | None,
    typer.Option(min=0, help="The least temperature of model calls, for trials that differ; default: agent's."),
]
FeedbackModel = Annotated[str | None, typer.Option(help="A model that comments on the agent's steps, for mint.")]
AgentOrArm = Annotated[
    str | None,
    typer.Option(
        "--agent",
        help="The agent, by default the benchmark's; or oracle, which gives the reference solutions, or empty, which "
        "gives nothing: these need no model.",
    ),
]
EvalModel = Annotated[str | None, typer.Option("--model", help="A model, as for `handiwork run`.")]
EvalBaseURL = Annotated[str | None, typer.Option("--base-url", help="The OpenAI-compatible server of the model.")]
Trials = Annotated[int, typer.Option(min=1, help="The number of rollouts per instance, for pass@k.")]
Deadline = Annotated[float, typer.Option(min=1, help="The time limit of a rollout in seconds.")]
EvalIterations = Annotated[int | None, typer.Option(min=1, help="Steps per rollout; default: benchmark's.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def _check_resumed(context: typer.Context, kept: Collection[str]) -> None:
    """Raise HandiworkError if another option than --resume and the ``kept`` ones was given: it would have no effect."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is not None and source.name == "COMMANDLINE" and option.name not in ("resume", *kept):
            given = next((one for one in option.opts if one.startswith("-")), (option.name or "").upper())
            raise HandiworkError(f"{given} does not go with --resume, which keeps what was begun: leave it out")


@command(app, "eval.commands:list_", name="list")
def list_(
    as_json: AsJson = False, folder: Annotated[Path | None, typer.Option("--data", help="The data folder.")] = None
) -> None:
    """List the benchmarks: size, source, metric, licence, and whether their data is available."""


@command(app)
def run(
    context: typer.Context,
    benchmark: Annotated[
        str | None,
        typer.Argument(
            metavar="BENCHMARK", help="A name from `handiwork eval list`, or your own as file.py.", show_default=False
        ),
    ] = None,
    agent: AgentOrArm = None,
    model: EvalModel = None,
    base_url: EvalBaseURL = None,
    protocol: Protocol = None,
    user_model: UserModel = None,
    feedback_model: FeedbackModel = None,
    split: Annotated[str | None, typer.Option(help="A split of the benchmark; by default its first.")] = None,
    data: Data = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Run only the first LIMIT instances.")] = None,
    ids: Annotated[str | None, typer.Option(help="Run only these instances, separated by commas.")] = None,
    trials: Trials = 1,
    temperature: Temperature = None,
    workers: Workers = 1,
    engine: EngineName = "local",
    ray_address: RayAddress = None,
    sandbox: SandboxKind = None,
    image: Image = None,
    allow_net: AllowNet = None,
    deadline: Deadline = 1800.0,
    max_iterations: EvalIterations = None,
    max_cost: Annotated[float | None, typer.Option(help="The budget of the whole run in US dollars.")] = None,
    max_disk: Annotated[float | None, typer.Option(help="The space for trajectories and their pictures in GB.")] = None,
    out: Out = None,
    resume: Resume = None,
    as_json: AsJson = False,
) -> Exit:
    """Run an agent on the instances of a benchmark, score them, and write a report.

    Each result is saved as soon as its rollout ends. Resume a killed run with --resume: no rollout runs twice.
    A run that measured nothing, or lost rollouts to a failing model, sandbox or scorer, exits with 4.

    \b
    handiwork eval run mint --split gsm8k --model openai:gpt-5 --workers 8 --max-cost 5
    handiwork eval run --resume evals/mint-gsm8k-CodeActAgent-20261121-1200
    """
    from handiwork.cli.commands.eval import commands as evaluate

    place = {"sandbox": sandbox, "image": image, "allow_net": allow_net}
    flags: dict[str, Any] = {"agent": agent, "model": model, "base_url": base_url, "protocol": protocol, **place}
    flags["max_iterations"] = max_iterations
    caps: dict[str, Any] = {"cost": max_cost, "disk": None if max_disk is None else int(max_disk * 1e9)}
    execution = evaluate.execution_of(engine, ray_address, workers)
    if resume is not None:
        _check_resumed(context, ("max_cost", "max_disk", "workers", "engine", "ray_address", "as_json"))
        return evaluate.resume(resume, caps, execution, as_json)
    selection = None if ids is None else [one.strip() for one in ids.split(",")]
    request = evaluate.EvalRequest(
        benchmark, split, data, limit, selection, trials, user_model, feedback_model, temperature, deadline, out
    )
    return evaluate.run(request, flags, caps, execution, as_json)


@command(app)
def matrix(
    context: typer.Context,
    agents: Annotated[str | None, typer.Option(help="Agents, separated by commas.")] = None,
    benchmarks: Annotated[
        str | None,
        typer.Option(help="Benchmarks, separated by commas, each as NAME[:SPLIT][:LIMIT], such as everyday:dev:24."),
    ] = None,
    model: EvalModel = None,
    base_url: EvalBaseURL = None,
    protocol: Protocol = None,
    user_model: UserModel = None,
    data: AllData = None,
    trials: Trials = 1,
    temperature: Temperature = None,
    workers: Workers = 1,
    deadline: Deadline = 1800.0,
    max_iterations: EvalIterations = None,
    max_cost: Annotated[float | None, typer.Option(help="The budget of the whole matrix in US dollars.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The matrix's folder; by default a new one below evals/.", resolve_path=True)
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Resume a matrix that was stopped or killed.", resolve_path=True)
    ] = None,
    as_json: AsJson = False,
) -> Exit:
    """Run every agent on the same instances of every benchmark, and write one report.

    The arms oracle and empty run before the agents, with as many trials. Each cell is a run in a folder of its own,
    as of `handiwork eval run`. The report has a table, paired differences, a picture of score by cost, and a page with
    every trajectory.

    \b
    handiwork eval matrix --agents CodeActAgent,SWEAgent --benchmarks humanevalfix:20,everyday:dev:24 \
        --model openai:gpt-5 --max-cost 20
    handiwork eval matrix --resume evals/matrix-20261125-1200
    """
    from handiwork.cli.commands.eval import matrix as matrices

    if resume is not None:
        _check_resumed(context, ("max_cost", "workers", "as_json"))
        return matrices.resume(resume, max_cost, workers, as_json)
    flags: dict[str, Any] = {"model": model, "base_url": base_url, "protocol": protocol}
    flags["max_iterations"] = max_iterations
    request = matrices.MatrixRequest(
        agents or "", benchmarks or "", data, trials, user_model, temperature, deadline, out
    )
    return matrices.run(request, flags, max_cost, workers, as_json)


@command(app, "eval.commands:report_on")
def report(folders: Folders, paper: Paper = None, as_json: AsJson = False) -> None:
    """Rewrite report.md, report.json and report.html of a run, and show the report; or show a paper's tables."""


@command(app, "eval.view:view")
def view(
    folder: Folder,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 picks a free one.")] = 0,
) -> None:
    """Serve a page with the rollouts of a run, also while it goes on, and print the link to open in a browser.

    It lists the rollouts with the expected answer beside the given one, and shows each as a session.
    """


@command(app, "eval.commands:compare")
def compare(first: Folder, second: Folder, as_json: AsJson = False) -> None:
    """Compare two runs by instance: difference, exact McNemar test, paired bootstrap, instances that flipped."""


@command(app)
def reproduce(
    folder: Folder,
    data: Data = None,
    out: Out = None,
    workers: Workers = 1,
    engine: EngineName = "local",
    ray_address: RayAddress = None,
    as_json: AsJson = False,
) -> Exit:
    """Repeat a run under the conditions of its manifest, report differences in the setup, and compare the results.

    The data are those in the folder of the manifest; if it is no longer there, they are found as for a new run.
    """

    from handiwork.cli.commands.eval import commands as evaluate

    return evaluate.reproduce(folder, data, out, evaluate.execution_of(engine, ray_address, workers), as_json)
