"""The commands of ``handiwork eval``: what they are called and what they take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from handiwork.cli.errors import guarded

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure agents on benchmarks, and compare them.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder.", show_default=False, resolve_path=True)]
Workers = Annotated[int, typer.Option(min=1, help="Rollouts at the same time.")]
EngineName = Annotated[
    Literal["local", "ray"], typer.Option("--engine", help="Rollouts on this machine, or over a Ray cluster.")
]
RayAddress = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="The cluster to join; else a new one on this machine.")
]
Data = Annotated[
    Path | None, typer.Option(help="The folder with the upstream files; else they are fetched.", resolve_path=True)
]
Out = Annotated[Path | None, typer.Option(help="The new run's folder; else one below evals/.", resolve_path=True)]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Resume a run that was stopped or killed, or lost rollouts.", resolve_path=True),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


@app.command("list")
def list_(
    as_json: AsJson = False, data: Annotated[Path | None, typer.Option(help="Where to look for data.")] = None
) -> None:
    """List the benchmarks: size, source, metric, licence, and whether their data are at hand."""

    def command() -> Any:
        from handiwork.cli.commands.eval.commands import list_

        return list_(data, as_json)

    guarded(command)


@app.command()
def run(
    benchmark: Annotated[
        str | None,
        typer.Argument(
            metavar="BENCHMARK", help="One of `handiwork eval list`, or your own as file.py.", show_default=False
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="As for `handiwork run`; else the benchmark's.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="A model, as for `handiwork run`.")] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="The OpenAI-compatible server that has it.")
    ] = None,
    user_model: Annotated[
        str | None,
        typer.Option("--user-model", help="Plays the user, or judges, where there is one; else the same model."),
    ] = None,
    split: Annotated[str | None, typer.Option(help="A split of the benchmark; else its first.")] = None,
    data: Data = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many instances, the first.")] = None,
    ids: Annotated[str | None, typer.Option(help="Only these, separated by commas.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Rollouts of each instance, for pass@k.")] = 1,
    workers: Workers = 1,
    engine: EngineName = "local",
    ray_address: RayAddress = None,
    deadline: Annotated[float, typer.Option(min=1, help="Seconds that a rollout may run.")] = 1800.0,
    max_iterations: Annotated[int | None, typer.Option(min=1, help="Steps of a rollout; else the benchmark's.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="US dollars that the whole run may spend.")] = None,
    max_disk: Annotated[float | None, typer.Option(help="GB that its trajectories may take.")] = None,
    out: Out = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Resume a run that was stopped or killed, or lost rollouts.", resolve_path=True
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put the instances of a benchmark to an agent, score them, and write a report.

    Each result is on the disk as soon as its rollout ends. Resume a killed run with --resume: nothing is run twice.
    A run that measured nothing, or lost rollouts to a failing model, sandbox or scorer, exits with 4.

    \b
    handiwork eval run mint --split gsm8k --model openai:gpt-5 --workers 8 --max-cost 5
    handiwork eval run --resume evals/mint-gsm8k-CodeActAgent-20261121-1200
    """
    flags: dict[str, Any] = {"agent": agent, "model": model, "base_url": base_url, "max_iterations": max_iterations}
    caps: dict[str, Any] = {"cost": max_cost, "disk": None if max_disk is None else int(max_disk * 1e9)}

    def command() -> Any:
        from handiwork.cli.commands.eval import commands as evaluate

        how = evaluate.how(engine, ray_address, workers)
        if resume is not None:
            return evaluate.resume(resume, caps, how, as_json)
        chosen = None if ids is None else [one.strip() for one in ids.split(",")]
        asked = evaluate.EvalRequest(benchmark, split, data, limit, chosen, trials, user_model, deadline, out)
        return evaluate.run(asked, flags, caps, how, as_json)

    guarded(command)


@app.command()
def report(folder: Folder, as_json: AsJson = False) -> None:
    """Write report.md, report.json and report.html of a run anew, and show the report."""

    def command() -> Any:
        from handiwork.cli.commands.eval.commands import report

        return report(folder, as_json)

    guarded(command)


@app.command()
def compare(first: Folder, second: Folder, as_json: AsJson = False) -> None:
    """Compare two runs instance by instance: difference, exact McNemar test, paired bootstrap, what flipped."""

    def command() -> Any:
        from handiwork.cli.commands.eval.commands import compare

        return compare(first, second, as_json)

    guarded(command)


@app.command()
def reproduce(
    folder: Folder,
    out: Out = None,
    workers: Workers = 1,
    engine: EngineName = "local",
    ray_address: RayAddress = None,
    as_json: AsJson = False,
) -> None:
    """Do a run again, under the conditions of its manifest, say what is not as it was then, and compare."""

    def command() -> Any:
        from handiwork.cli.commands.eval import commands as evaluate

        return evaluate.reproduce(folder, out, evaluate.how(engine, ray_address, workers), as_json)

    guarded(command)
