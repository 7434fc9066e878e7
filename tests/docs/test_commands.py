"""Every code block of the documentation runs as it is written, for a new user; or its page says why it does not."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from examples.demo.run import make_repository
from handiwork.llm.local.weights import QWEN_CODER, fetch
from handiwork.llm.scripted.script import Reply
from handiwork.paths import cache_dir
from handiwork.server.app import OPERATIONS
from handiwork.server.live import Channels
from handiwork.session.steps.live import OutputDelta, Status, TextDelta
from tests.docs.blocks import BLOCKS, CHECKOUT, Block, blocks_of, faults
from tests.evals.rollouts import needs_benchdata
from tests.llm.anthropic_stream import block as part
from tests.llm.anthropic_stream import reply, said
from tests.llm.standin import Json, Refusal, StandIn, Stream, serving

VENV = Path(sys.prefix)
PORT = 8000
"""That of the server that README names."""
OWN = re.compile(r"HANDIWORK_|XDG_|PYTHON|VIRTUAL_ENV|NO_COLOR|.*_API_KEY$")
"""Variables of whoever runs the tests that a new user has not."""
COMMAND, ANSWER = "echo one >> notes.txt", "<answer>4</answer>"
# Agents that call tools understand these replies, and so does examples/minimal_agent.py, which reads the text.
ACT = {
    "content": f"<execute_bash>{COMMAND}</execute_bash>",
    "tool_calls": [{"name": "bash", "arguments": {"command": COMMAND}}],
}
FINISH = {"content": "<finish/>", "tool_calls": [{"name": "finish", "arguments": {"message": ANSWER}}]}
ALL = [block for blocks in BLOCKS.values() for block in blocks]
SHELL = {
    page.name: [
        block for block in blocks if block.runs and block.language in ("sh", "python") and not block.mark("fails")
    ]
    for page, blocks in BLOCKS.items()
}
FAST = {name: quick for name, blocks in SHELL.items() if (quick := [one for one in blocks if not one.mark("slow")])}
SLOW = {name: blocks for name, blocks in SHELL.items() if any(one.mark("slow") for one in blocks)}


class HostedModel(StandIn):
    """A model at Anthropic: it acts once, by a tool that not all agents have, then it finishes."""

    def _answer(self, messages: list[Json], *, chat: bool) -> Refusal | Stream:
        acted = any(message["role"] == "assistant" for message in messages)
        name, arguments = ("finish", {"message": ANSWER}) if acted else ("bash", {"command": COMMAND})
        call: Json = {"type": "tool_use", "id": f"toolu_{len(messages)}", "name": name, "input": {}}
        written: Json = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        return reply(said("I do it."), part(1, call, written), stop="tool_use")


class Reader:
    """A new user, who has set up a fresh copy of the checkout and types a page's blocks one after another."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.checkout = home / "handiwork"
        # What the machine needs to reach the network is kept.
        kept = {key: value for key, value in os.environ.items() if not OWN.match(key)}
        path = [folder for folder in kept["PATH"].split(os.pathsep) if Path(folder) != VENV / "bin"]
        self.environment = {**kept, "HOME": str(home), "PATH": os.pathsep.join(path)}
        if data := os.environ.get("HANDIWORK_BENCHDATA"):
            self.environment["HANDIWORK_BENCHDATA"] = data
        self.checkout.mkdir(parents=True)
        files = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=CHECKOUT, check=True, capture_output=True,
        ).stdout  # fmt: skip
        subprocess.run(["xargs", "-0", "cp", "--parents", "-t", self.checkout], cwd=CHECKOUT, input=files, check=True)
        (self.checkout / ".venv").symlink_to(VENV)

    def use_script(self) -> None:
        """Use a scripted model where a command names none."""
        script = self.home / "script.jsonl"
        script.write_text("".join(json.dumps(reply) + "\n" for reply in (ACT, FINISH)))
        self.environment["HANDIWORK_MODEL"] = f"scripted:{script}"

    async def use_weights(self) -> None:
        """Let the weights be there that the default model would fetch, also as a file of the user's."""
        folder = cache_dir() / "models"
        file = await fetch(QWEN_CODER, folder, lambda done, total: None)
        (self.home / ".cache/handiwork").mkdir(parents=True)
        (self.home / ".cache/handiwork/models").symlink_to(folder)
        (self.home / "models").mkdir()
        (self.home / "models/model.gguf").symlink_to(file)

    async def type(self, blocks: list[Block]) -> None:
        """Type the blocks into one shell; the first command that fails ends it, and its output is shown."""
        lines = ["set -eo pipefail"]
        for block in blocks:
            text = block.text if block.language == "sh" else f"python - <<'END OF BLOCK'\n{block.text}END OF BLOCK\n"
            lines.append(f"printf '\\n=== {block.place}\\n'\n{text}")
        shell = await asyncio.create_subprocess_exec(
            "bash", "-c", "\n".join(lines),
            cwd=self.checkout, env=self.environment, start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            printed = (await shell.communicate())[0].decode()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)
        assert shell.returncode == 0, printed


async def free(port: int) -> None:
    """Wait until nobody listens there any more, like the same test of another checkout."""
    for _ in range(60):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            return
        writer.close()
        await asyncio.sleep(1)
    raise AssertionError(f"another program has port {port}, which the page names")


