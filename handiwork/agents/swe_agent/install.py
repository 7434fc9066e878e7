"""The actions that prepare the sandbox for tool bundles, and read the patch of the workspace's changes."""

from __future__ import annotations

import base64
import json
import re
import shlex
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field, JsonValue

from handiwork.agents.repair.files import may_repeat
from handiwork.agents.swe_agent.bundles import SUPPORT, Bundle, pack
from handiwork.agents.swe_agent.templates import SWEConfigError
from handiwork.events.action import CmdRunAction, FileWriteAction
from handiwork.events.base import Action, Model, Observation, Run
from handiwork.events.observation import CmdOutputObservation, ErrorObservation, FileWriteObservation

LARGEST_PATCH = 4 << 20
"""Bytes of the largest patch."""

TOO_LARGE = f"it has more than {LARGEST_PATCH >> 20} MiB; `handiwork diff` shows the changes"

_MAKE_FOLDER = 'mkdir -p "$HOME/.cache" 2>/dev/null; mktemp -d "$HOME/.cache/swe-agent.XXXXXX" || mktemp -d'
_UNPACK = """\
python3 - {folder} << 'END'
import base64, glob, io, os, sys, zipfile
folder = sys.argv[1]
with open(os.path.join(folder, "tools.zip.b64")) as file:
    zipfile.ZipFile(io.BytesIO(base64.b64decode(file.read()))).extractall(folder)
os.remove(os.path.join(folder, "tools.zip.b64"))
# The interpreter itself: a version manager's shim would take longer than the tool.
for name in glob.glob(os.path.join(folder, "tools/*/bin/*")) if " " not in sys.executable else ():
    with open(name, "rb") as file:
        first, end, rest = file.read().partition(b"\\n")
    if first in (b"#!/usr/bin/env python3", b"#!/usr/bin/env python"):
        with open(name, "wb") as file:
            file.write(b"#!" + os.fsencode(sys.executable) + end + rest)
# A program finds the modules beside it also once a command has set another PYTHONPATH; those of its own bundle first.
modules = glob.glob(os.path.join(folder, "tools/*/lib/*"))
for place in glob.glob(os.path.join(folder, "tools/*/bin")):
    for module in sorted(modules, key=lambda path: os.path.dirname(path) != place[:-3] + "lib"):
        if not os.path.lexists(os.path.join(place, os.path.basename(module))):
            os.symlink(module, os.path.join(place, os.path.basename(module)))
END"""
# By bash: a version manager's shim would add its own variables to those of a program.
_SAVE_ENVIRONMENT = r"""
for __name in $(compgen -e); do
  case $__name in PWD | OLDPWD | SHLVL | _ | __*) ;; *) printf 'export %s=%q\n' "$__name" "${!__name}" ;; esac
done >{folder}/env.sh
unset __name
"""
_SAVE_BEFORE = r"""
__kept=" $(compgen -e | tr '\n' ' ') PWD OLDPWD SHLVL _ "
printf 'for __name in $(compgen -e); do [[ %q == *" $__name "* ]] || unset "$__name"; done\n' "$__kept" \
  | cat - {folder}/env.sh >{folder}/before.sh
unset __kept
"""
_SECONDS = 60.0

_PACKED = re.compile(r"^(\d+) ([A-Za-z0-9+/=]+)\s*$", re.MULTILINE)
"""What `_patch show` prints: the length of the whole in characters, and a piece of it."""


class _InterruptedError(Exception):
    """An action of the installation did not run to its end."""


class BundleFolder(Model):
    """A bundle's folder on the host; ``hidden`` tools are not offered."""

    path: str
    hidden: tuple[str, ...] = ()


