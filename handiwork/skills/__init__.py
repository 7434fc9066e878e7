"""AgentSkills: functions that every notebook has in its namespace, to view, edit and search files and read documents.

They print their result for the agent and raise SkillError, which the notebook shows as one message. Inside a sandbox
the package's name is ``handiwork_skills``. It runs in the project's own interpreter, so it needs only the standard
library of any Python from 3.9 on; a module is imported when the first of its skills is used.
"""

from __future__ import annotations

import importlib
from typing import Any

MODULES = {
    "viewer": ("open_file", "goto_line", "scroll_down", "scroll_up", "create_file"),
    "edit": ("edit_file", "edit_file_by_replace", "insert_content_at_line", "append_file"),
    "search": ("search_dir", "search_file", "find_file"),
    "readers": (
        *("parse_pdf", "parse_docx", "parse_latex", "parse_pptx", "parse_xlsx"),
        *("parse_audio", "parse_image", "parse_video"),
    ),
}
"""The names of the skills, by the module that has them, in the order of their documentation."""

SKILLS = tuple(name for names in MODULES.values() for name in names)
"""The names of all skills."""

SEEING, HEARING = ("parse_image", "parse_video"), ("parse_audio",)
"""The skills that need a model that takes pictures, and one that takes sounds."""

_MODULE_OF = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Return a skill, whose module is imported now."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
