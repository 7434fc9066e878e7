"""Agents search the code of their workspace, and find what they have just changed, in a real sandbox."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

import handiwork
from handiwork.events.action import CodeSearchAction
from handiwork.events.base import Observation
from handiwork.events.observation import CodeSearchObservation, ErrorObservation
from handiwork.session.approval.rules import Confirmation, ExecutionContext, needs_approval
from handiwork.session.steps.code_search import CodeSearch
from handiwork.workspace.session_files import InPlaceFiles, PlainCopyFiles, SessionFiles

FILES = {
    "shop/cart.py": "class Cart:\n    def add_item(self, item):\n        '''Put an item into the cart.'''\n",
    "shop/tax.py": "RATE = 0.19\n\n\ndef value_added_tax(net):\n    return net * RATE\n",
    "README.md": "# Shop\n\nSells things.\n",
}
PLANT = (
    "ln -s /etc/passwd planted.py; ln -s . loop; ln -s / all; mkfifo pipe.py; "
    "printf 'def planted(): pass\\n' > hidden.py; printf 'hidden.py\\n' > .gitignore"
)


@pytest.fixture
def shop(tmp_path: Path, new_user: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HANDIWORK_CACHE", str(tmp_path / "cache"))
    for path, text in FILES.items():
        (tmp_path / "shop" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / path).write_text(text)
    return tmp_path / "shop"


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def observations(shop: Path, *calls: dict[str, Any]) -> list[Observation]:
    """Run CodeActAgent with these calls; return the observations of its searches."""
    model = handiwork.ScriptedLLM([*calls, tool("finish", message="Done.")])
    result = handiwork.run("Look around.", workspace=str(shop), model=model)
    assert result.outcome == "finished"
    return [
        observation
        for action, observation in result.state.history
        if isinstance(action, CodeSearchAction) and observation is not None
    ]


@pytest.mark.slow
def test_a_change_of_the_agent_is_found_at_its_next_search(shop: Path) -> None:
    first, second, third = observations(
        shop,
        tool("search_code", query="type: FUNCTION AND tax"),
        tool("bash", command="sed -i s/value_added_tax/sales_tax/ shop/tax.py && rm README.md"),
        tool("search_code", query="name: sales_tax"),
        tool("search_code", query="type: DOCUMENTATION"),
    )
    assert isinstance(first, CodeSearchObservation)
    assert first.total == 1
    assert first.content == (
        "shop/tax.py, lines 4 to 5, FUNCTION:\n```\ndef value_added_tax(net):\n    return net * RATE\n```"
    )
    assert isinstance(second, CodeSearchObservation)
    assert "def sales_tax(net):" in second.content
    assert isinstance(third, CodeSearchObservation)
    assert third.total == 0
    assert third.content.startswith("No block matches.")
    assert "value_added_tax" in (shop / "shop/tax.py").read_text()
    assert not list(shop.glob("**/tantivy"))


@pytest.mark.parametrize("make", [InPlaceFiles, PlainCopyFiles])
async def test_links_that_the_agent_plants_lead_nowhere(make: type[SessionFiles], shop: Path, tmp_path: Path) -> None:
    files = make(tmp_path / "session", shop)
    (tmp_path / "session").mkdir()
    files.create()
    subprocess.run(["bash", "-c", PLANT], cwd=files.agent_dir, check=True)
    search = CodeSearch(files)
    first, second, third = [
        await search.run(CodeSearchAction(query=query))
        for query in ("file_path: planted.py OR text: root OR text: nologin", "name: planted", '"value added')
    ]
    assert isinstance(first, CodeSearchObservation)
    assert first.total == 0
    assert isinstance(second, CodeSearchObservation)
    assert second.total == 1  # what the agent tells git to ignore is still found
    assert isinstance(third, ErrorObservation)
    assert "the quotation mark is not closed" in third.content


async def test_many_first_searches_at_once_find_the_same(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "session").mkdir()
    files = PlainCopyFiles(tmp_path / "session", shop)
    files.create()
    found = await asyncio.gather(
        *(CodeSearch(files).run(CodeSearchAction(query="name: value_added_tax")) for _ in range(6))
    )
    assert [isinstance(one, CodeSearchObservation) and one.total for one in found] == [1] * 6


@pytest.mark.slow
def test_children_search_their_own_copies(shop: Path) -> None:
    model = handiwork.ScriptedLLM(
        [
            tool("search_code", query="name: Cart"),
            tool("fork", tasks=["one"]),
            tool("bash", command="sed -i s/Cart/Basket/ shop/cart.py"),
            tool("search_code", query="name: Basket"),
            tool("finish", message="child"),
            tool("search_code", query="name: Basket"),
            tool("finish", message="Done."),
        ]
    )
    result = handiwork.run("Look around.", workspace=str(shop), model=model)
    searches = [e for e in handiwork.load_session(result.session).events if isinstance(e, CodeSearchObservation)]
    assert [one.total for one in searches] == [2, 2, 0]


@pytest.mark.parametrize("mode", ["risky", "always"])
def test_a_search_needs_no_approval(mode: Confirmation) -> None:
    context = ExecutionContext(isolated=False, in_place=True, secrets=frozenset())
    assert needs_approval(CodeSearchAction(query="x"), mode, context, ()) is None
