"""scripts/check_structure.py finds a planted breach of each rule, and none in a tree that keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_structure import LOOP, SERVE, VITE, Allowed, faults

SERVING = "def serve(host: str = '127.0.0.1', port: int = 8642) -> None: ...\n"


class Tree:
    """A small repository in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write(LOOP, "class Loop: ...\n")
        self.write(SERVE, SERVING)
        self.write(VITE, 'const server = process.env["HANDIWORK_SERVER"];\n')

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def faults(self, **allowed: dict[str, int]) -> list[str]:
        return faults(self.root, Allowed(**allowed))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_tree_that_keeps_the_rules_has_no_faults(tree: Tree) -> None:
    assert tree.faults() == []


def test_an_import_that_points_upwards(tree: Tree) -> None:
    tree.write("handiwork/log/store.py", "def f() -> None:\n    from handiwork.session import session\n")
    assert tree.faults() == ["handiwork/log/store.py:2: log may not import handiwork.session.session"]


def test_an_import_of_the_inside_server(tree: Tree) -> None:
    tree.write("handiwork/sandbox/inside/server.py", "import handiwork.sandbox.base\n")
    assert len(tree.faults()) == 1


def test_a_long_file_and_a_long_function(tree: Tree) -> None:
    tree.write("handiwork/log/store.py", "x = 1\n" * 401)
    tree.write("scripts/tool.py", "def f() -> None:\n" + "    print()\n" * 60)
    assert tree.faults() == [
        "handiwork/log/store.py: 401 lines, over 400",
        "scripts/tool.py:1: f has 61 lines, over 60",
    ]


def test_a_loop_that_is_too_long_or_was_moved(tree: Tree) -> None:
    tree.write(LOOP, "x = 1\n" * 201)
    assert tree.faults() == [f"{LOOP}: 201 lines, over 200"]
    (tree.root / LOOP).rename(tree.root / "handiwork/session/turns.py")
    assert tree.faults() == [f"{LOOP}: missing: name the file of the loop in scripts/check_structure.py"]


@pytest.mark.parametrize("text", ["from tests.server import serving\n", "import tests.web.window\n"])
@pytest.mark.parametrize("folder", ["scripts", "scripts/harness", "perf", "examples"])
def test_an_import_of_tests(tree: Tree, folder: str, text: str) -> None:
    tree.write(f"{folder}/tool.py", text)
    (fault,) = tree.faults()
    assert fault.startswith(f"{folder}/tool.py:1: {folder.split('/')[0]} may not import tests.")


@pytest.mark.parametrize("port", [8642, 8321])
def test_a_port_in_the_web_app_s_configuration(tree: Tree, port: int) -> None:
    tree.write(VITE, f'// the server\nconst server = "http://127.0.0.1:{port}";\n')
    assert tree.faults() == [f"{VITE}:2: the port {port} is written beside the default in {SERVE}"]


def test_a_default_port_that_is_written_twice(tree: Tree) -> None:
    tree.write("handiwork/server/serve.py", "PORT = 8642\n")
    assert [fault.split(":")[0] for fault in tree.faults()] == [SERVE, "handiwork/server/serve.py"]


def test_a_port_s_files_that_were_moved(tree: Tree) -> None:
    (tree.root / VITE).unlink()
    assert [fault.split(":")[0] for fault in tree.faults()] == [VITE]
    tree.write(SERVE, "def serve(host: str, port: int) -> None: ...\n")
    assert [fault.split(":")[0] for fault in tree.faults()] == [SERVE]


@pytest.mark.parametrize(("name", "text"), [("Store", ""), ("_Row", ""), ("Hook", "def f() -> None:\n    ")])
def test_a_class_name_with_two_meanings(tree: Tree, name: str, text: str) -> None:
    tree.write("handiwork/log/store.py", f"{text}class {name}: ...\n")
    tree.write("handiwork/llm/store.py", f"class {name}: ...\n")
    assert tree.faults() == [f"{name}: modules with a class of this name: 2, at most 0 allowed"]


def test_an_allowed_class_name_with_one_meaning_more(tree: Tree) -> None:
    tree.write("handiwork/log/store.py", "class Store: ...\n")
    tree.write("handiwork/llm/store.py", "class Store: ...\n")
    assert tree.faults(class_names={"Store": 2}) == []
    tree.write("handiwork/agents/store.py", "class Store: ...\n")
    assert tree.faults(class_names={"Store": 2}) == ["Store: modules with a class of this name: 3, at most 2 allowed"]


