"""WebArena-Verified: the package's own outcomes for answers in no form that it knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handiwork.evals.benchmarks.webarena.verified import evaluate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

REQUEST: dict[str, Any] = {"method": "GET", "url": "http://10.0.0.5:7770/", "headers": [], "queryString": []}
ANSWERED: dict[str, Any] = {"status": 200, "headers": [], "content": {"mimeType": "text/html"}, "redirectURL": ""}
TRAFFIC = json.dumps({"log": {"entries": [{"request": REQUEST, "response": ANSWERED}]}}).encode()


@pytest.fixture(autouse=True)
def _sites(monkeypatch: pytest.MonkeyPatch) -> None:
    for site in ("SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "WIKIPEDIA", "MAP"):
        monkeypatch.setenv(f"WA_{site}", "http://10.0.0.5:7770")


@pytest.mark.parametrize("answer", ["", "nonsense", "[1, 2", '{"task_type": 3}', "1" * 5000, "\ud800"])
async def test_a_malformed_answer_scores_0_and_is_no_failure_of_the_grader(answer: str) -> None:
    assert (await evaluate(0, answer, TRAFFIC))["score"] == 0


async def test_traffic_that_cannot_be_read_is_a_failure_of_the_grader() -> None:
    with pytest.raises(RuntimeError, match="webarena-verified ended"):
        await evaluate(0, "nonsense", b"nothing")
