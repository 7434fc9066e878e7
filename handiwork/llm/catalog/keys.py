"""Keys that the user has asked to keep: a file in the settings' folder that only the user can read.

A key is stored under the environment variable that Handiwork reads it from, or under a name with an "@", as that of a
forge's token, which never becomes a variable.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from handiwork.errors import HandiworkError
from handiwork.paths import config_dir, locked, write_private
from handiwork.providers import KEYS

FILE = "keys.json"
_KEYS = TypeAdapter(dict[str, str])


class KeysError(HandiworkError):
    """The file of keys cannot be used; the text names the remedy."""

    status = 500


def keys_file() -> Path:
    """Return the path of the file, which need not exist."""
    return config_dir() / FILE


def load_keys() -> None:
    """Set the environment variables of the kept keys that are not set yet. Raises KeysError."""
    for name, key in _read().items():
        if "@" not in name:
            os.environ.setdefault(name, key)


def kept_key(name: str) -> str | None:
    """Return the key that is kept under a name, None without one. Raises KeysError."""
    return _read().get(name)


def variable_of(model: str) -> str:
    """Return the variable that holds the key of a model's provider."""
    provider = model.partition(":")[0].removesuffix("-chat").removesuffix("-responses")
    usual = "AZURE_OPENAI_API_KEY" if provider == "azure" else f"{provider.upper()}_API_KEY"
    return next((variable for variable in KEYS.get(provider, ()) if os.environ.get(variable)), usual)


def place_of(variable: str) -> str:
    """Return the file if the user keeps the variable's key there, else the variable itself. Raises KeysError."""
    kept = kept_key(variable)
    return str(keys_file()) if kept is not None and kept == os.environ.get(variable) else variable


def keep_key(name: str, key: str | None) -> None:
    """Keep a key under a name, or forget it if it is None. Raises KeysError."""
    file = keys_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with locked(file.with_suffix(".lock"), flags=os.O_RDWR | os.O_CREAT):
            keys = {other: value for other, value in _read().items() if other != name}
            write_private(file, json.dumps(keys if key is None else {**keys, name: key}, indent=1))
    except OSError as error:
        variable = name.partition("@")[0]
        raise KeysError(f"{file} cannot be written: {error.strerror}; set {variable} in your environment") from None


def _read() -> dict[str, str]:
    file = keys_file()
    try:
        with file.open("rb") as stream:
            if stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077:
                raise KeysError(f"others can read the keys in {file}: run chmod 600 {shlex.quote(str(file))}")
            return _KEYS.validate_json(stream.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise KeysError(f"{file}, which has the keys that you kept, cannot be read: {reason}; remove it") from None
