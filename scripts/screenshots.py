"""``make screenshots``: pictures of every page and pane of the web app: light, dark, wide and on a phone.

They go into docs/screenshots-out, to be looked at. They show the session that tests/web shows.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, Page, expect

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.harness import everything, forge  # noqa: E402
from scripts.harness.serving import Api, Program, bash, finish, until  # noqa: E402
from scripts.harness.window import PATIENCE, chromium, window  # noqa: E402

OUT = ROOT / "docs/screenshots-out"
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1440, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1440, "height": 900}},
    "wide": {"color_scheme": "light", "viewport": {"width": 2560, "height": 1300}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True},
}

SERVE = f"""cat > index.html <<'END'
{everything.PAGE}
END
/opt/handiwork/bin/python3 -m http.server 8765 > /dev/null 2>&1 &
until (echo > /dev/tcp/127.0.0.1/8765) 2> /dev/null; do sleep 0.05; done"""


def main() -> None:
    OUT.mkdir(exist_ok=True)
    for old in OUT.glob("*.png"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(Path(folder))
        with forge.serve("github", Path(folder) / "forge") as github:
            settings = Path(folder) / "config/handiwork/config.toml"
            settings.parent.mkdir(parents=True)
            settings.write_text(github.settings)
            program.environment["GITHUB_TOKEN"] = github.add("ada")
            try:
                asyncio.run(take(program, Path(folder), github))
            finally:
                program.close()
    print(f"{len(list(OUT.iterdir()))} pictures are in {OUT.relative_to(ROOT)}")


async def take(program: Program, folder: Path, github: forge.Standin) -> None:
    """Make the sessions and take all pictures."""
    expect.set_options(timeout=PATIENCE * 1000)
    api = program.start()
    sessions = await asyncio.to_thread(make, api, github)
    sessions["interrupted"] = await asyncio.to_thread(interrupt, api, program)
    run = await asyncio.to_thread(evaluate, api, program)
    viewer = await asyncio.create_subprocess_exec(
        *program.command("eval", "view", str(run)), env=program.environment, stdout=asyncio.subprocess.PIPE
    )
    assert viewer.stdout is not None
    link = (await viewer.stdout.readline()).decode().strip()
    try:
        async with chromium(folder) as browser:
            for look in LOOKS:
                await pictures(browser, api, look, sessions)
                await dialogs(browser, api, look, sessions)
                await pictures_of_a_run(browser, link, look)
    finally:
        viewer.terminate()
        await viewer.wait()


def make(api: Api, github: forge.Standin) -> dict[str, str]:
    """Return the ids of sessions: done, asking, failed, on a clone from GitHub, and one with a server."""
    whole = everything.make(api)
    asking = api.create(
        bash("pip install babel", said="`babel` knows every language's greeting."),
        finish(),
        confirmation="always",
        title="Use a library for languages",
    )
    failed = api.create({"error": "the key was refused"}, title="Translate the manual")
    project = api.folder / "cloned"
    subprocess.run(["git", "clone", "-q", str(github.bare), str(project)], check=True)
    subprocess.run(["git", "remote", "set-url", "origin", github.address], cwd=project, check=True)
    cloned = api.create(
        bash("sed -i s/hello/hallo/ greeting.txt"),
        finish("The greeting is German now.\n\n- Fixes #7"),
        workspace=str(project),
        title="Greet in German",
    )
    served = api.create(bash(SERVE), finish("The page is on port 8765."), title="Show the greetings as a page")
    planning = api.create(
        finish("1. Read greet.py.\n2. Add Finnish to WORDS.\n3. Run the tests."),
        plan_mode=True,
        title="Greet in Finnish",
    )
    refused = api.create(
        bash("curl -sS https://greetings.example/words.json"),
        finish("I could not reach greetings.example."),
        title="Fetch more words",
    )
    sessions = {
        "asking": asking,
        "failed": failed,
        "cloned": cloned,
        "served": served,
        "planning": planning,
        "refused": refused,
    }
    for session in sessions.values():
        api.until(session, "awaiting_user_confirmation", "awaiting_user_input", "error", "finished")
    return {"whole": whole, **{name: session.rpartition("/")[2] for name, session in sessions.items()}}


def interrupt(api: Api, program: Program) -> str:
    """Return the id of a session whose command was killed."""
    before = {row["id"] for row in api.get("/api/sessions")["sessions"]}
    command = program.command("run", "Greet in every language", "--model", api.script(bash("sleep 600")))
    process = subprocess.Popen(command, cwd=api.workspace, env=program.environment, stdout=subprocess.DEVNULL)
    try:

        def acting() -> str | None:
            new = [row["id"] for row in api.get("/api/sessions")["sessions"] if row["id"] not in before]
            return new[0] if new and "CmdRunAction" in api.types(f"/api/sessions/{new[0]}") else None

        return until(acting, "a command of the session")
    finally:
        process.kill()
        process.wait()


def evaluate(api: Api, program: Program) -> Path:
    """Return the folder of a run in which some rollouts fail."""
    example, out = ROOT / "examples/benchmark", api.folder / "run"
    right = {"content": "17 and 26 make 43.", **finish("<answer>43</answer>")}
    what = [str(example / "arithmetic.py"), "--data", str(example), "--out", str(out), "--model", api.script(right)]
    subprocess.run(program.command("eval", "run", *what), env=program.environment, capture_output=True, check=True)
    return out


async def pictures(browser: Browser, api: Api, look: str, sessions: dict[str, str]) -> None:
    """Take the pictures of one look."""
    async with window(browser, api.url, **LOOKS[look]) as page:
        await page.goto(f"/welcome?token={api.token}")
        await expect(page.get_by_role("heading", name="1. Pick a model")).to_be_visible()
        await picture(page, look, "first-run")
        await page.goto("/")
        await expect(page.get_by_role("link", name="Greet politely").first).to_be_visible()
        await picture(page, look, "sessions")
        await page.get_by_role("button", name="New session").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await picture(page, look, "new-session")
        for name, shown in (("asking", "Allow for this session"), ("failed", "Change the model")):
            await page.goto(f"/s/{sessions[name]}")
            await expect(page.get_by_role("button", name=re.compile(shown))).to_be_visible()
            await picture(page, look, name)
        await page.goto(f"/s/{sessions['cloned']}")
        await page.get_by_role("button", name="Open a pull request").click()
        await expect(page.get_by_role("dialog")).to_contain_text("Nothing is sent yet.")
        await picture(page, look, "pull-request")
        await page.goto(f"/s/{sessions['served']}?pane=preview")
        heading = page.frame_locator('iframe[title="Preview of port 8765"]').get_by_role("heading")
        await expect(heading).to_have_text("Greetings of the world")
        await picture(page, look, "preview", idle=False)  # the page asks for the ports all the time
        await page.get_by_role("tab", name="Terminal").click()
        await page.get_by_role("button", name="New terminal").click()
        await expect(page.get_by_role("region", name="Terminal 1")).to_contain_text("project$")
        await page.keyboard.type("ls -l")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("region", name="Terminal 1")).to_contain_text("index.html")
        await picture(page, look, "own-terminal", idle=False)
        await page.goto(f"/s/{sessions['whole']}")
        await expect(page.get_by_role("group", name="Conversation")).to_contain_text("Both tests pass.")
        await picture(page, look, "chat")
        await page.get_by_role("button", name="Apply to the folder").first.click()
        await expect(page.get_by_role("list", name="Files that change")).to_be_visible()
        await picture(page, look, "apply")
        await page.get_by_role("button", name="Cancel").click()
        for pane, content in everything.PANES.items():
            await page.get_by_role("tab", name=pane).click()
            await expect(page.get_by_role("tabpanel", name=pane)).to_contain_text(content)
            await fill(page, pane)
            await picture(page, look, pane.lower())


async def dialogs(browser: Browser, api: Api, look: str, sessions: dict[str, str]) -> None:
    """Take the pictures of dialogs, of the bars that steer a session, and of the editor."""
    async with window(browser, api.url, **LOOKS[look]) as page:
        await page.goto(f"/s/{sessions['asking']}?token={api.token}")
        state, dialog = page.get_by_role("region", name="State of the session"), page.get_by_role("dialog")
        for name in ("Model", "Limits", "Permissions"):
            await state.get_by_role("button", name=name).click()
            await expect(dialog).to_be_visible()
            await picture(page, look, f"dialog-{name.lower()}")
            await page.keyboard.press("Escape")
        await page.keyboard.press("?")
        await expect(dialog).to_contain_text("Keyboard shortcuts")
        await picture(page, look, "dialog-shortcuts")
        await page.keyboard.press("Escape")
        await page.goto(f"/s/{sessions['whole']}?pane=timeline")
        await page.get_by_role("button", name="Fork here").click()
        await expect(dialog).to_contain_text("Fork at event")
        await picture(page, look, "dialog-fork")
        for name, shown in (("planning", "Accept the plan"), ("refused", "Allow once"), ("interrupted", "Resume")):
            await page.goto(f"/s/{sessions[name]}")
            await expect(page.get_by_role("button", name=shown)).to_be_visible()
            await picture(page, look, name)
        await page.goto(f"/s/{sessions['cloned']}?pane=files")
        await page.get_by_role("treeitem", name="greeting.txt").click()
        await page.get_by_role("button", name="Edit").click()
        await expect(page.get_by_role("textbox", name="Text of greeting.txt")).to_contain_text("hallo")
        await picture(page, look, "editor")


async def pictures_of_a_run(browser: Browser, link: str, look: str) -> None:
    """Take the pictures of a run of an evaluation and of one of its rollouts."""
    async with window(browser, link, **LOOKS[look]) as page:
        await page.goto(link)
        rollouts = page.get_by_role("list", name="Rollouts").get_by_role("listitem")
        await expect(rollouts.first).to_contain_text("right answer")
        await picture(page, look, "evaluation")
        await rollouts.first.get_by_role("link").click()
        await expect(page.get_by_role("region", name="Result of the rollout")).to_be_visible()
        if look != "phone":  # which shows the conversation first
            await expect(page.get_by_role("slider", name="Event")).to_be_visible()
        await picture(page, look, "rollout")


async def fill(page: Page, pane: str) -> None:
    """Choose something in the panes that begin with nothing chosen."""
    if pane == "Files":
        await page.get_by_role("treeitem", name="greet.py", exact=False).first.click()
        await expect(page.get_by_role("region", name="File ")).to_contain_text("WORDS")
    if pane == "Timeline":
        await page.get_by_role("slider", name="Event").fill("40")
        await page.get_by_role("radio", name="Changed so far").check()
        changes = page.get_by_role("tabpanel").get_by_role("region", name="Changes", exact=True)
        await expect(changes).to_contain_text("WORDS.get")
        await expect(changes).not_to_contain_text("NOTES.md")  # which the newest event has
    if pane == "Compare":
        await page.get_by_role("radio", name="Changes").check()
        await expect(page.get_by_role("tabpanel")).to_contain_text("test_greet.py")


async def picture(page: Page, look: str, name: str, *, idle: bool = True) -> None:
    if idle:
        await page.wait_for_load_state("networkidle")
    await page.screenshot(path=OUT / f"{name}-{look}.png", animations="disabled")


if __name__ == "__main__":
    main()