@pytest.mark.parametrize(
    "text",
    [
        'setup.sandbox == "none"',
        '"none" != sandbox_kind',
        'self._sandbox.name in ("none", "bubblewrap")',
        'kind not in {None, "docker"}',
        'event.settings.get("sandbox") == "none"',
    ],
)
def test_a_branch_on_the_kind_of_sandbox(tree: Tree, text: str) -> None:
    rule = "branches on the kind of sandbox"
    tree.write("handiwork/sandbox/create.py", f"x = {text}\n")
    tree.write("handiwork/session/time_travel/files_at.py", f"x = {text}\n")
    assert tree.faults() == [f"handiwork/session/time_travel/files_at.py: {rule}: 1, at most 0 allowed"]
    assert tree.faults(sandbox_kinds={"handiwork/session/time_travel/files_at.py": 1}) == []


def test_a_match_on_the_kind_of_sandbox(tree: Tree) -> None:
    tree.write("handiwork/session/time_travel/files_at.py", 'match setup.sandbox:\n    case "none":\n        pass\n')
    assert len(tree.faults()) == 1


@pytest.mark.parametrize("text", ['text == "none"', 'shutil.which("docker") is None'])
def test_a_comparison_that_is_about_no_sandbox(tree: Tree, text: str) -> None:
    tree.write("handiwork/cli/dialog/questions.py", f"x = {text}\n")
    assert tree.faults() == []


def test_a_large_folder(tree: Tree) -> None:
    for number in range(12):
        tree.write(f"handiwork/log/module_{number}.py", "")
    tree.write("handiwork/log/__init__.py", "")
    assert tree.faults() == []
    tree.write("handiwork/log/module_12.py", "")
    assert tree.faults() == ["handiwork/log: 13 modules in one folder, over 12"]


def test_an_allowed_count_shrinks_with_what_it_counts(tree: Tree) -> None:
    lower = "lower it in scripts/check_structure.py"
    tree.write("handiwork/log/store.py", "class Store: ...\n")
    assert tree.faults(class_names={"Store": 2}) == [
        f"Store: modules with a class of this name: none left of 2 allowed: {lower}"
    ]
    tree.write("handiwork/session/time_travel/files_at.py", 'x = setup.sandbox == "none"\n')
    assert tree.faults(sandbox_kinds={"handiwork/session/time_travel/files_at.py": 2}) == [
        f"handiwork/session/time_travel/files_at.py: branches on the kind of sandbox: 1 left of 2 allowed: {lower}"
    ]


@pytest.mark.parametrize("name", ["kept_files", "offered", "models_waiting"])
def test_a_module_name_that_is_no_noun(tree: Tree, name: str) -> None:
    tree.write(f"handiwork/session/{name}.py", "")
    assert tree.faults() == [
        f"handiwork/session/{name}.py: name that is no noun or verb of the field: 1, at most 0 allowed"
    ]


@pytest.mark.parametrize("name", ["served", "recorded_llm", "model_switch"])
def test_a_module_name_of_the_field(tree: Tree, name: str) -> None:
    tree.write(f"handiwork/session/{name}.py", "")
    assert tree.faults() == []


@pytest.mark.parametrize(
    "text", ["from handiwork.log.rows import f\n", "from .rows import f\n", "from . import rows\n"]
)
def test_a_small_module_that_one_other_imports(tree: Tree, text: str) -> None:
    tree.write("handiwork/log/rows.py", "def f() -> None: ...\n")
    assert tree.faults() == []
    tree.write("handiwork/log/store.py", text)
    fault = "handiwork/log/rows.py: module under 60 lines that one module imports: 1, at most 0 allowed"
    assert tree.faults() == [fault]
    tree.write("handiwork/log/blobs.py", text)
    assert tree.faults() == []


def test_an_event_that_nothing_writes(tree: Tree) -> None:
    tree.write("handiwork/events/action.py", "class CmdRunAction: ...\nclass LookAction: ...\n")
    reader = "def f() -> None:\n    isinstance(f, CmdRunAction | LookAction)\n"
    tree.write("handiwork/agents/base.py", f"CmdRunAction()\n{reader}")
    assert tree.faults() == ["LookAction: event that nothing writes: 1, at most 0 allowed"]
    tree.write("handiwork/sandbox/inside/actions.py", 'TYPE = "LookAction"\n')
    assert tree.faults() == []


@pytest.mark.parametrize("kind", ["action", "record"])
def test_an_event_that_nothing_executes_or_reads(tree: Tree, kind: str) -> None:
    tree.write(f"handiwork/events/{kind}.py", "class LookEvent: ...\n")
    tree.write("handiwork/agents/base.py", "LookEvent()\n")
    assert tree.faults() == ["LookEvent: event that nothing executes or reads: 1, at most 0 allowed"]
    tree.write("handiwork/agents/state.py", "match x:\n    case LookEvent():\n        pass\n")
    assert tree.faults() == []
