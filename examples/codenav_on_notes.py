"""CodeNav's third case study: CodeNavAgent is a research assistant, whose codebase is a folder of documents.

The agent searches the sections of the notes in examples/research_notes, LaTeX and Markdown, computes with a formula
that it has read, and answers with quotations and their places, which it has checked. Replies that are written down
below stand in for the model, unless you name one:

    python examples/codenav_on_notes.py
    python examples/codenav_on_notes.py --model openai:gpt-5
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import handiwork
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import LLM, Capabilities
from handiwork.session.run import RunResult

NOTES = Path(__file__).resolve().parent / "research_notes"

QUERY = """\
Answer from the notes, and check the answer's references with the codebase before you end:
1. How much more does a word count in BM25 that occurs ten times in a document of mean length than one that occurs once,
   with the usual parameters?
2. Two systems have the same recall at 10. Why may one still be better?"""

_COMPUTE = """\
k1 = 1.2
once, often = (f * (k1 + 1) / (f + k1) for f in (1, 10))  # |d| is the mean length, so b has no part
print(f"{often / once:.2f}")"""

ANSWER = """\
1. A word that occurs ten times counts 1.96 times as much as one that occurs once, because "The fraction grows with $f$,
but never beyond $k_1 + 1$" [bm25.tex:14-14]; "The usual parameters are $k_1 = 1.2$ and $b = 0.75$" [bm25.tex:12-12].
2. Recall at 10 "tells nothing about the order among these k" [recall.md:6-6]: the better system has the right document
nearer to the first place, which the mean reciprocal rank shows."""

_CHECK = """\
from references import faults

answer = {answer!r}
print(faults(answer))"""


def reply(thought: str, kind: str, content: str) -> str:
    """Return a model's reply in CodeNav's XML."""
    return f"<thought>\n{thought}\n</thought>\n<type>\n{kind}\n</type>\n<content>\n{content}\n</content>"


REPLIES = [
    reply(
        "I look for both topics.",
        "search",
        "BM25 weight of a word that occurs often\nrecall order of the first answers",
    ),
    reply("The fraction of the formula, for a document of mean length.", "code", _COMPUTE),
    reply(
        "I check a first answer.", "code", _CHECK.format(answer=ANSWER.replace("[bm25.tex:14-14]", "[bm25.tex:12-12]"))
    ),
    reply("One place is wrong: the sentence is in line 14.", "code", _CHECK.format(answer=ANSWER)),
    reply(ANSWER, "done", "True"),
]


def main(model: str | LLM | None = None, base_url: str | None = None) -> RunResult:
    """Run the agent with the model, by default with the written replies; print what it saw and answered."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder) / "codenav.toml"
        agent.write_text("timeout = 60\n")
        model = model or ScriptedLLM(REPLIES, capabilities=Capabilities(tools=False, schema=False))
        result = handiwork.run(QUERY, workspace=NOTES, agent=str(agent), model=model, base_url=base_url)
    for _, observation in result.state.history:
        if observation is not None:
            print(observation.text, end="\n\n")
    print(result.outcome, result.state.outputs.get("message", result.state.last_error))
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model, as for `handiwork run`; by default replies that are written down")
    parser.add_argument("--base-url", help="the OpenAI-compatible server of the model")
    arguments = parser.parse_args()
    main(arguments.model, arguments.base_url)
