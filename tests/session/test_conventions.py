"""Conventions join the prompts once the user has accepted them, stay through condensing, and change nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import handiwork
from handiwork.agents.protocols.conventions import convention_messages
from handiwork.agents.protocols.message_cache import MessageCache
from handiwork.agents.registry import AgentNotFoundError
from handiwork.agents.state import State
from handiwork.context.discovery import everything
from handiwork.context.trust import Trust, TrustError
from handiwork.events.action import CmdRunAction
from handiwork.events.base import Event
from handiwork.events.observation import CmdOutputObservation
from handiwork.events.overview import WorkspaceOverviewObservation
from handiwork.events.record import CondensationEvent, ContextLoaded, ContextWithheld, KnowledgeEvent
from handiwork.llm.scripted.model import ScriptedLLM
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import Capabilities, Message
from handiwork.log.store import Store
from handiwork.session.open import reopen
from tests.evals.runs import finished, planned, script, sums
from tests.session.bench import bash, call, calls, finish

pytestmark = pytest.mark.slow

RULE = "Never use the letter “ß”;  keep two spaces  as they are.\n\n- and this list"


class Project:
    """A project, its user's settings and data."""

    def __init__(self, folder: Path) -> None:
        self.root, self.data, self.settings = folder / "project", folder / "data", folder / "config/handiwork"
        self.root.mkdir()
        self.settings.mkdir(parents=True)
        self.llm = ScriptedLLM([])

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def accept(self) -> None:
        trust = Trust(self.data)
        waiting = [one for one in everything(self.root, self.settings, trust) if one.waits_for_user]
        trust.answer(self.root, [one.convention for one in waiting], accept=True)

    def run(
        self,
        *replies: Reply | str,
        sandbox: str = "none",
        capabilities: Capabilities = Capabilities(),
        agent: str = "CodeActAgent",
        limit: int = 100,
    ) -> list[Event]:
        """Run a task, and return the events of its session."""
        self.llm = ScriptedLLM([*replies, finish()], capabilities=capabilities)
        done = handiwork.run(
            "do it", workspace=self.root, model=self.llm, sandbox=sandbox, data=self.data, agent=agent,
            max_iterations=limit,
        )  # fmt: skip
        self.session = done.session
        return asyncio.run(self._events())

    async def _events(self) -> list[Event]:
        async with Store.open(self.data) as store:
            return await (await store.log(self.session)).read()

    def prompts(self) -> list[str]:
        return [text_of(request) for request in self.llm.requests]


def write(path: str, content: str) -> Reply:
    return calls(("write", {"path": path, "content": content}))


def text_of(messages: Sequence[Message]) -> str:
    return "\n".join(part.text or "" for message in messages for part in message.content)


def loaded(events: Sequence[Event]) -> list[str]:
    return [event.path for event in events if isinstance(event, ContextLoaded)]


def notices(events: Sequence[Event]) -> list[str]:
    return [event.content for event in events if isinstance(event, ContextWithheld)]


async def resumed(project: Project) -> list[str]:
    """Resume the last session; return the paths of the conventions that it has loaded."""
    file = project.data / "more.jsonl"
    file.write_text('{"content": "What next?"}\n' * 5)
    async with Store.open(project.data) as store:
        changes = {"model": f"scripted:{file}", "agent": "CodeActAgent"}
        session = await reopen(store, project.data, project.session, lambda _: None, **changes)
        async with session.hold_lease():
            await session.run("go on")
    return loaded(await project._events())


def conventions_of(project: Project) -> str:
    """Return the conventions in the next prompt of the last session."""
    state = State()
    for event in asyncio.run(project._events()):
        state.apply(event)
    return text_of(convention_messages(state, MessageCache(), None))


@pytest.fixture
def project(tmp_path: Path, new_user: None) -> Project:
    return Project(tmp_path)


def test_a_folder_without_conventions_has_the_same_events_and_prompts(project: Project) -> None:
    kinds = [event.kind for event in project.run(bash("true"))]
    assert not [kind for kind in kinds if kind.startswith("Context")]
    assert kinds[:3] == ["SessionStarted", "MessageAction", "StepStarted"]
    assert all([message.role for message in request[:2]] == ["system", "user"] for request in project.llm.requests)
    assert project.llm.requests[0][1].content[0].text == "do it"


def test_nothing_is_in_a_prompt_before_it_is_accepted_and_one_line_says_so(project: Project) -> None:
    project.write("AGENTS.md", RULE)
    events = project.run()
    assert loaded(events) == []
    assert notices(events) == [
        f"not loaded until you accept them: AGENTS.md; see `handiwork context --accept {project.root}`"
    ]
    assert RULE not in project.prompts()[0]


