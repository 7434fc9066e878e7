"""The notebook's Python: ``python kernel.py FD LIBRARIES`` imports IPython once and forks kernels, one at a time.

It runs in the project's own interpreter, so it needs only the standard library of any Python from 3.9 on and an
IPython; if the interpreter has none and is new enough, it comes from LIBRARIES, which go last on the path.

Every kernel's namespace has the skills: the package handiwork_skills beside the package of this file.

On the socket FD it writes {"python": PATH, "version": TEXT}, and then for each received byte with two descriptors, a
socket and a pipe for output, {"pid": N} of the new kernel and at its end {"code": N}. A kernel reads {"code": TEXT,
"directory": PATH, "secrets": {NAME: VALUE}} from its own socket, before the first one perhaps {"skills": [{"name":
TEXT, "source": TEXT, "functions": [NAME]}]} with a user's own skills, and writes {"image": BASE64, "media_type": TEXT}
for each picture and {"done": true, "error": NAME, "directory": PATH, "leaving": BOOL} once. A skill may ask the
session's model about a picture or sound: {"question": N, "prompt": TEXT, "data": BASE64, "media_type": TEXT} is
answered by {"question": N, "text": TEXT, "problem": TEXT}. All messages are lines of JSON.
"""

# Cells print their results; IPython is found at run time, not when this is checked.
# ruff: noqa: T201
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.isolated:
    del sys.path[0]  # this folder: its modules are not the project's

import asyncio
import base64
import builtins
import contextlib
import ctypes
import faulthandler
import gc
import getpass
import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shlex
import signal
import site
import socket
import subprocess
import threading
import warnings
from typing import Any, NoReturn, cast

IMAGES = ("image/png", "image/jpeg")
IMAGE_LIMIT, IMAGE_COUNT = 3_750_000, 16
"""Bytes of one picture (5 MB as base64, the most that models accept), and the number of pictures of one cell."""

_SKILLS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "skills")
_LENT_FROM = (3, 11)  # the oldest Python that runs the lent IPython
_PR_SET_PDEATHSIG = 1


class _UnbufferedBytes(io.BufferedWriter):
    """Bytes for a descriptor, written at once: a cell may write to ``sys.stdout.buffer``."""

    def write(self, data: Any) -> int:
        size = super().write(data)
        self.flush()
        return size


