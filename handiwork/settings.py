"""The settings of a run: the user's file < environment variables ``HANDIWORK_*`` < flags."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import SettingsError as UnreadableVariable

from handiwork.errors import HandiworkError
from handiwork.events.base import Model
from handiwork.events.record import Confirmation, Limits, ProtocolName
from handiwork.hooks import Hook
from handiwork.paths import config_dir
from handiwork.providers import KEYS
from handiwork.sandbox.create import SANDBOXES, SandboxName
from handiwork.sandbox.egress import hosts

PREFIX = "HANDIWORK_"
OTHER_VARIABLES = frozenset(f"{PREFIX}{name}" for name in ("DATA", "CACHE", "API_KEY", "BENCHDATA", "DEBUG"))
"""Variables that other modules read; they are not settings of a run."""
FLAGS = {"confirmation": "--confirm", "plan_mode": "--plan", "secrets": "--secret"}
"""The flags whose name differs from their setting's."""

_SERVERLESS = ("local:", "scripted:")
"""The beginnings of models that no server is asked for."""

SECRET_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
"""``${NAME}``, which stands for the session's secret NAME in the settings of an MCP server."""

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTHORIZATION|COOKIE", re.IGNORECASE)

_TABLES = ("mcp", "forges")
"""The settings that are tables, JSON in their variables."""

ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class SettingsError(HandiworkError):
    """A setting is unknown or invalid; the text names it, its place and a valid value."""


def settings_file() -> Path:
    """Return the path of the user's settings file, which need not exist."""
    return config_dir() / "config.toml"


class MCPServerSettings(Model):
    """An MCP server: a program that speaks on its stdin and stdout, or an address for streamable HTTP.

    In ``env``, ``url`` and ``headers``, ``${NAME}`` is the session's secret NAME. The log has these settings, so a
    variable or header whose name is that of a secret must not hold a value itself. ``timeout`` is seconds for a call.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: float = Field(default=120.0, gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("give it either a command or a url")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"the url {self.url} must begin with http:// or https://")
        if self.headers and self.url is None:
            raise ValueError("headers belong to a url: a command takes env")
        if (self.env or self.args) and self.command is None:
            raise ValueError("args and env belong to a command: a url takes headers")
        for name, value in {**self.env, **self.headers}.items():
            if _SECRET_NAME.search(name) and value and not SECRET_REFERENCE.search(value):
                raise ValueError(
                    f"{name} holds a value that the log would keep: write ${{NAME}}, and give the session the secret "
                    "NAME (secrets, or --secret)"
                )
        return self


class ForgeSettings(Model):
    """A forge at a host that is not known to be one: its kind, and its web address if that is not https://HOST."""

    kind: Literal["github", "gitlab"]
    url: Annotated[str, Field(pattern=r"^https?://[^/?#@\s]+(/[^?#\s]*)?$")] | None = None


class SessionSettings(Model):
    """The settings that a session keeps."""

    base_url: str | None = None
    """The address of the model's OpenAI-compatible server."""

    protocol: ProtocolName = "auto"
    """How the model writes its actions: native, json or text; auto finds it out."""

    sandbox: SandboxName = "bubblewrap"
    """The sandbox of commands; "docker" needs an image, "none" means this machine, unprotected."""

    image: str | None = None
    """The Docker image that commands run in."""

    mount_ro: Annotated[tuple[str, ...], NoDecode] = ()
    """More paths the sandbox may read; separated by colons in the variable."""

    allow_net: Annotated[tuple[str, ...], NoDecode] = ()
    """Hosts the sandbox may reach, with wildcards, or pypi, npm, debian, all; separated by commas in the variable."""

    confirmation: Confirmation = "never"
    """The actions that need the user's approval."""

    plan_mode: bool = False
    """Whether the agent only reads until the user has accepted its plan."""

    secrets: Annotated[tuple[str, ...], NoDecode] = ()
    """Secrets for the commands that name them, like "NAME" or "NAME=@FILE"; separated by colons in the variable."""

    skills: Annotated[tuple[str, ...], NoDecode] = ()
    """Skills for the notebook besides the platform's: Python files, or names that installed packages give theirs;
    separated by colons in the variable."""

    mcp: dict[ServerName, MCPServerSettings] = Field(default_factory=dict)
    """The MCP servers whose tools the agent may call, by name."""

    requests_per_minute: int | None = Field(default=None, ge=1)
    """The most requests to one model in any 60 s, by all sessions of a process; further ones wait."""

    tokens_per_minute: int | None = Field(default=None, ge=1)
    """The most tokens of one model, in and out, in any 60 s, by all sessions of a process; further requests wait."""

    snapshots: int = Field(default=20, ge=0)
    """The GiB that the snapshots of all sessions may take; with 0 none are taken."""