def test_a_claude_md_in_the_folder_of_claude_loads_from_the_beginning_and_once(project: Project) -> None:
    project.write(".claude/CLAUDE.md", RULE)
    assert "not loaded until you accept them: .claude/CLAUDE.md" in notices(project.run())[0]
    project.accept()
    assert asyncio.run(resumed(project)) == [".claude/CLAUDE.md"]


def test_an_accepted_text_stands_word_for_word_and_a_changed_one_does_not(project: Project) -> None:
    project.write("AGENTS.md", RULE)
    project.accept()
    (event,) = [event for event in project.run(bash("true")) if isinstance(event, ContextLoaded)]
    assert (event.text, event.origin, event.category) == (RULE, "workspace", "instructions")
    assert all(RULE in prompt for prompt in project.prompts())
    project.write("AGENTS.md", RULE + "!")
    events = project.run()
    assert loaded(events) == []
    assert "AGENTS.md (changed)" in notices(events)[0]


def test_a_micro_agent_of_the_repository_runs_once_it_is_accepted(project: Project) -> None:
    project.write(".handiwork/agents/Greeter.md", "---\ntools: [bash]\n---\nGreet the world. {{ task }}\n")
    with pytest.raises(AgentNotFoundError, match=r"\.handiwork/agents/Greeter\.md: not accepted: handiwork context"):
        project.run(agent="Greeter")
    project.accept()
    assert not [event for event in project.run(agent="Greeter") if event.kind.startswith("Context")]
    assert "Greet the world. do it" in project.prompts()[0]
    project.write(".handiwork/agents/Greeter.md", "---\ntools: [bash]\n---\nGreet nobody.\n")
    with pytest.raises(AgentNotFoundError, match="changed since you accepted it"):
        project.run(agent="Greeter")


def test_the_nearest_micro_agent_of_a_repository_wins_and_none_outside_is_read(project: Project) -> None:
    project.root = project.root / "part"
    places = {".handiwork": "part's", "../.handiwork": "root's", "../../.handiwork": "stranger's"}
    for place, text in places.items():
        project.write(f"{place}/agents/Greeter.md", f"---\ntools: [bash]\n---\nThe {text} greeting.\n")
        project.write(f"{place}/agents/Other.md", f"---\ntools: [bash]\n---\nThe {text} other.\n")
    (project.root.parent / ".git").mkdir()
    (project.root / ".handiwork/agents/Other.md").unlink()
    project.accept()
    project.run(agent="Greeter")
    assert "The part's greeting." in project.prompts()[0]
    project.run(agent="Other")
    assert "The root's other." in project.prompts()[0]
    paths = [one.convention.path for one in everything(project.root, project.settings, Trust(project.data))]
    assert [path for path in paths if path.startswith("../..")] == []


def test_knowledge_of_the_repository_joins_once_it_is_accepted(project: Project) -> None:
    project.write(".handiwork/agents/doing.md", f"---\ntriggers: [do]\n---\n{RULE}\n")
    assert notices(project.run()) != []
    assert RULE not in project.prompts()[0]
    project.accept()
    (joined,) = [event for event in project.run() if isinstance(event, KnowledgeEvent)]
    assert (joined.trigger, joined.content) == ("do", RULE)
    assert RULE in project.prompts()[0]


def test_the_users_own_needs_no_acceptance(project: Project) -> None:
    (project.settings / "AGENTS.md").write_text(RULE)
    assert loaded(project.run()) == [str(project.settings / "AGENTS.md")]
    assert RULE in project.prompts()[0]


def test_a_rule_is_still_there_word_for_word_after_ten_condensations(project: Project) -> None:
    project.write("AGENTS.md", RULE)
    project.accept()
    capabilities = Capabilities(window=9_000)
    events = project.run(
        *[bash(f"seq {n} {n + 400}", content="I count.") for n in range(300)], capabilities=capabilities, limit=80
    )
    assert sum(isinstance(event, CondensationEvent) for event in events) >= 10
    asks = [prompt for prompt in project.prompts() if "They are about to be deleted" not in prompt]
    assert len(asks) > 10
    assert all(prompt.count(RULE) == 1 for prompt in asks)