class _UnbufferedWriter(io.TextIOWrapper):
    """Text for a descriptor, written at once to keep its order among other writers' output."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(
            _UnbufferedBytes(io.FileIO(descriptor, "w", closefd=False)), encoding="utf-8", errors="backslashreplace"
        )

    def write(self, text: str) -> int:
        size = super().write(text)
        self.flush()
        return size


class _Kernel:
    """One IPython and the socket from which it reads cells."""

    def __init__(self, server: socket.socket, libraries: list[str]) -> None:
        self._server = server
        self._lines = server.makefile("r", encoding="utf-8")
        self._questions = 0
        self._libraries = libraries
        self._armed = False
        self._leaving = False
        self._pictures: list[tuple[str, bytes]] = []
        self._shell = self._make_shell()
        self._shell.register_magic_function(self._pip, "line", "pip")
        if (skills := _skills()) is not None:
            bundle = os.path.abspath(os.path.join(libraries[0], "../../..")) if libraries else ""
            self._shell.push(skills.skills_of_the_platform(bundle, self._ask), interactive=False)

    def serve(self) -> None:
        """Run cells until the server closes the socket or a cell calls exit()."""
        pid = os.getpid()
        for line in self._lines:
            cell = json.loads(line)
            if "question" in cell:
                continue  # the cell was interrupted before its answer came
            if "skills" in cell:
                for own in cell["skills"]:
                    self._shell.push(_skills().skills_of_a_file(own), interactive=False)
                continue
            with contextlib.suppress(OSError):
                os.chdir(cell["directory"])
            os.environ.update(cell["secrets"])
            error = self._run(cell["code"])
            for name in cell["secrets"]:
                os.environ.pop(name, None)
            if os.getpid() != pid:
                os._exit(0)  # the cell forked, and this is the child
            # Not before: an interrupt would cut the line.
            for media_type, picture in self._pictures:
                self._send(image=base64.b64encode(picture).decode(), media_type=media_type)
            self._pictures.clear()
            self._send(done=True, error=error, directory=_directory(), leaving=self._leaving)
            if self._leaving:
                return

    def _run(self, code: str) -> str | None:
        """Run a cell and return the name of the exception it raised."""
        importlib.invalidate_caches()  # a package may have been installed meanwhile
        signal.signal(signal.SIGINT, self._on_interrupt)
        error: BaseException | None = None
        try:
            try:
                self._armed = True
                result = self._shell.run_cell(code, store_history=True)
                error = result.error_before_exec or result.error_in_exec
                if isinstance(error, ModuleNotFoundError):
                    print(f"[The notebook runs {sys.executable}, Python {sys.version.split()[0]}.]")
                self._show_figures()
            finally:
                self._armed = False
        except KeyboardInterrupt as interrupt:
            error = interrupt
        except Exception as failure:  # noqa: BLE001 - the cell broke IPython itself, or a figure cannot be drawn
            error = failure
            print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
        return None if error is None else type(error).__name__

    def _on_interrupt(self, *_: object) -> None:
        """Raise once in a cell, and never between cells: a late signal is ignored."""
        if self._armed:
            self._armed = False
            raise KeyboardInterrupt

    def _show(self, data: dict[str, Any]) -> None:
        """Show one object: print its text, and add its picture."""
        if "text/plain" in data:
            print(data["text/plain"])
        for media_type in IMAGES:
            if picture := data.get(media_type):
                self._show_picture(media_type, base64.b64decode(picture) if isinstance(picture, str) else picture)
                return

    def _show_picture(self, media_type: str, picture: bytes) -> None:
        if len(picture) > IMAGE_LIMIT or len(self._pictures) == IMAGE_COUNT:
            limit = f"{IMAGE_COUNT} of {IMAGE_LIMIT} bytes at most"
            print(f"[A picture of {len(picture)} bytes is left out: a cell shows {limit}.]")
        else:
            self._pictures.append((media_type, picture))

    def _show_figures(self) -> None:
        """Show figures drawn with matplotlib, as notebooks do at the end of a cell."""
        pyplot = cast("Any", sys.modules.get("matplotlib.pyplot"))
        if pyplot is None:
            return
        for number in pyplot.get_fignums():
            self._show_picture("image/png", _render(pyplot.figure(number)))
            pyplot.close(number)

    def _pip(self, line: str) -> None:
        """Run pip for this Python; outside a virtual environment it installs into the user's home."""
        spec = importlib.machinery.PathFinder.find_spec("pip", [*sys.path, *self._libraries])
        program = ["-m", "pip"] if spec is None or spec.origin is None else [os.path.dirname(spec.origin)]
        home = "PIP_USER=1 PIP_BREAK_SYSTEM_PACKAGES=1 " if sys.prefix == sys.base_prefix else ""
        self._shell.system(f"{home}{shlex.join([sys.executable, *program])} {line}")

    def _send(self, **message: object) -> None:
        self._server.sendall(json.dumps(message).encode() + b"\n")

    def _ask(self, prompt: str, data: bytes, media_type: str) -> tuple[str, str]:
        """Ask the session's model about a picture or sound; return its answer, or "" and the problem."""
        if threading.current_thread() is not threading.main_thread():
            return "", "only the notebook's main thread may ask the model"
        self._questions += 1
        encoded = base64.b64encode(data).decode()
        self._send(question=self._questions, prompt=prompt, data=encoded, media_type=media_type)
        for line in self._lines:
            answer = json.loads(line)
            if answer["question"] == self._questions:
                return answer["text"], answer["problem"]
        return "", "the notebook is being closed"

    def _leave(self) -> None:
        self._leaving = True

    def _make_shell(self) -> Any:
        from IPython.core import async_helpers, page
        from IPython.core.displayhook import DisplayHook
        from IPython.core.displaypub import DisplayPublisher
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets import Type
        from traitlets.config import Config

        show, leave = self._show, self._leave

        class KernelDisplayHook(DisplayHook):
            def write_output_prompt(self) -> None:
                pass

            def write_format_data(self, format_dict: dict[str, Any], md_dict: object = None) -> None:
                show(format_dict)

            def log_output(self, format_dict: object) -> None:
                pass

        class Publisher(DisplayPublisher):
            def publish(self, data: dict[str, Any], *_: object, **__: object) -> None:
                show(data)

            def clear_output(self, wait: bool = False) -> None:
                pass

        class KernelShell(InteractiveShell):
            displayhook_class = Type(KernelDisplayHook)
            display_pub_class = Type(Publisher)

            def ask_exit(self) -> None:
                leave()

            def enable_gui(self, gui: object = None) -> None:
                pass  # `%matplotlib inline` calls it

            def system(self, cmd: str) -> None:
                # IPython's own continues the cell after an interrupt, or runs the command on a terminal.
                command = self.var_expand(cmd, depth=1)
                try:
                    code = subprocess.call(command, shell=True, executable=os.environ.get("SHELL"))
                except KeyboardInterrupt:
                    raise KeyboardInterrupt from None  # without subprocess's traceback
                self.user_ns["_exit_code"] = code

            def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
                super()._showtraceback(etype, evalue, [part for part in stb if __file__ not in part])

            def _tee(self, channel: str) -> contextlib.AbstractContextManager[None]:
                return contextlib.nullcontext()  # it would keep all output ever printed

        config = Config({"HistoryManager": {"enabled": False}, "InteractiveShell": {"colors": "NoColor"}})
        shell = KernelShell.instance(config=config)
        shell.display_formatter.formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", _render)
        shell.set_hook("show_in_pager", page.as_hook(page.display_page), 99)
        if hasattr(async_helpers, "get_asyncio_loop"):  # IPython 7 has no loop of its own
            shell.loop_runner = _run_coroutine
        return shell


