"""CodeNav's second case study: CodeNavAgent edits a photograph with a codebase of image tools.

No model sees the picture and nothing is called over a network: the agent finds the functions of examples/image_tools,
imports them in its sandbox and runs them on the photograph. It needs numpy, Pillow and matplotlib, which `make setup`
installs. Replies that are written down below stand in for the model, unless you name one:

    python examples/codenav_on_images.py
    python examples/codenav_on_images.py --model openai:gpt-5
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import handiwork
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.types import LLM, Capabilities
from handiwork.session.run import RunResult

REPOSITORY = Path(__file__).resolve().parent.parent
SETTINGS = 'codebase = ["examples/image_tools"]\ntimeout = 120\n'

QUERY = """\
The photograph grace_hopper.jpg comes with matplotlib: matplotlib.cbook.get_sample_data("grace_hopper.jpg",
asfileobj=False) returns its path.
1. Find the largest connected region of the flag's red, by the functions of the codebase, and print its bounding box.
2. Blur everything outside of this box, and write the picture into flag.png.
3. Read flag.png again, and print by how much it differs from the photograph, inside of the box and overall."""

_FIND = """\
import matplotlib.cbook
from examples.image_tools.effects import read_picture
from examples.image_tools.regions import bounding_box, colour_mask, largest_region

photograph = read_picture(matplotlib.cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
box = bounding_box(largest_region(colour_mask(photograph, 0{margin})))
print(photograph.shape, tuple(box))"""

_BLUR = """\
from examples.image_tools.effects import blur_outside, mean_difference, write_picture

write_picture(blur_outside(photograph, box), "flag.png")
written = read_picture("flag.png")
inside = (slice(box.top, box.bottom), slice(box.left, box.right))
print(f"inside {mean_difference(written[inside], photograph[inside]):.2f}")
print(f"overall {mean_difference(written, photograph):.2f}")"""


def reply(thought: str, kind: str, content: str) -> str:
    """Return a model's reply in CodeNav's XML."""
    return f"<thought>\n{thought}\n</thought>\n<type>\n{kind}\n</type>\n<content>\n{content}\n</content>"


REPLIES = [
    reply("I need functions for regions of a colour.", "search", "largest connected region of a colour\nbounding box"),
    reply("I read the photograph and find the region.", "code", _FIND.format(margin="")),
    reply("That is most of the picture: skin is reddish too. I ask for more.", "code", _FIND.format(margin=", 100")),
    reply("I need a blur outside of a box.", "search", "blur everything outside of a box"),
    reply("I blur, write, read again and compare.", "code", _BLUR),
    reply("This is all of it.", "code_summary", _FIND.format(margin=", 100") + "\n" + _BLUR),
    reply("flag.png shows the largest red stripe of the flag sharp, and the rest blurred.", "done", "True"),
]


def main(model: str | LLM | None = None, base_url: str | None = None) -> RunResult:
    """Run the agent with the model, by default with the written replies; print what it saw and answered."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder) / "codenav.toml"
        agent.write_text(SETTINGS)
        model = model or ScriptedLLM(REPLIES, capabilities=Capabilities(tools=False, schema=False))
        result = handiwork.run(QUERY, workspace=REPOSITORY, agent=str(agent), model=model, base_url=base_url)
    for _, observation in result.state.history:
        if observation is not None:
            print(observation.text, end="\n\n")
    print(result.outcome, result.state.outputs.get("message", result.state.last_error))
    print(f"`handiwork apply {result.session}` writes flag.png into {REPOSITORY}.")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model, as for `handiwork run`; by default replies that are written down")
    parser.add_argument("--base-url", help="the OpenAI-compatible server of the model")
    arguments = parser.parse_args()
    main(arguments.model, arguments.base_url)