@pytest.mark.parametrize(
    "reply",
    [
        call("edit", path="web/app/a.txt", old="1", new="2"),
        write("web/app/b.txt", "1"),
        bash("cat web/app/a.txt"),
        bash("cd web/app && cat a.txt"),
        call("ipython", code="open('web/app/a.txt').read()"),
    ],
    ids=["edit", "write", "cat", "cd", "cell"],
)
def test_a_nested_file_joins_when_the_agent_first_works_in_its_folder(project: Project, reply: Reply) -> None:
    project.write("AGENTS.md", "the root's")
    project.write("web/AGENTS.md", "the web's")
    project.write("web/app/CLAUDE.md", "the app's")
    project.write("docs/AGENTS.md", "the docs'")
    project.write("web/app/a.txt", "1")
    project.accept()
    events = project.run(bash("true"), reply, bash("cat web/app/a.txt"))
    assert loaded(events) == ["AGENTS.md", "web/AGENTS.md", "web/app/CLAUDE.md"]
    first, *_, last = project.prompts()
    assert "the web's" not in first
    assert "the docs'" not in last
    assert last.index("the root's") < last.index("the web's") < last.index("the app's")


def test_a_nested_file_joins_when_a_command_runs_in_its_folder(project: Project) -> None:
    project.write("web/AGENTS.md", RULE)
    project.accept()
    assert loaded(project.run(bash("cd web && ls"))) == ["web/AGENTS.md"]


def test_the_files_of_the_folders_around_join_up_to_the_repositorys_root(project: Project) -> None:
    project.root = project.root / "apps/web"
    places = {"AGENTS.md": "the web's", "../AGENTS.md": "the apps'", "../../AGENTS.md": "the root's\n@docs/style.md"}
    for path, text in {**places, "../CLAUDE.md": "the web's", "../../../AGENTS.md": "a stranger's"}.items():
        project.write(path, text)
    project.write("../../docs/style.md", "the style" + "!" * 40_000)
    assert loaded(project.run()) == []
    assert "AGENTS.md; see" in notices(project.run())[0], "without a repository there is nothing around"
    (project.root.parents[1] / ".git").mkdir()
    assert "not loaded until you accept them: AGENTS.md, ../AGENTS.md, ../../AGENTS.md" in notices(project.run())[0]
    project.accept()
    events = project.run(write("new/x.txt", ""))
    assert loaded(events) == ["AGENTS.md", "../AGENTS.md", "../../AGENTS.md", "../../docs/style.md"]
    assert notices(events) == []
    prompt = project.prompts()[0]
    assert prompt.index("the root's") < prompt.index("the apps'") < prompt.index("the web's")
    assert prompt.count("the web's") == 1
    assert "a stranger's" not in prompt
    assert "characters are left out]" in prompt, "the agent cannot read the rest"


def test_a_file_that_is_named_like_instructions_among_micro_agents_is_none(project: Project) -> None:
    project.root = project.root / "part"
    project.write("AGENTS.md", RULE)
    for place in (".handiwork/agents", "../.handiwork/agents"):
        project.write(f"{place}/AGENTS.md", "---\ndescription: x\n---\nDo it.\n")
    (project.root.parent / ".git").mkdir()
    project.run(Reply(content="What next?"))
    project.accept()
    assert asyncio.run(resumed(project)) == ["AGENTS.md"]


@pytest.mark.parametrize("agent", ["CodeActAgent", "PlannerAgent", "MonologueAgent", "ManagerAgent", "SWEAgent"])
def test_each_agent_that_asks_for_one_step_after_the_other_has_them(project: Project, agent: str) -> None:
    project.write("AGENTS.md", RULE)
    project.write(".claude/skills/tables/SKILL.md", "---\nname: tables\ndescription: Makes tables.\n---\nDraw.\n")
    project.accept()
    project.run(call("reject", reason="no"), call("submit"), agent=agent)
    assert all(prompt.count(RULE) == 1 for prompt in project.prompts())
    assert "- tables: Makes tables. (.claude/skills/tables/SKILL.md)" in project.prompts()[0]


def test_what_an_agent_writes_is_no_convention(project: Project) -> None:
    events = project.run(
        write("AGENTS.md", "planted"),
        write("sub/AGENTS.md", "planted"),
        write("sub/x.txt", ""),
    )
    assert loaded(events) == notices(events) == []


def test_what_the_user_accepts_later_joins_when_the_session_resumes(project: Project) -> None:
    project.write("AGENTS.md", "the root's")
    project.write("web/AGENTS.md", "the web's")
    project.run(write("web/a.txt", "1"))
    project.accept()
    assert asyncio.run(resumed(project)) == ["AGENTS.md", "web/AGENTS.md"]


