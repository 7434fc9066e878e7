"""``handiwork agents``: the list with micro agents and knowledge, and the check of each agent with a live model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from handiwork.llm.scripted.script import Reply
from tests.cli.program import Program, bash, finish
from tests.llm.standin import StandIn, serving


def end(**outputs: Any) -> Reply:
    return Reply.model_validate({"tool_calls": [{"name": "finish", "arguments": outputs}]})


@pytest.mark.slow
def test_micro_agents_knowledge_and_broken_files_are_listed(program: Program) -> None:
    micro = program.settings.parent / "micro"
    micro.mkdir(parents=True)
    (micro / "greeter.md").write_text("---\nname: Greeter\ndescription: Greets.\n---\nGreet {{ task }}.\n")
    (micro / "git.md").write_text("---\ntriggers: [git, commit]\n---\nSign commits.\n")
    listed = program("agents")
    assert listed.returncode == 0
    assert f"{'Greeter':24}Greets.  (yours, {micro}/greeter.md)\n" in listed.stdout
    assert f"{'CommitWriterAgent':24}Writes the message of a commit" in listed.stdout
    assert f"{'git':24}knowledge for the words git, commit  ({micro}/git.md)\n" in listed.stdout

    (micro / "broken.md").write_text("---\ncolour: red\n---\nx\n")
    listed = program("agents")
    assert listed.returncode == 1
    assert f"not loaded: {micro}/broken.md:2: unknown key 'colour'" in listed.stdout
    named = program("agents", "Greeter", "MathAgent", "--json").stdout.splitlines()
    assert [json.loads(line)["name"] for line in named] == ["Greeter", "MathAgent"]


@pytest.mark.slow
def test_the_accepted_agents_of_a_repository_are_listed_in_its_folders(program: Program) -> None:
    folder = program.workspace / ".handiwork/agents"
    folder.mkdir(parents=True)
    (folder / "Greeter.md").write_text("---\ndescription: Greets.\n---\nGreet {{ task }}.\n")
    listed = program("agents")
    assert (listed.returncode, "Greets." in listed.stdout) == (0, False)
    assert "not loaded: .handiwork/agents/Greeter.md: not accepted: handiwork context --accept" in listed.stdout
    program("context", "--accept", "--yes")
    assert f"{'Greeter':24}Greets.  (accepted by you, {folder}/Greeter.md)\n" in program("agents").stdout
    assert json.loads(program("agents", "Greeter", "--json").stdout)["name"] == "Greeter"
    assert program("run", "greet", "--agent", "Greeter", "--model", program.script(finish())).returncode == 0
    forked = program("fork", "--at", "2")
    assert forked.returncode == 0, forked.stderr

    (folder / "bad.md").write_text("---\nfoo: bar\n---\nx\n")
    program("context", "--accept", "--yes")
    listed = program("agents")
    assert listed.returncode == 1
    assert f"not loaded: {folder}/bad.md:2: unknown key 'foo'" in listed.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../own.py:OwnAgent", "../swarm.json"])
def test_an_agent_of_a_file_is_not_in_the_list_and_not_checked_as_another(program: Program, name: str) -> None:
    checked = program("agents", "--check", name)
    assert (checked.returncode, checked.stdout) == (2, "")
    assert f"handiwork: '{name}' is not in the list" in checked.stderr


@pytest.mark.slow
def test_a_file_is_an_agent_and_knowledge_is_told(program: Program) -> None:
    micro = program.settings.parent / "micro"
    micro.mkdir(parents=True)
    (micro / "git.md").write_text("---\ntriggers: [git]\n---\nSign commits.\n")
    file = program.folder / "greeter.md"
    file.write_text("---\nname: Greeter\noutputs: {greeting: string}\ntools: [bash]\n---\nGreet {{ task }}.\n")
    ends = {"tool_calls": [{"name": "finish", "arguments": {"greeting": "Hello, git."}}]}
    arguments = ("--agent", "../greeter.md", "--model", program.script(bash("true"), ends))
    done = program("run", "those who use git", *arguments)
    assert done.returncode == 0, done.stderr
    assert "greeting: Hello, git.\n" in done.stdout
    shown = program("show").stdout
    assert "Greeter · scripted:" in shown
    assert f"knowledge: git, for the word git ({micro}/git.md)" in shown


@pytest.mark.slow
async def test_the_check_of_agents_with_a_live_model(program: Program) -> None:
    server = StandIn([Reply(content="", tool_calls=()), end(answer="44323"), end(message="Count umbrellas")])
    server.replies[0] = Reply.model_validate({"tool_calls": [{"name": "ipython", "arguments": {"code": "127 * 349"}}]})
    async with serving(server):
        arguments = ("agents", "--check", "CommitWriter", "MathAgent", "VerifierAgent")
        model = ("--model", "some-model", "--base-url", server.base_url)
        checked = await asyncio.to_thread(program, *arguments, *model)
        as_json = await asyncio.to_thread(program, "agents", "--check", "MathAgent", *model, "--json")
    assert checked.returncode == 1, checked.stderr
    rows = {line.split()[0]: line.split() for line in checked.stdout.splitlines() if not line.startswith(" ")}
    assert rows["agent"] == ["agent", "done", "steps", "tokens", "seconds", "session"]
    assert rows["CommitWriterAgent"][1:3] == ["yes", "4"]
    assert rows["MathAgent"][1:3] == ["yes", "2"]
    assert rows["VerifierAgent"][1] == "no"
    assert "error: " in checked.stdout
    assert as_json.returncode == 0
    verdict = json.loads(as_json.stdout)
    assert (verdict["agent"], verdict["problem"], verdict["outcome"]) == ("MathAgent", "", "finished")
    assert program("show", verdict["session"]).returncode == 0
