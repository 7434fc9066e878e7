"""The settings of CodeNavAgent: the inputs of a delegation, or a TOML file whose name is the name of an agent."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator

from handiwork.agents.codenav.codebase import ToolDescription
from handiwork.agents.codenav.retrieval import Retrieval
from handiwork.agents.interface import problems_text
from handiwork.errors import HandiworkError

LARGEST = 1_000_000
"""Bytes of the largest file of settings."""


class CodeNavSettingsError(HandiworkError):
    """A file of settings is missing or invalid; the text names the file and the mistake."""


class CodeNavInputs(BaseModel):
    """The inputs of a delegation. Their defaults are the agent's settings.

    ``codebase`` are the folders of the workspace that the agent searches and imports from, by default all of it.
    ``description`` describes the library; if it is empty, the READMEs of the folders do. ``mode`` "tool-use" is the
    baseline without a search. ``tools`` is how much the prompt tells of each function of the codebase: by default
    nothing in code-use, and all in tool-use. A search shows ``expanded`` blocks in full, as ``retrieval`` says, and up
    to ``prototypes`` further ones by their prototypes. Code is stopped after ``timeout`` seconds.
    """

    model_config = ConfigDict(extra="forbid")

    task: str
    codebase: tuple[str, ...] = ()
    description: str = ""
    mode: Literal["code-use", "tool-use"] = "code-use"
    tools: ToolDescription | None = None
    retrieval: Retrieval = "code"
    expanded: int = Field(default=3, ge=1, le=20)
    prototypes: int = Field(default=7, ge=0, le=100)
    timeout: float = Field(default=60.0, gt=0)

    @field_validator("codebase")
    @classmethod
    def _below_the_workspace(cls, folders: tuple[str, ...]) -> tuple[str, ...]:
        clean = [str(Path(folder)) for folder in folders]
        if any(folder.startswith("/") or ".." in Path(folder).parts for folder in clean):
            raise ValueError("the folders are relative to the workspace and below it")
        return () if "." in clean else tuple(clean)

    @property
    def tool_description(self) -> ToolDescription:
        """The level of detail at which the prompt describes each function."""
        return self.tools or ("prototypes" if self.mode == "tool-use" else "none")


def load_inputs(path: Path) -> type[CodeNavInputs]:
    """Return the inputs with a file's settings as their defaults. Raises CodeNavSettingsError."""
    try:
        if path.stat().st_size > LARGEST:
            raise CodeNavSettingsError(f"{path} has more than {LARGEST:,} bytes: settings of CodeNavAgent are shorter")
        values: dict[str, Any] = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CodeNavSettingsError(f"the settings of CodeNavAgent in {path} cannot be read: {error}") from error
    if "task" in values:
        raise CodeNavSettingsError(f"{path}: the task is no setting: give it to `handiwork run`")
    try:
        settings = CodeNavInputs.model_validate({"task": "", **values})
    except ValidationError as error:
        raise CodeNavSettingsError(f"{path} does not fit CodeNavAgent: {problems_text(error)}") from None
    fields = CodeNavInputs.model_fields
    defaults: dict[str, Any] = {name: (fields[name].annotation, getattr(settings, name)) for name in values}
    return create_model("CodeNavInputs", __base__=CodeNavInputs, **defaults)
