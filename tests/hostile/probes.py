"""What a program inside a sandbox tries against the server and the kernel, and what it is told."""

from __future__ import annotations

import json
import shlex
from typing import Any

from handiwork.sandbox.base import Sandbox
from tests.sandbox.helpers import PYTHON, output

SOCKETS = """
import json, socket
def refused(make):
    try:
        made = make()
    except OSError as error:
        return error.errno
    for end in made if isinstance(made, tuple) else (made,):
        end.close()
found = {}
for family in range(1, 50):
    kind = socket.SOCK_RAW if family == 16 else socket.SOCK_STREAM
    found[family] = [refused(lambda: socket.socket(family, kind)), refused(lambda: socket.socketpair(family, kind))]
print(json.dumps(found))
"""

CALLS = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "ptrace": 101, "pidfd_getfd": 438}
found = {}
for name, number in numbers.items():
    ctypes.set_errno(0)
    libc.syscall(number, 0, 0, 0, 0, 0, 0)
    found[name] = os.strerror(ctypes.get_errno())
print(json.dumps(found))
"""

SERVER = """
import json, os
found = {}
def attempt(name, act):
    try:
        act()
    except OSError as error:
        found[name] = error.strerror
    else:
        found[name] = "done"
for name in ("mem", "environ", "maps", "auxv", "stack", "syscall"):
    attempt(name, lambda: open(f"/proc/1/{name}", "rb").read(1))
attempt("mem for writing", lambda: open("/proc/1/mem", "r+b"))
for name in ("fd", "fdinfo", "map_files"):
    attempt(name, lambda: os.listdir(f"/proc/1/{name}"))
for name in ("cwd", "root", "exe", "fd/0", "fd/4"):
    attempt(name, lambda: os.readlink(f"/proc/1/{name}"))
attempt("oom_score_adj", lambda: open("/proc/1/oom_score_adj", "w"))
print(json.dumps(found))
"""


async def told(sandbox: Sandbox, code: str) -> dict[str, Any]:
    """Run Python code inside, and return the JSON object that it prints."""
    return json.loads(await output(sandbox, f"{PYTHON} -c {shlex.quote(code)}"))