def test_a_delegate_has_them_too(project: Project) -> None:
    project.write("AGENTS.md", RULE)
    project.accept()
    delegation = call("delegate", agent="CodeActAgent", task="the half")
    project.run(delegation, finish("half done"))
    assert [RULE in prompt for prompt in project.prompts()] == [True] * 3


def test_a_small_window_gets_a_quarter_and_is_told_where_the_rest_is(project: Project) -> None:
    project.write("AGENTS.md", "word " * 4_000)
    project.accept()
    project.run(capabilities=Capabilities(window=8_000))
    prompt = project.prompts()[0]
    assert 5_000 < prompt.count("word ") * 5 <= 6_005
    assert "more characters are left out, because the model's window is small: read AGENTS.md" in prompt


def test_all_instructions_together_are_bounded(project: Project) -> None:
    for name in ("AGENTS.md", "CLAUDE.md"):
        project.write(name, name + "x" * 40_000)
    project.accept()
    (project.settings / "AGENTS.md").write_text("y" * 40_000)
    events = project.run()
    assert loaded(events) == [str(project.settings / "AGENTS.md"), "AGENTS.md"]
    assert "all instructions together may have" in notices(events)[0]


def test_the_overview_of_a_small_model_reads_no_advice(project: Project) -> None:
    project.write("AGENTS.md", RULE)
    project.write("notes.txt", "buy milk")
    events = project.run(capabilities=Capabilities(window=16_000))
    (shown,) = [event.shown for event in events if isinstance(event, WorkspaceOverviewObservation)]
    assert shown == ("notes.txt",)
    assert not any(RULE[:20] in prompt for prompt in project.prompts())