async def read(page: str, blocks: list[Block], reader: Reader) -> None:
    """Prepare what a page's blocks need and type them."""
    if page != "README.md":  # which tells how
        reader.environment["PATH"] = f"{reader.checkout}/.venv/bin:{reader.environment['PATH']}"
    things = {block.mark("with") for block in blocks}
    async with AsyncExitStack() as stack:
        if "hosted models" in things:
            hosted = await stack.enter_async_context(serving(HostedModel()))
            reader.environment["ANTHROPIC_BASE_URL"] = hosted.base_url.removesuffix("/v1")
            replies = [Reply.model_validate(reply) for reply in (ACT, FINISH)]
            await free(PORT)
            await stack.enter_async_context(serving(StandIn(replies), PORT))
        await reader.type(blocks)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", FAST)
async def test_a_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.use_script()
    shutil.copytree(CHECKOUT / "examples/demo/todo", tmp_path / "src/project")
    await read(page, FAST[page], reader)


@needs_benchdata
@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", SLOW)
async def test_a_page_does_what_it_says_with_the_default_model(page: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    await reader.use_weights()
    make_repository(tmp_path / "src/project")
    await read(page, SLOW[page], reader)


def test_every_block_runs_or_its_page_says_why_not() -> None:
    assert [fault for block in ALL for fault in faults(block)] == []


@pytest.mark.parametrize("block", [one for one in ALL if "config.toml" in one.text], ids=lambda block: block.place)
def test_a_block_keeps_the_settings_that_the_reader_has(block: Block) -> None:
    """It overwrites no settings file, and appends only tables: a key would belong to the last table of the file."""
    written = re.findall(r"(>+) \S*/config\.toml <<'?END'?\n(.*?)^END$", block.text, re.DOTALL | re.MULTILINE)
    assert len(written) == block.text.count("> ~/.config/handiwork/config.toml")
    for arrow, text in written:
        assert arrow == ">>"
        assert text.lstrip().startswith("[")


@pytest.mark.parametrize(
    ("above", "language", "fault"),
    [
        ("", "", "no test runs the language ''"),
        ("", "text", "no test runs the language 'text'"),
        ("<!-- not run: -->", "sh", "is no reason"),
        ("<!-- not run: too slow -->", "sh", "is no reason"),
        ("<!-- slow: -->", "sh", "is no reason"),
        ("<!-- with: magic -->", "sh", "cannot prepare 'magic'"),
        ("<!-- skip: it fails on my machine today -->", "sh", "no mark 'skip'"),
        ("<!-- slow: it needs the local model -->\n<!-- not run: it needs a paid model -->", "sh", "one mark"),
        ("<!-- not run: it needs a paid model -->\n", "text", "no test runs"),
    ],
)
def test_a_block_that_neither_runs_nor_says_why_is_a_fault(above: str, language: str, fault: str) -> None:
    (block,) = blocks_of("page.md", f"Some words.\n{above}\n```{language}\ntrue\n```\n")
    assert fault in "".join(faults(block))


async def test_a_command_that_fails_fails_its_page(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    page = "```sh\necho before\nfalse\necho after\n```\n"
    with pytest.raises(AssertionError) as failed:
        await reader.type(blocks_of("page.md", page))
    assert "before" in str(failed.value)
    assert "after" not in str(failed.value)


@pytest.mark.parametrize("block", [one for one in ALL if one.language == "toml"], ids=lambda block: block.place)
def test_an_entry_point_makes_a_benchmark_known(block: Block, tmp_path: Path) -> None:
    """What an installer makes of the block and the example, in a folder where Python looks for packages."""
    package = tmp_path / "my_package"
    package.mkdir()
    shutil.copy(CHECKOUT / "examples/benchmark/arithmetic.py", package)
    metadata = tmp_path / "my_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
    groups = tomllib.loads(block.text)["project"]["entry-points"]
    points = [f"[{name}]\n{key} = {value}\n" for name, group in groups.items() for key, value in group.items()]
    (metadata / "entry_points.txt").write_text("".join(points))
    listed = subprocess.run(
        [VENV / "bin/handiwork", "eval", "list"],
        env={"HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert re.search(r"^arithmetic ", listed.stdout, re.MULTILINE), listed.stdout


def text_block(page: str, beginning: str) -> list[str]:
    """Return the lines of the block of a page that begins so."""
    (block,) = [one for one in ALL if one.place.startswith(page) and one.text.startswith(beginning)]
    return block.text.splitlines()


def test_every_path_of_the_layout_is_there() -> None:
    lines = [line for line in text_block("CONTRIBUTING.md", "handiwork/") if not line.startswith(" ")]
    paths = [path for line in lines for path in re.findall(r"[\w./]+/[\w.]*", re.split(r" {2,}", line)[0])]
    assert len(paths) > 10
    assert [path for path in paths if not (CHECKOUT / path).exists()] == []


def test_every_request_of_the_table_is_one_of_the_servers() -> None:
    known = {(one.method, re.sub(r"\{.*?\}", "*", one.path)) for one in OPERATIONS}
    for line in text_block("docs/server.md", "POST "):
        method, requests = re.split(" {2,}", line)[0], re.findall(r"(?<!\S)/(?:api/[\w/-]+|health|metrics)", line)
        for request in requests:
            assert (method, re.sub(r"/(ID|DIGEST)\b", "/*", request)) in known, line


def test_pieces_of_what_is_under_way_look_as_the_page_shows() -> None:
    decoder = json.JSONDecoder()
    shown = [decoder.raw_decode(line)[0] for line in text_block("docs/server.md", '{"transient"')]
    channels = Channels()
    with channels.joined("s", asyncio.Event()) as backlog:
        channels.say("s", TextDelta("Let me"), after=12)
        channels.say("s", OutputDelta(13, "collecting"), after=13)
        channels.say("s", Status("starting the sandbox"), after=3)
        assert shown == backlog.take(after=12) + backlog.take(after=13)
