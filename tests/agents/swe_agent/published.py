"""Bundles in the form of SWE-agent's published ones, written anew: what they expect of the place they run in is theirs.

They keep state in files below /root, have executables without mode bits or a first line, find each other's modules by
the PYTHONPATH that install.sh exports, call flake8, and read an edit's text from standard input up to its last line.
"""

from __future__ import annotations

import json
from pathlib import Path

EXPORT = """\
#!/usr/bin/env bash
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &> /dev/null && pwd)
export PYTHONPATH="$here/lib${PYTHONPATH:+:$PYTHONPATH}"
"""

REGISTRY = """\
import json, os
from pathlib import Path

HOME = os.environ.get("ENV_DIR", "/root").rstrip("/")


class Registry:
    @property
    def file(self):
        file = Path(os.environ.get("SWE_AGENT_ENV_FILE", f"{HOME}/.swe-agent-env"))
        if not file.exists():
            file.write_text("{}")
        return file

    def get(self, key, default=None):
        return json.loads(self.file.read_text()).get(key, os.environ.get(key, default))

    def __setitem__(self, key, value):
        self.file.write_text(json.dumps({**json.loads(self.file.read_text()), key: value}))


registry = Registry()
"""

WRITE_ENV = """\
#!/usr/bin/env python
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from registry import registry
registry[sys.argv[1]] = sys.argv[2] if len(sys.argv) > 2 else ""
"""

_SETTING = 'registry[sys.argv[1]] = sys.argv[2] if len(sys.argv) > 2 else ""'
READ_ENV = WRITE_ENV.replace(_SETTING, 'print(registry.get(sys.argv[1], ""))')

WINDOW = """\
import sys
from pathlib import Path
from registry import registry


class Window:
    def __init__(self, path=None):
        self.path = Path(path or registry.get("CURRENT_FILE") or sys.exit("No file open. Use the open command first."))
        if not self.path.is_file():
            sys.exit(f"Error: File {self.path} not found")
        registry["CURRENT_FILE"] = str(self.path.resolve())
        self.size = int(registry.get("WINDOW"))
        self.first = int(registry.get("FIRST_LINE", 0))

    def move(self, first):
        lines = self.path.read_text().splitlines()
        self.first = max(0, min(int(first), len(lines) - self.size))
        registry["FIRST_LINE"] = self.first

    def show(self):
        lines = self.path.read_text().splitlines()
        print(f"[File: {self.path.resolve()} ({len(lines)} lines total)]")
        if self.first:
            print(f"({self.first} more lines above)")
        shown = lines[self.first : self.first + self.size]
        print("\\n".join(f"{n}:{line}" for n, line in enumerate(shown, self.first + 1)))
        if below := len(lines) - self.first - len(shown):
            print(f"({below} more lines below)")
"""

STATE = """\
#!/usr/bin/env python3
import json, os
from pathlib import Path
from registry import registry
file = Path(os.getenv("SWE_AGENT_STATE_FILE", "/root/state.json"))
state = json.loads(file.read_text()) if file.exists() else {}
file.write_text(json.dumps({**state, "open_file": registry.get("CURRENT_FILE") or "n/a", "working_dir": os.getcwd()}))
"""

OPEN = """\
#!/usr/bin/env python3
import sys
from window import Window
window = Window(sys.argv[1])
window.move(int(sys.argv[2] if len(sys.argv) > 2 else 1) - 1 - window.size // 6)
window.show()
"""
GOTO = OPEN.replace("Window(sys.argv[1])", "Window()").replace("sys.argv[2] if len(sys.argv) > 2 else 1", "sys.argv[1]")
SCROLL = """\
#!/usr/bin/env python3
from window import Window
window = Window()
window.move(window.first {} window.size)
window.show()
"""
CREATE = """\
#!/usr/bin/env python3
import sys
from pathlib import Path
from window import Window
Path(sys.argv[1]).write_text("\\n")
Window(sys.argv[1]).show()
"""

EDIT = """\
#!/usr/bin/env python3
import subprocess, sys
from window import Window


def lint(path):
    checks = "F821,F822,F831,E111,E112,E113,E999,E902"
    done = subprocess.run(["flake8", "--isolated", f"--select={checks}", str(path)], stdout=subprocess.PIPE)
    return [line.split(": ", 1)[1] for line in done.stdout.decode().splitlines()]


window = Window()
start, end = (int(number) - 1 for number in sys.argv[1].split(":"))
new = []
while True:
    try:
        line = input()
    except EOFError:
        break
    if line == "end_of_edit":
        break
    new.append(line)
before, errors = window.path.read_text(), lint(window.path)
lines = before.split("\\n")
lines[start : end + 1] = new
window.path.write_text("\\n".join(lines))
if added := [error for error in lint(window.path) if error not in errors]:
    window.path.write_text(before)
    print("Your proposed edit has introduced new syntax error(s).\\n\\nERRORS:")
    print("\\n".join(f"- {error}" for error in added))
    sys.exit(1)
print("File updated.")
window.show()
"""

SEARCH_DIR = """\
main() {
    local dir=$(realpath "${2:-.}")
    local matches=$(find "$dir" -type f ! -path '*/.*' -exec grep -nIH -- "$1" {} + | cut -d: -f1 | sort | uniq -c)
    [ -z "$matches" ] && echo "No matches found for \\"$1\\" in $dir" && return
    echo "$matches" | awk '{print $2 " (" $1 " matches)"}'
}

main "$@"
"""
SEARCH_FILE = """\
main() {
    local file=${2:-$(_read_env CURRENT_FILE)}
    [ -z "$file" ] && echo "No file open. Use the open command first." && return
    grep -nH -- "$1" "$(realpath "$file")"
}

main "$@"
"""
FIND_FILE = 'main() {\n    find "${2:-.}" -type f -name "$1"\n}\n\nmain "$@"\n'