class Settings(SessionSettings, BaseSettings):
    """The settings of a run; each key can be set in the file, as HANDIWORK_KEY, or by a flag."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    model: str = "local:qwen2.5-coder-1.5b"
    """The model, like "anthropic:NAME", "openai:NAME" or "local:NAME"."""

    agent: str = "CodeActAgent"
    """The agent: the name of an installed one, "file.py:Class", or a file of settings, like SWEAgent's in YAML."""

    max_iterations: int = Field(default=100, ge=1)
    """The number of steps after which the agent pauses."""

    max_cost: float | None = Field(default=None, gt=0)
    """The cost in US dollars after which the agent pauses."""

    max_tokens: int | None = Field(default=None, ge=1)
    """The number of tokens, in and out, after which the agent pauses."""

    max_time: float | None = Field(default=None, gt=0)
    """The running time in seconds after which the agent pauses."""

    forges: dict[str, ForgeSettings] = Field(default_factory=dict)
    """The GitHub and GitLab servers of your own, by the host of a repository's remote, for pull requests."""

    @field_validator("mount_ro", "secrets", "skills", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part for part in value.split(os.pathsep) if part) if isinstance(value, str) else value

    @field_validator("allow_net", mode="before")
    @classmethod
    def _hosts(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("allow_net")
    @classmethod
    def _patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            hosts.parse(host)
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read flags first, then the environment, then the file; for ``_Flags`` only the first."""
        others = () if settings_cls is _Flags else (env_settings, _SettingsFile(settings_cls, settings_file()))
        return init_settings, *others

    @property
    def limits(self) -> Limits:
        """The limits of a session with these settings."""
        return Limits(iterations=self.max_iterations, cost=self.max_cost, tokens=self.max_tokens, time=self.max_time)


class _SettingsFile(TomlConfigSettingsSource):
    def __call__(self) -> dict[str, Any]:
        """Return the keys of the file; its hooks are no setting that a flag or variable could replace."""
        return {key: value for key, value in super().__call__().items() if key != "hooks"}


def load(flags: Mapping[str, Any]) -> Settings:
    """Return the settings; ``flags`` that are None or empty count as not given. Raises SettingsError."""
    check_environment()
    given = _given(flags)
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise SettingsError(_explain_all(error, given)) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{settings_file()} cannot be read: {error}") from None
    except UnreadableVariable:
        names = [name for key in _TABLES if os.environ.get(name := f"{PREFIX}{key.upper()}")]
        raise SettingsError(
            f"{' or '.join(names)} is not a JSON object: correct it, or write a table in {settings_file()}"
        ) from None
    return _with_server_of_model(_with_image(settings, given), given)


def load_hooks() -> tuple[Hook, ...]:
    """Return the ``[[hooks]]`` of the user's settings file, which nothing else can add to. Raises SettingsError."""
    file = settings_file()
    try:
        hooks = TypeAdapter(tuple[Hook, ...]).validate_python(written().get("hooks", []))
    except ValidationError as error:
        raise SettingsError("\n".join(_explain_hook(dict(problem)) for problem in error.errors())) from None
    titles = [(hook.event, hook.title) for hook in hooks]
    if twice := next((title for title in titles if titles.count(title) > 1), None):
        raise SettingsError(
            f'{file}: two {twice[0]} hooks are called {twice[1]!r}: give each a name = "..." of its own'
        )
    return hooks


def written() -> dict[str, Any]:
    """Return the content of the user's settings file, {} without one. Raises SettingsError."""
    file = settings_file()
    try:
        return tomllib.loads(file.read_text()) if file.exists() else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from None


def parsed(name: str, words: Sequence[str]) -> Any:
    """Return the value of a setting that the user has written as words. Raises SettingsError."""
    takes_several = isinstance(Settings.model_fields[name].default, tuple)
    if not takes_several and len(words) != 1:
        raise SettingsError(f"{name} takes one value, not {len(words)}: quote a value that has blanks")
    value = list(words) if takes_several else model_name(words[0]) if name == "model" else words[0]
    given: dict[str, Any] = {name: value}
    try:
        return getattr(_Flags(**given), name)
    except ValidationError as error:
        problems = (problem["msg"] for problem in error.errors())
        raise SettingsError(f"{name}: {'; '.join(problems)}, not {' '.join(words)!r}") from None


def set_defaults(values: Mapping[str, Any]) -> None:
    """Write settings into the user's file and keep the rest of it; None removes a setting. Raises SettingsError."""
    import tomlkit

    file = settings_file()
    try:
        document = tomlkit.parse(file.read_text() if file.exists() else "")
        for key, value in values.items():
            if value is not None:
                document[key] = value
            elif key in document:
                document.remove(key)
        target = Path(os.path.realpath(file))  # the file itself may be a link into a repository of settings
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f"{target.name}.draft")
        draft.touch(mode=0o600)  # it may hold tokens
        draft.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o600)
        draft.write_text(document.as_string())
        draft.replace(target)
    except (OSError, ValueError) as error:  # tomlkit's ParseError and a UnicodeDecodeError are ValueErrors
        raise SettingsError(f"{file} cannot be changed: {error}; change it by hand") from None


