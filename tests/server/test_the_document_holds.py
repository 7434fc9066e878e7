"""Requests made of the OpenAPI document, right ones and wrong ones: none makes the server fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from handiwork.llm.availability import KEYS
from handiwork.server.app import OPERATIONS
from handiwork.server.openapi import document
from scripts.harness.serving import Api, bash, finish, in_this_process

pytestmark = pytest.mark.slow

schema = schemathesis.openapi.from_dict(document(OPERATIONS))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, str, str]]:
    """A server with a session that has ended, and a blob; where its settings lead to no model that takes time."""
    folder = tmp_path_factory.mktemp("document")
    script = folder / "script.jsonl"
    script.write_text("".join(json.dumps(reply) + "\n" for reply in (bash("seq 99999; echo 1 > a"), finish())))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.setenv("HANDIWORK_MODEL", f"scripted:{script}")
        for names in KEYS.values():
            patch.setenv(names[0], "none")  # they are set by requests, and are to be as before after them
        patch.setenv("HANDIWORK_API_KEY", "none")
        with in_this_process(folder) as api:
            made = api.post("/api/sessions", task="begin", workspace=str(api.workspace))
            session = f"/api/sessions/{made['id']}"
            api.until(session, "finished")
            blob = next(event["blob"] for event in api.events(session) if event.get("blob"))
            yield api, made["id"], blob


@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_makes_the_server_fail(case: schemathesis.Case, served: tuple[Api, str, str]) -> None:
    api, session, blob = served
    if case.operation.label != "DELETE /api/sessions/{session}":
        # Half of them of what there is, or little but 404 would be seen.
        if "session" in case.path_parameters and len(case.path_parameters["session"]) % 2:
            case.path_parameters["session"] = session
        if "blob" in case.path_parameters and len(case.path_parameters["blob"]) % 2:
            case.path_parameters["blob"] = blob
    if isinstance(case.body, dict) and str(case.body.get("workspace", "")).startswith("/"):
        case.body["workspace"] = str(Path(api.workspace))
    response = case.call(base_url=api.url, headers={"authorization": f"Bearer {api.token}"})
    case.validate_response(
        response,
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ],
    )
