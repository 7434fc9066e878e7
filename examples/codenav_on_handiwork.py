"""CodeNav's first case study on this repository: CodeNavAgent finds out how Handiwork runs an agent, and runs one.

The outer agent searches Handiwork's own code. In its sandbox it then starts an inner agent, which solves a query with
another codebase, a small shop, and tabulates what the inner agent did. Replies that are written down below stand in
for the model:

    python examples/codenav_on_handiwork.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import handiwork
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import Capabilities
from handiwork.session.run import RunResult

REPOSITORY = Path(__file__).resolve().parent.parent

SHOP = {
    "shop/tax.py": '''\
RATE = 0.19


def value_added_tax(net: float, rate: float = RATE) -> float:
    """Return the tax on a net price."""
    return net * rate
''',
    "README.md": "The codebase is called shop. shop/tax.py computes taxes.\n",
}

QUERY = """\
1. Use Handiwork, the codebase, to run an agent of the name CodeNavAgent, without a sandbox of its own, on the folder
   {shop}. Its model is scripted: it searches for tax, computes the tax on 250 with the function of that codebase,
   prints it, and is done.
2. The query of that agent is: What is the value-added tax on 250?
3. Tabulate its actions: one line for each, with its kind and its thought.
4. Print its answer."""

_INNER = """\
import handiwork
from handiwork.llm.scripted.model import ScriptedLLM

replies = [
    ("I look for the tax.", "search", "tax AND type: FUNCTION"),
    ("I compute it.", "code", "from shop.tax import value_added_tax\\nprint(value_added_tax(250))"),
    ("The tax on 250 is 47.5.", "done", "True"),
]
model = ScriptedLLM(
    [{{"content": thought, "tool_calls": [{{"name": name, "arguments": {{"content": content}}}}]}}
     for thought, name, content in replies]
)
result = handiwork.run("What is the value-added tax on 250?", {arguments})"""

_TABLE = """\
from handiwork.events.base import Action

events = handiwork.load_session(result.session).events
for event in events:
    if isinstance(event, Action) and event.thought:
        print(f"{event.kind:18} {event.thought}")
print(result.state.outputs["message"])"""


def reply(thought: str, kind: str, content: str) -> str:
    """Return a model's reply in CodeNav's XML."""
    return f"<thought>\n{thought}\n</thought>\n<type>\n{kind}\n</type>\n<content>\n{content}\n</content>"


def script(shop: Path) -> list[str]:
    """Return the replies of the model."""
    wrong = _INNER.format(arguments=f"folder={str(shop)!r}, agent='CodeNavAgent', model=model")
    right = _INNER.format(arguments=f"workspace={str(shop)!r}, agent='CodeNavAgent', model=model, sandbox='none'")
    return [
        reply("I need the function that runs an agent.", "search", "type: FUNCTION AND name: run AND text: workspace"),
        reply("I need a scripted model.", "search", "type: CLASS AND name: ScriptedLLM"),
        reply("I run the inner agent.", "code", wrong),
        reply("It is no setting. I look at the settings.", "search", "type: CLASS AND name: Settings"),
        reply("The folder is the argument workspace, and the sandbox a setting.", "code", right),
        reply("I tabulate its actions and print its answer.", "code", _TABLE),
        reply("This is all of it.", "code_summary", f"{right}\n{_TABLE}"),
        reply("The inner agent answers that the tax on 250 is 47.5.", "done", "True"),
    ]


def main() -> RunResult:
    """Run the outer agent, and print what it saw and answered."""
    with tempfile.TemporaryDirectory() as folder:
        # The sandbox sees nothing of this folder: the agent makes its own copy, in its home.
        shop = Path("/tmp/shop")
        lines = [f"(root / {name!r}).write_text({text!r})" for name, text in SHOP.items()]
        make = [
            "from pathlib import Path",
            f"root = Path({str(shop)!r})",
            "(root / 'shop').mkdir(parents=True)",
            *lines,
        ]
        replies = [reply("I make the inner agent's codebase.", "code", "\n".join(make)), *script(shop)]
        model = ScriptedLLM(replies, capabilities=Capabilities(tools=False, schema=False))
        agent = Path(folder) / "codenav.toml"
        agent.write_text('codebase = ["handiwork"]\ntimeout = 120\n')
        result = handiwork.run(QUERY.format(shop=shop), workspace=REPOSITORY, agent=str(agent), model=model)
    for _, observation in result.state.history:
        if observation is not None:
            print(observation.text, end="\n\n")
    print(result.outcome, result.state.outputs["message"])
    return result


if __name__ == "__main__":
    main()