def _with_image(settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """Return the settings with a sandbox that fits their image; a flag for another sandbox drops the image."""
    kinds = [name for name, kind in SANDBOXES.items() if kind.takes_image]
    kind = settings.sandbox if "sandbox" in settings.model_fields_set else None
    if "sandbox" in flags and "image" not in flags and kind not in kinds:
        return settings.model_copy(update={"image": None})
    if "image" in flags and "sandbox" not in flags:
        kind = None
    if settings.image is None and kind in kinds:
        raise SettingsError(f"the sandbox {kind} needs an image: add --image NAME, like --image debian:12")
    if settings.image is not None and kind not in (None, *kinds):
        raise SettingsError(
            f"the image {settings.image} needs the sandbox {kinds[0]}, not {kind}: leave one of them out"
        )
    return settings if settings.image is None else settings.model_copy(update={"sandbox": kind or kinds[0]})


def _with_server_of_model(settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """Return the settings without a base_url for another model. Raises SettingsError for one that no model uses."""
    layers: tuple[Mapping[str, Any], ...] = (flags, EnvSettingsSource(type(settings))(), written())
    place = next((index for index, layer in enumerate(layers) if "base_url" in layer), len(layers))
    models: list[str] = [layer.get("model", "") for layer in layers]
    if any(models[:place]):
        is_kept = keeps_server(settings.model, next(filter(None, models[place:]), ""))
        return settings if is_kept else settings.model_copy(update={"base_url": None})
    if settings.base_url is not None and settings.model.startswith(_SERVERLESS):
        url = ("--base-url", f"{PREFIX}BASE_URL", f"{settings_file()}: base_url")[place]
        name = ("--model", f"{PREFIX}MODEL", "model")[place]
        raise SettingsError(f"{url} needs a model on a server, not {settings.model}: add {name}")
    return settings


def keeps_server(model: str, previous: str) -> bool:
    """Whether ``model`` is called at the base_url that was set with the model ``previous``, which may be ""."""
    if model.startswith(_SERVERLESS):
        return False
    provider = model.partition(":")[0]
    return provider not in KEYS or not previous or previous.startswith((f"{provider}:", *_SERVERLESS))


def model_name(name: str) -> str:
    """Return the model's name with the path of a file in it made absolute."""
    kind, _, file = name.partition(":")
    if kind == "scripted" or (kind == "local" and ("/" in file or file.endswith(".gguf"))):
        return f"{kind}:{Path(file).expanduser().absolute()}"
    return name


def check_flags(flags: Mapping[str, Any]) -> None:
    """Raise SettingsError if a flag that was given is invalid; ignore all other settings."""
    given = _given(flags)
    try:
        _Flags(**given)
    except ValidationError as error:
        raise SettingsError(_explain_all(error, given)) from None


def check_environment() -> None:
    """Raise SettingsError for a variable HANDIWORK_* that nothing reads."""
    known = {f"{PREFIX}{key.upper()}" for key in Settings.model_fields} | OTHER_VARIABLES
    unknown = [name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known]
    if unknown:
        raise SettingsError(
            f"unknown environment variable {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}"
        )


class _Flags(Settings):
    """Settings from flags alone."""


def _given(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in flags.items() if value not in (None, (), [])}


def _explain_all(error: ValidationError, flags: Mapping[str, Any]) -> str:
    return "\n".join(_explain(dict(problem), flags) for problem in error.errors())


def _explain(problem: dict[str, Any], flags: Mapping[str, Any]) -> str:
    key = str(problem["loc"][0])
    variable = f"{PREFIX}{key.upper()}"
    if key in _TABLES and len(problem["loc"]) > 1:  # values of mcp may be secrets, which are not shown
        place = variable if problem["loc"][1] in EnvSettingsSource(Settings)().get(key, {}) else settings_file()
        return f"{place}: {'.'.join(map(str, problem['loc']))}: {problem['msg'].removeprefix('Value error, ')}"
    if problem["type"] == "extra_forbidden":
        return f"{settings_file()}: unknown key {key!r}; known: {', '.join(sorted([*Settings.model_fields, 'hooks']))}"
    if key in flags:
        place = FLAGS.get(key, f"--{key.replace('_', '-')}")
    elif os.environ.get(variable):
        place = variable
    else:
        place = f"{settings_file()}: {key}"
    return f"{place}: {problem['msg'][0].lower()}{problem['msg'][1:]}, not {problem['input']!r}"


def _explain_hook(problem: dict[str, Any]) -> str:
    number, *field = problem["loc"] or (None,)
    if number is None:
        return f"{settings_file()}: hooks: write each hook as a table, under a line [[hooks]]"
    place = f"{settings_file()}: hook {number + 1}"
    if problem["type"] == "extra_forbidden":
        return f"{place}: unknown key {field[0]!r}; known: {', '.join(Hook.model_fields)}"
    text = problem["msg"].removeprefix("Value error, ")
    named = "".join(f": {name}" for name in field)
    return f"{place}{named}: {text[0].lower()}{text[1:]}" + (f", not {problem['input']!r}" if field else "")
