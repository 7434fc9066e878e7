"""The arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handiwork.cli import completion

Session = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="The session's id or a prefix of it; the newest session by default.",
        show_default=False,
        autocompletion=completion.session_ids,
    ),
]
Workspace = Annotated[Path, typer.Option(help="The directory to work on; the agent gets a copy of it.")]
InPlace = Annotated[bool, typer.Option("--in-place", help="Work on the directory itself instead of a copy.")]
AgentName = Annotated[
    str | None,
    typer.Option(
        "--agent",
        help="An agent that `handiwork agents` lists, or your own as file.py:Class.",
        autocompletion=completion.agent_names,
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="The model, like anthropic:NAME or local:NAME; see `handiwork models`.",
        autocompletion=completion.model_names,
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="The OpenAI-compatible server of the model, like http://HOST/v1.")
]
Protocol = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        help="How the model writes its actions: native tool calls, json bound to a schema, or text with blocks; auto "
        "finds out what the model and its server support.",
        autocompletion=completion.protocols,
    ),
]
SandboxKind = Annotated[
    str | None,
    typer.Option("--sandbox", help="bubblewrap, docker, or none (commands run unprotected on this machine)."),
]
Image = Annotated[
    str | None, typer.Option("--image", help="Run commands in this Docker image; any linux/amd64 image works.")
]
MountRo = Annotated[
    list[str] | None, typer.Option("--mount-ro", help="Another path the sandbox may read; can be repeated.")
]
MaxIterations = Annotated[int | None, typer.Option("--max-iterations", help="Pause after this many steps.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", help="Pause after this many US dollars.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", help="Pause after this many tokens, in and out.")]
MaxTime = Annotated[float | None, typer.Option("--max-time", help="Pause after this many seconds of running.")]
AllowNet = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-net",
        help="A host the sandbox may reach, like example.org or *.example.org, or pypi, npm, debian, all; "
        "can be repeated. Opens ports 80 and 443; name another port as example.org:8080.",
    ),
]
Confirm = Annotated[
    str | None,
    typer.Option(
        "--confirm",
        help="When to ask before actions: never, risky (they leave the sandbox), always (they do more than read).",
        autocompletion=completion.modes,
    ),
]
Plan = Annotated[
    bool | None,
    typer.Option("--plan", help="Only read, and change nothing before you accept the agent's plan."),
]
SecretNames = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME[=@FILE]",
        help="Pass a secret, from the environment variable NAME or from FILE, to the commands and cells that name it "
        'as $NAME, ${NAME} or "NAME"; neither the model nor the log sees it. Can be repeated.',
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON lines on stdout; never ask.")]