def skill(folder: Path, name: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does {name}.\n---\nthe body of {name}\n")


def test_a_skill_is_disclosed_step_by_step_and_readable_inside(project: Project) -> None:
    skill(project.root / ".agents/skills", "theirs")
    skill(project.settings / "skills", "mine")
    project.accept()
    events = project.run(
        bash("cat .agents/skills/theirs/SKILL.md"),
        bash(f"cat {project.data}/skills/*/mine/SKILL.md; touch {project.data}/skills/x || echo refused"),
        sandbox="bubblewrap",
    )
    theirs, mine = (event for event in events if isinstance(event, ContextLoaded))
    assert (theirs.path, theirs.text) == (".agents/skills/theirs/SKILL.md", "theirs: Does theirs.")
    first = project.prompts()[0]
    assert f"- mine: Does mine. ({mine.path})" in first
    assert "the body" not in first
    outputs = [event.content for event in events if isinstance(event, CmdOutputObservation)]
    assert "the body of theirs" in outputs[0]
    assert "the body of mine" in outputs[1]
    assert outputs[1].endswith("refused\n")


def test_a_resumed_session_has_the_users_skills_and_rules_as_they_are_now(project: Project) -> None:
    skill(project.settings / "skills", "mine")
    (project.settings / "AGENTS.md").write_text(RULE)
    project.run(Reply(content="What next?"))
    (project.settings / "AGENTS.md").rename(project.settings / "CLAUDE.md")
    file = project.settings / "skills/mine/SKILL.md"
    file.write_text(file.read_text().replace("Does mine.", "Does it well."))
    asyncio.run(resumed(project))
    prompt = conventions_of(project)
    assert prompt.count(RULE) == prompt.count("- mine: ") == 1
    assert "- mine: Does it well." in prompt
    names = f"{project.settings}/AGENTS.md, the skill mine"
    events = asyncio.run(project._events())
    assert notices(events) == [f"deleted, changed or replaced, and no longer loaded as before: {names}"]


def test_an_accepted_skill_of_the_workspace_takes_the_place_of_the_users(project: Project) -> None:
    skill(project.settings / "skills", "mine")
    skill(project.root / ".agents/skills", "mine")
    project.run(Reply(content="What next?"))
    project.accept()
    asyncio.run(resumed(project))
    prompt = conventions_of(project)
    assert prompt.count("- mine: ") == 1
    assert "- mine: Does mine. (.agents/skills/mine/SKILL.md)" in prompt


def test_a_skill_around_the_workspace_is_readable_inside_once_accepted(project: Project) -> None:
    project.root = project.root / "packages/a"
    project.write("x.txt", "")
    (project.root.parents[1] / ".git").mkdir()
    skill(project.root.parents[1] / ".agents/skills", "build")
    assert loaded(project.run(sandbox="bubblewrap")) == []
    project.accept()
    read = bash(f"cat {project.data}/skills_around/*/*/build/SKILL.md")
    events = project.run(read, sandbox="bubblewrap")
    (event,) = [event for event in events if isinstance(event, ContextLoaded)]
    assert f"- build: Does build. ({event.path})" in project.prompts()[0]
    assert "the body of build" in next(event.content for event in events if isinstance(event, CmdOutputObservation))
    project.root = project.root / "other"
    project.write("x.txt", "")
    (project.root / ".git").mkdir()
    events = project.run(read, sandbox="bubblewrap")
    outputs = [event.content for event in events if isinstance(event, CmdOutputObservation)]
    assert "the body" not in outputs[0], "it is another workspace's"


CONTAINER = {
    "image": "python:3.12",
    "containerEnv": {"COLOUR": "dark red", "PATH": "${containerWorkspaceFolder}/bin:${containerEnv:PATH}"},
    "initializeCommand": "touch {}/host",
    "postCreateCommand": "echo $COLOUR > ${localWorkspaceFolder}/made.txt; touch {}/host",
}


def test_a_devcontainer_is_set_up_inside_once_accepted(project: Project, tmp_path: Path) -> None:
    project.write(".devcontainer.json", json.dumps(CONTAINER).replace("{}", str(tmp_path)))
    assert not [event for event in project.run(sandbox="bubblewrap") if isinstance(event, CmdRunAction)]
    project.accept()
    events = project.run(bash("cat made.txt; echo $COLOUR; echo ${PATH%%:*}"), sandbox="bubblewrap")
    commands = [event for event in events if isinstance(event, CmdRunAction)]
    assert [event.source for event in commands] == ["environment", "environment", "agent"]
    outputs = [event.content for event in events if isinstance(event, CmdOutputObservation)]
    assert outputs[-1] == f"dark red\ndark red\n{project.root}/bin\n"
    assert not (tmp_path / "host").exists()


def test_the_commands_of_a_devcontainer_leave_the_agents_shell_as_it_is(project: Project) -> None:
    commands = {"web": "cd web && touch made  # its packages", "api": ["cd", "api"], "last": "touch last; exit 3"}
    project.write(".devcontainer.json", json.dumps({"postCreateCommand": commands}))
    project.write("web/package.json", "{}")
    project.write("api/setup.py", "")
    project.accept()
    events = project.run(bash("pwd; ls -1 web/made last"), sandbox="bubblewrap")
    outputs = [event.content for event in events if isinstance(event, CmdOutputObservation)]
    assert outputs[-1] == f"{project.root}\nlast\nweb/made\n"


def test_without_a_sandbox_nothing_of_a_devcontainer_runs(project: Project, tmp_path: Path) -> None:
    project.write(".devcontainer.json", json.dumps(CONTAINER).replace("{}", str(tmp_path)))
    project.accept()
    events = project.run()
    assert not [event for event in events if isinstance(event, CmdRunAction)]
    assert notices(events) == [".devcontainer.json is not used: without a sandbox, nothing of a repository runs"]


async def test_an_evaluation_loads_no_conventions(tmp_path: Path, new_user: None) -> None:
    settings = tmp_path / "config/handiwork"
    settings.mkdir(parents=True)
    (settings / "AGENTS.md").write_text(RULE)
    skill(settings / "skills", "mine")
    work = await planned(sums(tmp_path / "sums", "a"), script(tmp_path / "script"))
    results = await finished(tmp_path / "out", work)
    (trajectory,) = [(tmp_path / "out" / result.trajectory).read_text() for result in results.values()]
    assert RULE[:20] not in trajectory
    assert '"type":"Context' not in trajectory


def test_the_commands_of_a_devcontainer_are_asked_about_like_the_agents(project: Project, tmp_path: Path) -> None:
    project.write(".devcontainer.json", json.dumps(CONTAINER).replace("{}", str(tmp_path)))
    project.accept()
    done = handiwork.run(
        "do it", workspace=project.root, model=ScriptedLLM([]), data=project.data, confirmation="always"
    )  # fmt: skip
    assert done.outcome == "awaiting_user_confirmation"
    assert done.state.pending[0].source == "environment"


def test_a_damaged_file_of_answers_stops_the_session_at_its_begin(project: Project) -> None:
    project.write("AGENTS.md", RULE)
    project.data.mkdir()
    (project.data / "trust.json").write_text("{")
    with pytest.raises(TrustError, match="remove it"):
        project.run()