def _run_coroutine(coroutine: Any) -> Any:
    """Run an async cell on IPython's event loop; an interrupted one must not continue within the next."""
    loop = importlib.import_module("IPython.core.async_helpers").get_asyncio_loop()
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        raise


def main() -> None:
    """Fork kernels until the server closes the socket."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    receive = socket.recv_fds
    _die_with_parent()
    if sys.version_info >= _LENT_FROM and importlib.util.find_spec("IPython") is None:
        sys.path += sys.argv[2:]
    importlib.import_module("IPython.core.interactiveshell")
    _skills()
    # Existing objects stay shared with every kernel if the collector does not write to them.
    gc.collect()
    gc.freeze()
    with control.makefile("w", encoding="utf-8") as stream:

        def send(**message: object) -> None:
            stream.write(json.dumps(message) + "\n")
            stream.flush()

        send(python=sys.executable, version=sys.version.split()[0])
        while True:
            descriptors = receive(control, 1, 2, socket.MSG_CMSG_CLOEXEC)[1]
            if len(descriptors) != 2:
                return
            if (pid := os.fork()) == 0:
                control.close()
                _become_kernel(*descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            send(pid=pid)
            status = os.waitpid(pid, 0)[1]
            send(code=-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _become_kernel(server: int, output: int) -> NoReturn:
    """Run cells in a new session, which identifies the processes that they start; then exit."""
    os.setsid()
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)
    sys.stdout, sys.stderr = _UnbufferedWriter(1), _UnbufferedWriter(2)
    faulthandler.enable(2)
    builtins.input = getpass.getpass = _no_input
    os.environ.setdefault("MPLBACKEND", "agg")
    warnings.filterwarnings("ignore", message=".*is non-interactive, and thus cannot be shown")
    libraries = sys.argv[2:]
    sys.argv[:] = [""]
    sys.path.insert(0, "")
    packages = site.getusersitepackages()
    if sys.prefix == sys.base_prefix and packages not in sys.path:
        sys.path.append(packages)  # pip's target if it may not write to the interpreter's own directory
    _Kernel(socket.socket(fileno=server), libraries).serve()
    sys.exit(0)


def _skills() -> Any:
    """Return the module that puts skills into a namespace, None if the code is not here."""
    if not os.path.isdir(_SKILLS):
        return None
    if _SKILLS not in sys.path:
        sys.path.append(_SKILLS)
    return importlib.import_module("handiwork_skills.namespace")


def _render(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


def _no_input(*_: object, **__: object) -> NoReturn:
    raise EOFError("cells cannot ask for input: put the value into the code")


def _directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it was removed


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    main()
