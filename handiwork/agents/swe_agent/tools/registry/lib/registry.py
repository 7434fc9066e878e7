"""Variables that the tools share, in the JSON file that SWE_AGENT_ENV_FILE names.

Tools import ``registry``, an object that is read and written like a dictionary. A child process cannot set variables of
its parent, and a file can.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class ToolVariables:
    """The variables of one file; a variable that the file lacks is looked up in the environment."""

    def __init__(self, env_file: Path | None = None) -> None:
        self._env_file = env_file

    @property
    def env_file(self) -> Path:
        """The file; it is made if it is missing."""
        folder = os.environ.get("ENV_DIR", "/root")
        file = self._env_file or Path(os.environ.get("SWE_AGENT_ENV_FILE", os.path.join(folder, ".swe-agent-env")))
        if not file.exists():
            file.write_text("{}")
        return file

    def __getitem__(self, key: str) -> Any:
        return self._read()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.env_file.write_text(json.dumps({**self._read(), key: value}))

    def get(self, key: str, default_value: Any = None, fallback_to_env: bool = True) -> Any:  # noqa: FBT001, FBT002, RUF100
        """Return the variable, else that of the environment unless told otherwise, else the default."""
        default = os.environ.get(key, default_value) if fallback_to_env else default_value
        return self._read().get(key, default)

    def get_if_none(self, value: Any, key: str, default_value: Any = None) -> Any:
        """Return the value; None stands for the variable."""
        return self.get(key, default_value) if value is None else value

    def _read(self) -> dict[str, Any]:
        return json.loads(self.env_file.read_text())


registry = ToolVariables()