SUBMIT = """\
main() {
    cd $ROOT
    if [ -s "/root/test.patch" ]; then
        git apply -R < "/root/test.patch"
    fi
    git add -A
    git diff --cached > /root/model.patch
    echo "<<SWE_AGENT_SUBMISSION>>"
    cat /root/model.patch
    echo "<<SWE_AGENT_SUBMISSION>>"
}

main "$@"
"""


def argument(name: str, kind: str = "string", required: bool = True) -> str:
    return f"      - {{name: {name}, type: {kind}, description: the {name}, required: {str(required).lower()}}}\n"


def tool(signature: str, *arguments: str) -> str:
    name = signature.split()[0].removesuffix("|").strip()
    listed = "\n" + "".join(arguments) if arguments else " []\n"
    return f"  {name}:\n    signature: '{signature}'\n    docstring: the tool {name}\n    arguments:{listed}"


EDIT_CONFIG = f"""\
tools:
  edit:
    signature: |
      edit <start_line>:<end_line>
      <replacement_text>
      end_of_edit
    docstring: replaces lines
    end_name: "end_of_edit"
    arguments:
{argument("start_line", "integer")}{argument("end_line", "integer")}{argument("replacement_text")}"""

CONFIGS = {
    "registry": "tools: {}\n",
    "windowed": "tools:\n"
    + tool("goto <line_number>", argument("line_number", "integer"))
    + tool('open "<path>" [<line_number>]', argument("path"), argument("line_number", "integer", required=False))
    + tool("create <filename>", argument("filename"))
    + tool("scroll_up")
    + tool("scroll_down")
    + "state_command: _state\n",
    "search": "tools:\n"
    + tool("find_file <file_name> [<dir>]", argument("file_name"), argument("dir", required=False))
    + tool("search_dir <search_term> [<dir>]", argument("search_term"), argument("dir", required=False))
    + tool("search_file <search_term> [<file>]", argument("search_term"), argument("file", required=False)),
    "windowed_edit_linting": EDIT_CONFIG,
    "submit": "tools:\n" + tool("submit"),
}

FILES = {
    "registry/install.sh": EXPORT,
    "registry/lib/registry.py": REGISTRY,
    "registry/bin/_write_env": WRITE_ENV,
    "registry/bin/_read_env": READ_ENV,
    "windowed/install.sh": EXPORT
    + '_write_env "WINDOW" "${WINDOW:-100}"\n_write_env "FIRST_LINE" "0"\n_write_env "CURRENT_FILE" ""\n',
    "windowed/lib/window.py": WINDOW,
    "windowed/bin/_state": STATE,
    "windowed/bin/open": OPEN,
    "windowed/bin/goto": GOTO,
    "windowed/bin/create": CREATE,
    "windowed/bin/scroll_up": SCROLL.format("-"),
    "windowed/bin/scroll_down": SCROLL.format("+"),
    "windowed_edit_linting/install.sh": "#!/usr/bin/env bash\n\npip install flake8\n",
    "windowed_edit_linting/bin/edit": EDIT,
    "search/install.sh": '_write_env SEARCH_RESULTS "()"\n',
    "search/bin/search_dir": SEARCH_DIR,
    "search/bin/search_file": SEARCH_FILE,
    "search/bin/find_file": FIND_FILE,
    "submit/bin/submit": SUBMIT,
}

CONFIGURATION = """\
agent:
  templates:
    system_template: 'A viewer of {{WINDOW}} lines. {{command_docs}}'
    instance_template: "ISSUE:\\n{{problem_statement}}\\n(Open file: {{open_file}})"
    next_step_template: "{{observation}}\\n(Open file: {{open_file}})\\n(Current directory: {{working_dir}})\\nbash-$"
    next_step_no_output_template: "no output\\nbash-$"
    demonstration_template: "A DEMONSTRATION:\\n{{demonstration}}\\nEND"
    demonstrations: [trajectories/some.traj]
  tools:
    env_variables: {WINDOW: 100, OVERLAP: 2}
    bundles:
      - path: tools/registry
      - path: tools/windowed
      - path: tools/search
      - path: tools/windowed_edit_linting
      - path: tools/submit
    enable_bash_tool: true
    parse_function: {type: FORM}
  history_processors:
    - type: last_n_observations
      n: 5
"""


TRAJECTORY = {
    "trajectory": [],
    "history": [
        {"role": "system", "content": "A system message.", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": "Mend old.py.", "agent": "main", "message_type": "observation"},
        {
            "role": "assistant",
            "content": "I open it.",
            "thought": "I open it.",
            "action": "open old.py",
            "agent": "main",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "open", "arguments": '{"path": "old.py"}'}}
            ],
        },
        {"role": "tool", "content": [{"type": "text", "text": "1:x = 1"}], "tool_call_ids": ["call_1"]},
        {"role": "assistant", "content": "Done.\n```\nsubmit\n```", "action": "submit"},
    ],
    "info": {"exit_status": "submitted"},
}
"""A trajectory in the shape of SWE-agent's ``.traj`` files."""


def write_published(folder: Path, form: str) -> Path:
    """Write the bundles and a configuration in the places of SWE-agent's repository; return the configuration."""
    for name, config in CONFIGS.items():
        (folder / "tools" / name).mkdir(parents=True)
        (folder / "tools" / name / "config.yaml").write_text(config)
    for name, text in FILES.items():
        file = folder / "tools" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o644)
    (folder / "config").mkdir()
    (folder / "trajectories").mkdir()
    (folder / "trajectories/some.traj").write_text(json.dumps(TRAJECTORY))
    file = folder / "config/published.yaml"
    file.write_text(CONFIGURATION.replace("FORM", form))
    return file
