"""AgentlessAgent on real instances of SWE-bench with the counts of the paper: 40 candidates and 40 reproduction tests.

The model is scripted: one candidate is the reference solution, ten reproduction tests see the issue. Everything else is
real: the environments, the forks, the tests in them, the choice, and the official rule that scores it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from handiwork.agents.agentless import AgentlessAgent
from handiwork.agents.agentless.pipeline import AgentlessInputs
from handiwork.evals.benchmarks.swebench.localisation import Localisation
from tests.evals.test_swebench import FLASK, PYTEST, output_of, plain_path, real, rolled_out
from tests.session.test_agentless import edit

__all__ = ["plain_path"]

SEABORN = "mwaskom__seaborn-3010"
GROUPS, EACH, SCRIPTS = 4, 10, 40
RIGHT = 27
"""The number of the candidate that is right, from 0."""


class FullInputs(AgentlessInputs):
    location_samples: int = GROUPS
    repair_samples: int = EACH
    test_samples: int = SCRIPTS
    tries: int = 0


class FlaskInputs(FullInputs):
    tests: str = "pytest -rA tests/test_config.py"


class FlaskAgentless(AgentlessAgent):
    """Runs the tests of Flask's configuration."""

    inputs = FlaskInputs


class PytestInputs(FullInputs):
    tests: str = "pytest -rA testing/io/test_saferepr.py"


class PytestAgentless(AgentlessAgent):
    """Runs the tests of pytest's saferepr."""

    inputs = PytestInputs


class SeabornInputs(FullInputs):
    tests: str = "pytest -rA tests/_stats/test_regression.py"


class SeabornAgentless(AgentlessAgent):
    """Runs the tests of seaborn's regression."""

    inputs = SeabornInputs


@dataclass(frozen=True)
class Case:
    """An instance: its agent, the file and the line of the wrong repairs, and code that sees the issue.

    ``breaks`` makes a passing test fail, ``idle`` changes nothing; both have the place {n} for a number. ``code``
    defines the function ``sees``, which returns True if the issue is there, and False if it is resolved.
    """

    id: str
    agent: type[AgentlessAgent]
    path: str
    line: str
    breaks: str
    idle: str
    code: str


CASES = (
    Case(
        id=FLASK,
        agent=FlaskAgentless,
        path="src/flask/config.py",
        line="            with open(filename) as f:",
        breaks='            with open(filename + ".{n}") as f:',
        idle="            with open(filename, buffering=4096 + {n}) as f:",
        code=(
            "from flask import Flask\n\n\ndef sees():\n    config = Flask('name').config\n    try:\n"
            "        config.from_file(__file__, load=lambda file: {'DATA': file.read()}, text=False)\n"
            "    except TypeError:\n        return True\n    return not isinstance(config['DATA'], bytes)\n"
        ),
    ),
    Case(
        id=PYTEST,
        agent=PytestAgentless,
        path="src/_pytest/_io/saferepr.py",
        line="        exc_info, obj.__class__.__name__, id(obj)",
        breaks="        {n}, obj.__class__.__name__, id(obj)",
        idle="        exc_info, obj.__class__.__name__, id(obj) + {n} - {n}",
        code=(
            "from _pytest._io.saferepr import saferepr\n\n\nclass Broken:\n    def __getattribute__(self, name):\n"
            "        raise ValueError('attribute')\n\n    def __repr__(self):\n        raise ValueError('repr')\n\n\n"
            "def sees():\n    try:\n        return 'ValueError' not in saferepr(Broken())\n"
            "    except ValueError:\n        return True\n"
        ),
    ),
    Case(
        id=SEABORN,
        agent=SeabornAgentless,
        path="seaborn/_stats/regression.py",
        line="        return groupby.apply(data, self._fit_predict)",
        breaks="        return groupby.apply(data.head({n}), self._fit_predict).head({n})",
        idle="        return groupby.apply(data.copy({n} > 0), self._fit_predict)",
        code=(
            "import numpy as np\nimport pandas as pd\nfrom seaborn._core.groupby import GroupBy\n"
            "from seaborn._stats.regression import PolyFit\n\n\ndef sees():\n"
            "    data = pd.DataFrame({'x': np.arange(9.0), 'y': np.arange(9.0)})\n    data.loc[3, 'y'] = np.nan\n"
            "    try:\n        fit = PolyFit(order=1)(data, GroupBy(['group']), 'x', {})\n"
            "    except Exception:\n        return True\n    return bool(fit['y'].isna().any())\n"
        ),
    ),
)


def replies(case: Case, folder: Path) -> list[str]:
    """What the model says: locations, candidates group by group, tests that may change, and reproduction tests."""
    before, after = texts(case, folder)
    hunks = list(difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(3))
    lines = sorted({line for hunk in hunks for line in range(hunk[0][1], hunk[-1][2], 5)})
    place = "\n".join([case.path, *(f"line: {line + 1}" for line in lines)])
    right = "\n".join(
        edit("\n".join(before[hunk[0][1] : hunk[-1][2]]), "\n".join(after[hunk[0][3] : hunk[-1][4]]), case.path)
        for hunk in hunks
    )
    wrong = [edit(case.line, (case.idle, case.breaks)[n % 2].format(n=n), case.path) for n in range(GROUPS * EACH)]
    wrong[RIGHT] = right
    return [
        *(case.path, "", place, *[place] * GROUPS),
        *wrong,
        "none",
        *(reproduction(case, number) for number in range(SCRIPTS)),
    ]


def texts(case: Case, folder: Path) -> tuple[Sequence[str], Sequence[str]]:
    """The lines of the file before and after the reference solution."""
    instance = real(case.id)
    folder.mkdir()
    Localisation().prepare(instance, folder)
    original = (folder / case.path).read_text()
    output_of(folder, f"git apply - <<'END'\n{instance.row['patch']}END\n")
    return original.split("\n"), (folder / case.path).read_text().split("\n")


def reproduction(case: Case, number: int) -> str:
    """A reproduction test: of four, one is right, one is blind, one crashes, and one does not decide."""
    verdict = "print('Issue reproduced' if sees() else 'Issue resolved')"
    body = (
        verdict,
        "print('Issue resolved' if True else 'Issue reproduced')",
        f"print(missing)\n{verdict}",
        "print('Issue reproduced'); print('Issue resolved')",
    )[number % 4]
    return f"```python\n# {number}\n{case.code}\n\n{body}\n```"


@pytest.mark.campaign
@pytest.mark.usefixtures("plain_path")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_of_forty_candidates_the_right_one_is_chosen_and_resolved(case: Case, tmp_path: Path) -> None:
    said = [{"content": reply} for reply in replies(case, tmp_path / "texts")]
    agent = f"{__name__}:{case.agent.__name__}"
    # The steps of the children count too, about three for each.
    result, trajectory = await rolled_out(tmp_path, case.id, *said, agent=agent, iterations=1000)
    assert (result.outcome, result.score) == ("submitted", 1.0), (result.why, result.details, result.answer)
    events = [json.loads(line) for line in trajectory.splitlines()]
    forks = [len(event["outcomes"]) for event in events if event.get("type") == "ForkObservation"]
    assert forks == [1, SCRIPTS, GROUPS * EACH]
    final = next(event for event in reversed(events) if event.get("type") == "AgentFinishAction")
    message = final["outputs"]["message"]
    group, number = divmod(RIGHT, EACH)
    assert f"Candidate {group + 1}.{number + 1}, one of 40 candidates that change code (of 40 replies)" in message
    assert "1 of the 1 that the tests left are this patch" in message
    assert "which reproduced the issue before (10 of 10 are the same)" in message
