"""BIRD: a question about a database, answered by an SQL query."""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from handiwork.evals.benchmark import Benchmark, DataError, Instance, Rollout, Score
from handiwork.evals.scoring import sqlite_rows
from handiwork.evals.scoring.answers import fenced, finish_with, tagged
from handiwork.evals.scoring.execution import PATIENCE
from handiwork.events.base import Action
from handiwork.sandbox.base import Sandbox

SECONDS = 30.0
"""Seconds of CPU time for the predicted and the gold query together."""

_FILES = {
    "mini_dev": (
        "mini_dev_sqlite.json",
        "https://raw.githubusercontent.com/s-jeffrey/TASQL_fork/641deac06267b440309f3d5e96169998b3e3972e/"
        "data/dev_databases/mini_dev_sqlite.json",
    ),
    "dev": (
        "dev.json",
        "https://raw.githubusercontent.com/CedricPei/SQLExam/c105b7e92d6d920f99f442a8218a3eec05cb3d20/data/dev.json",
    ),
}
_ROWS = TypeAdapter(list[dict[str, Any]])
_FIELDS = ("question_id", "db_id", "question", "evidence", "SQL", "difficulty")


class Bird(Benchmark):
    """Text to SQL on SQLite; the query's rows must be those of the gold query, as a set.

    The rule is execution accuracy, EX, as in evaluation_ex.py of bird-bench/mini_dev: ``set(predicted) == set(gold)``;
    an error scores 0, and so do queries that together take more than 30 s. Mini-dev's other two figures, R-VES and soft
    F1, are not computed. The agent works on a copy of the database, and is scored on the original, read-only.

    The questions are fetched; the databases are not, being gigabytes in one archive: they must be in the data folder as
    in upstream's dev.zip, dev_databases/ID/ID.sqlite.
    """

    name = "bird"
    title = "BIRD"
    size = "dev 1,534, mini-dev 500"
    source = "https://bird-bench.github.io"
    licence = "CC BY-SA 4.0"
    citation = "Li et al., Can LLM Already Serve as A Database Interface?, NeurIPS 2023, arXiv:2305.03111"
    splits = tuple(_FILES)

    def files(self, split: str) -> Mapping[str, str]:
        """Return the file with the questions."""
        path, address = _FILES[split]
        return {path: address}

    def further_files(self, split: str) -> Sequence[str]:
        """Return the databases and the descriptions of their tables."""
        return ("dev_databases", "database_description")

    def load(self, data: Path, split: str) -> list[Instance]:
        """Return the questions, in the file's order. Raises DataError, OSError."""
        file = data / _FILES[split][0]
        try:
            rows = _ROWS.validate_json(file.read_bytes())
        except ValidationError as error:
            raise DataError(f"{file} is no JSON list of objects: get the file again") from error
        if missing := [field for field in _FIELDS for row in rows if field not in row]:
            raise DataError(f"{file} has questions without {missing[0]}: is it the file of BIRD?")
        times: Counter[str] = Counter()
        instances: list[Instance] = []
        for row in rows:
            # Mini-dev has two questions twice, which upstream counts twice.
            times[name := str(row["question_id"])] += 1
            unique = name if times[name] == 1 else f"{name}-{times[name]}"
            instances.append(Instance(unique, _with_paths(row, data), row["difficulty"]))
        return instances

    def skipped(self, instance: Instance) -> str:
        """Return that the instance's database is missing, if it is."""
        database = Path(instance.row["database"])
        if database.is_file():
            return ""
        return f"{database} is missing: get BIRD's dev.zip from {self.source} and unpack dev_databases there"

    def prepare(self, instance: Instance, workspace: Path) -> None:
        """Write a copy of the database, and upstream's descriptions of its tables if available."""
        shutil.copyfile(instance.row["database"], workspace / _file(instance))
        for folder in map(Path, instance.row["descriptions"]):
            if folder.is_dir():
                shutil.copytree(folder, workspace / "database_description", copy_function=shutil.copyfile)
                return

    def instruction(self, instance: Instance) -> str:
        """Return the question, upstream's outside knowledge for it, and how to answer."""
        row = instance.row
        hint = f"\nHint: {row['evidence']}" if row["evidence"] else ""
        return (
            f"Write one SQLite query that answers this question about the database {_file(instance)}.\n\n"
            f"Question: {row['question']}{hint}\n\n"
            "The folder database_description, where there is one, has a CSV file about the columns of each table. "
            "You can try queries with Python's module sqlite3. The query must return the columns that are asked for, "
            "and no others. Finish with the query between <answer> and </answer>, and nothing else in there."
        )

    async def solve(self, instance: Instance, sandbox: Sandbox) -> Action:
        """Return the end with the gold query."""
        return finish_with(instance.row["SQL"])

    async def score(self, rollout: Rollout) -> Score:
        """Score 1 if the query finds the same set of rows as the gold one. Raises DataError if the gold one fails."""
        instance, query = rollout.instance, query_in(rollout.final_message)
        if not query:
            return Score(0.0, details={"error": "there is no query"})
        result = await compare(instance.row["database"], query, instance.row["SQL"])
        if result["gold"]:
            raise DataError(f"the gold query of {instance.id} fails on {instance.row['database']}: {result['gold']}")
        return Score(float(result["equal"]), query, {"error": result["error"]})


def query_in(text: str) -> str:
    """Return the query in an agent's text: the content of its last <answer>, else its last ```sql block, else all."""
    answer = tagged(text)
    return (fenced(answer, "sql", "sqlite", "") or answer).strip()


def _file(instance: Instance) -> str:
    return f"{instance.row['db_id']}.sqlite"


def _with_paths(row: Mapping[str, Any], data: Path) -> dict[str, Any]:
    """Return a row with the path of its database, and the possible paths of its tables' descriptions."""
    name = row["db_id"]
    folder = data.absolute() / "dev_databases" / name
    descriptions = [str(folder / "database_description"), str(data.absolute() / "database_description" / name)]
    return {**row, "database": str(folder / f"{name}.sqlite"), "descriptions": descriptions}


async def compare(database: str, predicted: str, gold: str, seconds: float = SECONDS) -> dict[str, Any]:
    """Return the result of the process ``sqlite_rows`` for two queries: ``equal``, ``error``, ``gold``.

    It ends after ``seconds`` of CPU time, or PATIENCE times that of wall time, which counts as the predicted query's
    error. Raises RuntimeError if it fails itself.
    """
    late = {"equal": False, "error": f"it took more than {seconds:g} s", "gold": ""}
    case = {"database": database, "predicted": predicted, "gold": gold, "seconds": math.ceil(seconds)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", sqlite_rows.__file__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={},
    )
    try:
        out, problem = await asyncio.wait_for(process.communicate(json.dumps(case).encode()), PATIENCE * seconds)
    except TimeoutError:
        return late
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode == -signal.SIGXCPU:
        return late
    if process.returncode and process.returncode < 0:
        return {"equal": False, "error": f"it brought SQLite down, signal {-process.returncode}", "gold": ""}
    if process.returncode:
        raise RuntimeError(f"the queries could not be compared: {problem.decode(errors='replace')[-2000:]}")
    return json.loads(out)
