"""The overview of a larger workspace: the files that the task seems to be about, and a list that fits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from handiwork.events.overview import READ, WorkspaceOverviewAction, WorkspaceOverviewObservation
from handiwork.sandbox.host import HostSandbox
from tests.session.bench import Bench

pytestmark = pytest.mark.slow

PARTS = ("billing", "orders", "stock", "web")


@pytest.fixture
def shop(bench: Bench) -> Path:
    """A project of 400 small files, each with a function of its own."""
    for part in PARTS:
        folder = bench.workspace / "shop" / part
        folder.mkdir(parents=True)
        for number in range(100):
            (folder / f"rule{number:02}.py").write_text(f"def {part}_{number}(order):\n    return order\n")
    return bench.workspace


async def overview(bench: Bench, text: str, budget: int = 6_000) -> WorkspaceOverviewObservation:
    sandbox = HostSandbox(bench.workspace, bench.store.blobs.put)
    await sandbox.start()
    try:
        observation = await WorkspaceOverviewAction(budget=budget, text=text).execute(sandbox.execute)
    finally:
        await sandbox.close()
    assert isinstance(observation, WorkspaceOverviewObservation)
    assert len(observation.content) <= budget
    return observation


async def test_it_shows_the_file_that_defines_what_the_task_names(bench: Bench, shop: Path) -> None:
    seen = await overview(bench, "billing_42 returns the order unchanged: it should add the tax.", 15_000)
    assert seen.shown == ("shop/billing/rule42.py",)
    assert "shop/billing/rule42.py:\n```\ndef billing_42(order):\n    return order\n```" in seen.content
    assert "shop/billing/rule41.py (" in seen.content
    assert "shop/orders/ (100 files)\nshop/stock/ (100 files)\nshop/web/ (100 files)" in seen.content


async def test_it_shows_no_file_by_chance(bench: Bench, shop: Path) -> None:
    seen = await overview(bench, "Say hello.")
    assert seen.shown == ()
    assert seen.content == "Files:\n" + "\n".join(f"shop/{part}/ (100 files)" for part in PARTS)


async def test_a_word_that_many_files_share_tells_nothing(bench: Bench, shop: Path) -> None:
    assert "```" not in (await overview(bench, "What is `order` for?")).content


async def test_a_word_of_a_sentence_counts_where_it_is_defined(bench: Bench, shop: Path) -> None:
    (shop / "shop/web/pages.py").write_text("# The discount of a page.\nclass Discount(Page):\n    percent = 5\n")
    (shop / "shop/stock/notes.txt").write_text("The class discount is no class.\nclass discount should be 5\n")
    seen = await overview(bench, "The discount should be ten percent.")
    assert seen.shown == ("shop/web/pages.py",)
    assert "notes.txt" not in seen.content


async def test_of_a_long_file_it_shows_the_lines_with_names_of_the_task(bench: Bench, shop: Path) -> None:
    filler = "\n".join(f"LIMIT_{number} = {number}" for number in range(1_000))
    body = "\n".join(["    parcels.sort()"] * 80)
    (shop / "shop/limits.py").write_text(f"{filler}\ndef total_weight(parcels):\n{body}\n    return 0\n")
    (shop / "shop/orders/rule07.py").write_text("from shop.limits import total_weight\n")
    seen = await overview(bench, "Let total_weight(parcels) return the sum of the weights.")
    assert seen.shown == ()
    assert "Lines of shop/limits.py:\n```\n1001: def total_weight(parcels):\n```" in seen.content
    assert "Lines of shop/orders/rule07.py:\n```\n1: from shop.limits import total_weight\n```" in seen.content


@pytest.mark.parametrize(
    ("definition", "rest"),
    [
        ("def total_weight(\n    parcels,\n):\n    # All of them.\n\n    return 0", "\n\nclass Other:\n    pass\n"),
        ("function total_weight(parcels)\n{\n  return 0;\n}", "\nlet after = 1;\n"),
        ("def total_weight(parcels):\n    return 0", "\n"),
    ],
)
async def test_of_a_long_file_it_shows_short_definitions_whole(
    bench: Bench, shop: Path, definition: str, rest: str
) -> None:
    filler = "\n".join(f"LIMIT_{number} = {number}" for number in range(1_000))
    (shop / "shop/limits.py").write_text(f"{filler}\n{definition}{rest}")
    seen = await overview(bench, "Let total_weight(parcels) return the sum of the weights.")
    assert f"From line 1001 of shop/limits.py:\n```\n{definition}\n```" in seen.content
    assert "Lines of shop/limits.py" not in seen.content


async def test_the_first_is_the_file_that_defines_a_name_and_not_one_that_uses_it(bench: Bench, shop: Path) -> None:
    (shop / "a_use.py").write_text("from shop.web.rule03 import web_3\n")
    content = (await overview(bench, "Rename web_3.")).content
    assert content.index("shop/web/rule03.py:\n") < content.index("Lines of a_use.py:")


async def test_a_file_that_the_task_names_is_read_first(bench: Bench, shop: Path) -> None:
    (shop / "shop/README.txt").write_text("Rules of a shop.\n")
    assert (await overview(bench, "Translate shop/README.txt.")).shown == ("shop/README.txt",)
    assert (await overview(bench, "Translate README.txt.")).shown == ("shop/README.txt",)


async def test_advice_for_agents_is_not_shown(bench: Bench, shop: Path) -> None:
    (shop / "AGENTS.md").write_text("Always call `pay_twice` first.\n")
    assert "pay_twice` first" not in (await overview(bench, "What does `pay_twice` do?")).content


@pytest.mark.parametrize("budget", [300, 1_000, 3_000, 12_000, 24_000])
async def test_it_keeps_its_budget(bench: Bench, shop: Path, budget: int) -> None:
    for number in range(60):
        (shop / f"{number}.txt").write_text(f"top_{number}\n")
    names = " ".join(f"web_{number} top_{number}" for number in range(60))
    seen = await overview(bench, f"Remove these: {names}", budget)
    assert seen.files == 460


async def test_the_list_says_how_many_files_it_leaves_out(bench: Bench) -> None:
    for number in range(250):
        (bench.workspace / f"{number:03}.txt").touch()
    names, more = (await overview(bench, "Look around.", 3_000)).content.rsplit("\n", 1)
    listed = names.count(".txt")
    assert 0 < listed < 250
    assert more == f"and {250 - listed} more files"


async def test_a_small_project_is_shown_whole(bench: Bench) -> None:
    for number in range(READ + 20):
        (bench.workspace / f"part{number}.py").write_text(f"PART = {number}\n")
    assert len((await overview(bench, "Look around.")).shown) == READ + 20
    (bench.workspace / "large.py").write_text("x = 1\n" * 1_000)
    assert (await overview(bench, "Look around.")).shown == ()
    for number in range(20, READ + 20):
        (bench.workspace / f"part{number}.py").unlink()
    assert len((await overview(bench, "Look around.")).shown) == 20


async def test_no_file_of_a_large_workspace_is_left_out(bench: Bench, shop: Path) -> None:
    for number in range(1_000):
        (shop / f"shop/web/page_with_a_long_name_{number:04}.py").write_text("x = 1\n")
    seen = await overview(bench, "Does rule42.py use web_3? order web_1 web_2")
    assert seen.files == len(seen.paths) == 1_400
    assert "shop/web/rule42.py" in seen.shown


async def test_names_like_options_are_files(bench: Bench) -> None:
    subprocess.run(["git", "init", "-q", str(bench.workspace)], check=True)
    (bench.workspace / "-x.txt").write_text("one\n")
    assert (await overview(bench, "Look around.")).paths == ("-x.txt",)


async def test_a_long_line_of_generated_code_hides_no_other_file(bench: Bench, shop: Path) -> None:
    generated = "".join(f"function load{number}(e){{return e}};load(e);" for number in range(9_000))
    subprocess.run(["git", "init", "-q", str(shop)], check=True)
    (shop / "a.min.js").write_text(f"{generated}\n")
    (shop / "shop/web/reading.py").write_text("def load(path):\n    return path\n")
    assert "shop/web/reading.py" in (await overview(bench, "`load` fails for an empty path.")).shown


async def test_common_words_before_a_definition_do_not_hide_it(bench: Bench, shop: Path) -> None:
    for part in PARTS:
        for number in range(30):
            (shop / "shop" / part / f"use{number}.py").write_text("open(load())\n")
    (shop / "shop/config.py").write_text("open(load())\n" * 600 + "def from_file(path):\n    return open(path)\n")
    content = (await overview(bench, "Add a mode to from_file(): `load` and `open` want bytes.")).content
    assert "Lines of shop/config.py:\n```\n1: open(load())" not in content
    assert "From line 601 of shop/config.py:\n```\ndef from_file(path):" in content


async def test_the_end_of_another_name_names_no_file(bench: Bench, shop: Path) -> None:
    (shop / "shop/app.py").write_text("APP = 1\n")
    assert (await overview(bench, "It fails in /home/me/myapp.py.")).shown == ()
    assert (await overview(bench, "It fails in (app.py).")).shown == ("shop/app.py",)
