"""The available benchmarks: those of this package, and those from entry points and files."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from handiwork.errors import HandiworkError
from handiwork.evals import benchmarks
from handiwork.evals.benchmark import Benchmark

GROUP = "handiwork.benchmarks"


class BenchmarkNotFoundError(HandiworkError):
    """No benchmark has that name; the message lists the available ones."""


def all_of() -> list[Benchmark]:
    """Return every installed benchmark, sorted by name."""
    modules = pkgutil.walk_packages(benchmarks.__path__, f"{benchmarks.__name__}.")
    own = [one for module in modules for one in _in(importlib.import_module(module.name))]
    others = [point.load()() for point in entry_points(group=GROUP)]
    return sorted([*own, *others], key=lambda one: one.name)


def find(name: str) -> Benchmark:
    """Return the benchmark of that name, or the one in the Python file of that path. Raises BenchmarkNotFoundError."""
    if name.endswith(".py"):
        return _in_file(Path(name).expanduser().absolute())
    known = {one.name: one for one in all_of()}
    if name not in known:
        raise BenchmarkNotFoundError(f"there is no benchmark {name!r}: there are {', '.join(known)}, or name a file.py")
    return known[name]


def _in_file(path: Path) -> Benchmark:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BenchmarkNotFoundError(f"{path} is not there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = _in(module)
    if len(found) != 1:
        raise BenchmarkNotFoundError(f"{path} must define one class of Benchmark, and has {len(found)}")
    return found[0]


def _in(module: ModuleType) -> list[Benchmark]:
    """Return the benchmarks that a module itself defines."""
    classes = [found for _, found in inspect.getmembers(module, inspect.isclass) if found.__module__ == module.__name__]
    return [found() for found in classes if issubclass(found, Benchmark) and not inspect.isabstract(found)]
