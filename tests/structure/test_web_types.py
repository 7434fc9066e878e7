"""scripts/web_types.py: the web app's types follow from the models in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import web_types

needs_node = pytest.mark.skipif(
    not (web_types.WEB / "node_modules/.bin/json2ts").exists(), reason="the web app's packages are not installed"
)


@pytest.mark.slow
@pytest.mark.usefixtures("node_on_path")
@needs_node
def test_a_field_that_the_types_do_not_have_makes_them_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = web_types.TARGET.read_text()
    monkeypatch.setattr("sys.argv", ["web_types.py", "--check"])
    assert web_types.main() == 0
    older = tmp_path / "web/types.ts"
    older.parent.mkdir()
    older.write_text(text.replace("  exit_code: number | null;\n", "", 1))
    assert older.read_text() != text
    monkeypatch.setattr(web_types, "TARGET", older)
    monkeypatch.setattr(web_types, "WEB", older.parent)
    monkeypatch.setattr(web_types, "generated", lambda: text)
    assert web_types.main() == 1
    assert "web/types.ts is stale: run `scripts/web.sh types`" in capsys.readouterr().err


def test_every_event_is_in_the_schema_with_its_fields() -> None:
    schema = web_types.schema_of_all()["definitions"]
    assert schema["CmdRunAction"]["properties"]["command"] == {"type": "string"}
    assert schema["CmdRunAction"]["extends"] == {"$ref": "#/definitions/Action"}
    for kind in web_types.KINDS:
        assert schema[kind]["properties"]["type"] == {"const": kind}
        assert sorted(schema[kind]["required"]) == sorted(schema[kind]["properties"])
