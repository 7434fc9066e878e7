"""Puts skills into a notebook's namespace; nothing is imported or run before a skill is used."""

from __future__ import annotations

import inspect
import linecache
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from . import SKILLS
from .tools import Ask, SkillError, use_bundle, use_model


class LazySkill:
    """Stands for a function that is loaded by its first use: it is called like it and has its help."""

    def __init__(self, name: str, load: Callable[[], Any]) -> None:
        self.__name__ = self.__qualname__ = name
        self._load = load

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function."""
        return self._load()(*arguments, **named)

    def __repr__(self) -> str:
        return f"<skill {self.__name__}{inspect.signature(self)}>"

    @property
    def __doc__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._load().__doc__

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self._load())
        parameters = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
        return signature.replace(parameters=parameters, return_annotation=signature.empty)

    @property
    def __wrapped__(self) -> Any:
        return self._load()


def skills_of_the_platform(bundle: str, ask: Ask) -> dict[str, LazySkill]:
    """Return the skills by name; they run programs of the bundle whose tree is at ``bundle``, and ``ask`` the model."""
    if bundle:
        use_bundle(bundle)
    use_model(ask)
    package = __name__.rpartition(".")[0]
    return {name: LazySkill(name, lambda name=name: getattr(sys.modules[package], name)) for name in SKILLS}


def skills_of_a_file(own: Mapping[str, Any]) -> dict[str, LazySkill]:
    """Return the skills of a user's file by name; the first that is used runs the file.

    ``own`` has its module's ``name``, its ``source`` and the ``functions`` that are skills.
    """
    module: list[types.ModuleType] = []

    def load(function: str) -> Any:
        if not module:
            module.append(_run(own["name"], own["source"]))
        try:
            return getattr(module[0], function)
        except AttributeError:
            raise SkillError(f"The skill {function} is gone: its file {own['name']}.py does not define it.") from None

    return {name: LazySkill(name, lambda name=name: load(name)) for name in own["functions"]}


def _run(name: str, source: str) -> types.ModuleType:
    """Run a file as a module; its source shows in tracebacks."""
    file = f"<skills {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules.setdefault(name, module)
    exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the user's own skills
    return module