class InstallToolsAction(Action):
    """Install tool bundles in the sandbox, outside of the workspace, and add them to the PATH of its shell.

    ``variables`` go into the environment, ``registry`` into the variables that the tools share. ``reset`` are commands
    that run afterwards in the directory ``root``, whose changes are the patch. ``timeout`` is in seconds, for each
    bundle's ``install.sh``.
    """

    runnable: ClassVar[bool] = True
    bundles: tuple[BundleFolder, ...]
    variables: dict[str, str] = Field(default_factory=dict)
    registry: dict[str, JsonValue] = Field(default_factory=dict)
    reset: tuple[str, ...] = ()
    root: str = ""
    timeout: float = Field(default=300.0, gt=0)

    async def execute(self, run: Run) -> Observation:
        """Upload the bundles, run their ``install.sh``, and remember the workspace as it is. Raises SandboxError.

        An interrupt ends all of it, so that it can be repeated.
        """

        async def run_whole(action: Action) -> Observation:
            observation = await run(action)
            if may_repeat(observation):
                raise _InterruptedError
            return observation

        try:
            return await self._install(run_whole)
        except _InterruptedError:
            text = "The installation of the tools was interrupted."
            return ErrorObservation(content=text, error_id="interrupted")

    async def _install(self, run: Run) -> Observation:
        try:
            bundles = [Bundle(Path(one.path), one.hidden) for one in self.bundles]
            made = await run(CmdRunAction(command=_MAKE_FOLDER, timeout=_SECONDS))
            folder = made.text.strip().splitlines()[-1] if _succeeded(made) and made.text.strip() else ""
            if not folder.startswith("/"):
                return _failed("no folder could be made for them", made)
            archive = base64.encodebytes(pack(bundles, folder)).decode()
        except (SWEConfigError, OSError) as error:
            return ErrorObservation(content=f"The tools cannot be installed: {error}", error_id="no_tools")
        written = await run(FileWriteAction(path=f"{folder}/tools.zip.b64", content=archive))
        if not isinstance(written, FileWriteObservation):
            return _failed("they could not be uploaded", written)
        await run(CmdRunAction(command=(_SAVE_ENVIRONMENT + _SAVE_BEFORE).replace("{folder}", shlex.quote(folder))))
        unpacked = await run(CmdRunAction(command=_UNPACK.replace("{folder}", shlex.quote(folder)), timeout=_SECONDS))
        if not _succeeded(unpacked):
            return _failed("they could not be unpacked (they need python3)", unpacked)
        return await self._set_up(run, folder, bundles)

    async def _set_up(self, run: Run, folder: str, bundles: Sequence[Bundle]) -> Observation:
        here = await run(CmdRunAction(command=f"cd -- {shlex.quote(self.root or '.')}"))
        root = here.cwd if isinstance(here, CmdOutputObservation) else self.root
        await run(CmdRunAction(command=self._environment(folder, root, bundles), timeout=_SECONDS))
        notes: list[str] = []
        for bundle in bundles:
            if bundle.installs:
                place = shlex.quote(f"{folder}/tools/{bundle.name}")
                installed = await run(CmdRunAction(command=f"cd {place} && . ./install.sh", timeout=self.timeout))
                if not _succeeded(installed):
                    notes.append(f"install.sh of {bundle.name} failed:\n{_end_of(installed)}")
        names = [tool.name for bundle in bundles for tool in bundle.tools]
        lookup = "".join(f"type -P -- {name} >/dev/null || echo {name}\n" for name in map(shlex.quote, names))
        steps = [f"cd -- {shlex.quote(root)}", *self.reset, "_patch begin", lookup]
        listed = await run(CmdRunAction(command=_SAVE_ENVIRONMENT.replace("{folder}", shlex.quote(folder))))
        for step in steps:
            listed = await run(CmdRunAction(command=step, timeout=self.timeout))
            if not _succeeded(listed) and step is not lookup:
                notes.append(f"{step} failed:\n{_end_of(listed)}")
        missing = tuple(name for name in listed.text.split() if name in names)
        return InstallToolsObservation(content="\n".join(notes), folder=folder, root=root, missing=missing)

    def _environment(self, folder: str, root: str, bundles: Sequence[Bundle]) -> str:
        """Return the command that sets the variables and the PATH of the shell."""
        place = shlex.quote(folder)
        variables: Mapping[str, str] = {
            **self.variables,
            "ROOT": root,
            "ENV_DIR": folder,
            "SWE_AGENT_FOLDER": folder,
            "SWE_AGENT_ENV_FILE": f"{folder}/.swe-agent-env",
            "SWE_AGENT_STATE_FILE": f"{folder}/state.json",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        bins = ":".join(f"{folder}/tools/{bundle.name}/bin" for bundle in reversed(bundles))
        return "\n".join(
            [
                f"chmod +x {place}/tools/*/bin/*",
                f"printf %s {shlex.quote(json.dumps(self.registry))} > {place}/.swe-agent-env",
                f"printf '{{}}' > {place}/state.json",
                *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
                f'export PATH={shlex.quote(bins)}${{PATH:+":$PATH"}}:{place}/tools/{SUPPORT}/bin',
            ]
        )


class InstallToolsObservation(Observation):
    """The tools are in ``folder``; ``missing`` lists those that cannot run. ``content`` describes the problems.

    ``root`` is the directory whose changes are the patch.
    """

    folder: str
    root: str = ""
    missing: tuple[str, ...] = ()


class PatchAction(Action):
    """Read the patch of the workspace's changes, and restore the shell; ``status`` is the reason for the task's end.

    ``submitted``: a tool has already written the patch.
    """

    runnable: ClassVar[bool] = True
    folder: str
    status: str = "submitted"
    submitted: bool = False

    async def execute(self, run: Run) -> Observation:
        """Write the patch unless that is done, and read it in pieces. Raises SandboxError."""
        environment = f". {shlex.quote(self.folder)}/env.sh"
        check = '[ -s "$SWE_AGENT_FOLDER/model.patch" ] || ' if self.submitted else ""
        first = f"{{ {check}_patch write; }} && "
        packed, problem, size = "", "", 1
        while len(packed) < size and not problem:
            show = f"({environment} && {first if not packed else ''}_patch show {len(packed)})"
            piece = await run(CmdRunAction(command=show, timeout=_SECONDS))
            found = list(_PACKED.finditer(piece.text))
            if not found or not _succeeded(piece):
                problem = _PACKED.sub("", piece.text).strip()[-500:] or "it cannot be read"
            elif int(found[-1][1]) > LARGEST_PATCH:
                problem = TOO_LARGE
            else:
                size, packed = int(found[-1][1]), packed + found[-1][2]
        await run(CmdRunAction(command=f". {shlex.quote(self.folder)}/before.sh", timeout=_SECONDS))
        patch = b"" if problem else _unpacked(packed)
        if len(patch) > LARGEST_PATCH:
            patch, problem = b"", TOO_LARGE
        return PatchObservation(content=patch.decode("utf-8", "replace"), problem=problem)


class PatchObservation(Observation):
    """The patch is the ``content``; ``problem`` says why there is none."""

    problem: str = ""


def _unpacked(packed: str) -> bytes:
    try:
        return zlib.decompressobj().decompress(base64.b64decode(packed), LARGEST_PATCH + 1)
    except (ValueError, zlib.error):
        return b""


def _end_of(observation: Observation) -> str:
    """Return the last lines of the output."""
    return "\n".join(observation.text.strip().splitlines()[-5:])[-1_000:]


def _succeeded(observation: Observation) -> bool:
    return isinstance(observation, CmdOutputObservation) and observation.exit_code == 0


def _failed(why: str, observation: Observation) -> ErrorObservation:
    text = f"The tools cannot be installed: {why}.\n{_end_of(observation)}"
    return ErrorObservation(content=text.rstrip(), error_id="no_tools")
