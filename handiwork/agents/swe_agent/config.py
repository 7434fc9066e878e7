"""The configuration of SWEAgent, in the shape of SWE-agent's YAML files: templates, tools, history processors.

A key of SWE-agent's files without meaning here, like the model or the deployment, is legal and is listed in
``SWEConfig.ignored``, which the agent tells the user; an unknown key is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from handiwork.agents.interface import problems_text
from handiwork.agents.swe_agent.bundles import Bundle, BundleTool, find_bundle, read_yaml
from handiwork.agents.swe_agent.command_filter import ToolFilterConfig
from handiwork.agents.swe_agent.demonstrations import Demonstration, load_demonstrations
from handiwork.agents.swe_agent.processors import HistoryProcessor
from handiwork.agents.swe_agent.templates import SWEConfigError

DEFAULT = Path(__file__).parent / "prompts/default.yaml"

Parser = Literal[
    "auto",
    "thought_action",
    "xml_thought_action",
    "xml_function_calling",
    "function_calling",
    "json",
    "action",
    "action_only",
    "identity",
    "all_bash_code_blocks",
    "single_bash_code_block",
]
"""How the model writes its thought and command; "auto" is native tool calls or JSON by its protocol, else text."""

IGNORED: Mapping[str, str] = {
    "model": "the model comes from --model, its limits from --max-cost and the like",
    "action_sampler": "each step asks for one action",
    "env": "the sandbox and the workspace come from the session's settings",
    "problem_statement": "the task comes from the session",
    "instances": "the tasks come from the session, or from `handiwork eval`",
    "output_dir": "the log of the session has all of it",
    "actions": "`handiwork apply` brings the changes into the project",
    "num_workers": "a session runs one task",
    "random_delay_multiplier": "a session runs one task",
    "progress_bar": "a session runs one task",
    "shell_check_error_template": "bash itself reports the error",
    "disable_image_processing": "images of the task are shown to models that see",
    "propagate_env_variables": "the sandbox has no variables of the machine; pass them with --secret",
    "submit_command": "the changes are submitted when a tool prints SWE-agent's marker, and at any limit",
    "submit_command_end_name": "the changes are submitted when a tool prints SWE-agent's marker, and at any limit",
    "command_docs": "the documentation is made from the bundles",
    "image_parsing": "images in outputs are not shown",
    "cache_control": "prompts are cached without it",
}
"""Keys of SWE-agent's configurations, and the types of its history processors, that have no effect, each with why."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TemplateConfig(_Part):
    """The Jinja templates of the prompt; ``max_observation_length`` is in characters."""

    system_template: str = ""
    instance_template: str = "{{problem_statement}}"
    strategy_template: str | None = None
    demonstration_template: str | None = None
    demonstrations: tuple[str, ...] = ()
    put_demos_in_history: bool = False
    next_step_template: str = "Observation: {{observation}}"
    next_step_truncated_observation_template: str = (
        "Observation: {{observation[:max_observation_length]}}\n[{{elided_chars}} characters left out: use a command "
        "that prints less]"
    )
    max_observation_length: int = Field(default=100_000, ge=100)
    next_step_no_output_template: str | None = None
    command_cancelled_timeout_template: str = (
        "The command '{{command}}' was stopped because it took longer than {{timeout}} seconds. "
        "Use a command that takes less time and asks for no input."
    )


class BundleConfig(_Part):
    """A bundle's folder, or a shipped bundle's name."""

    path: str
    hidden_tools: tuple[str, ...] = ()


class ParserConfig(_Part):
    """The parser; ``error_message`` is the template of the answer to a reply in another form."""

    type: Parser = "auto"
    error_message: str | None = None


class ToolConfig(_Part):
    """The tools, the environment they run in, and the parser of replies; timeouts are in seconds."""

    filter: ToolFilterConfig = ToolFilterConfig()
    bundles: tuple[BundleConfig, ...] = ()
    env_variables: dict[str, str | int | float] = Field(default_factory=dict)
    registry_variables: dict[str, JsonValue] = Field(default_factory=dict)
    parse_function: ParserConfig = ParserConfig()
    enable_bash_tool: bool = True
    format_error_template: str | None = None
    multi_line_command_endings: dict[str, str] = Field(default_factory=dict)
    reset_commands: tuple[str | tuple[str, ...], ...] = ()
    execution_timeout: float = Field(default=30, gt=0)
    install_timeout: float = Field(default=300, gt=0)
    total_execution_timeout: float = Field(default=1800, gt=0)
    max_consecutive_execution_timeouts: int = Field(default=3, ge=1)


class SWEConfig(_Part):
    """The whole configuration; ``file`` is its place, ``ignored`` are its keys without effect, each with the reason."""

    name: str = "main"
    type: Literal["default"] = "default"
    templates: TemplateConfig = TemplateConfig()
    tools: ToolConfig = ToolConfig()
    history_processors: tuple[Annotated[HistoryProcessor, Field(discriminator="type")], ...] = ()
    max_requeries: int = Field(default=3, ge=0)
    file: Path | None = None
    ignored: tuple[str, ...] = ()

    @cached_property
    def bundles(self) -> list[Bundle]:
        """The bundles, in their order. Raises SWEConfigError."""
        # The default's bundles are the shipped ones, also where Handiwork is installed inside a project.
        near = self.file.parent if self.file is not None and self.file != DEFAULT.resolve() else None
        found = [find_bundle(bundle.path, near, bundle.hidden_tools) for bundle in self.tools.bundles]
        names = [bundle.name for bundle in found]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise SWEConfigError(f"two bundles have the name {doubled[0]}: rename a folder")
        return found

    @cached_property
    def demonstrations(self) -> list[Demonstration]:
        """The demonstrations, in their order. Raises SWEConfigError."""
        templates, near = self.templates, self.file.parent if self.file is not None else Path.cwd()
        if templates.demonstrations and not (templates.demonstration_template or templates.put_demos_in_history):
            raise SWEConfigError("demonstrations need a demonstration_template, or put_demos_in_history")
        return load_demonstrations(templates.demonstrations, near)

    @cached_property
    def commands(self) -> list[BundleTool]:
        """The tools of all bundles. Raises SWEConfigError for two of one name."""
        tools = [tool for bundle in self.bundles for tool in bundle.tools]
        names = [tool.name for tool in tools]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise SWEConfigError(f"two bundles have a tool {doubled[0]}: leave one of them out, or hide the tool")
        return tools

    @cached_property
    def state_command(self) -> str:
        """The command that prints the variables of the prompt as JSON, "" if no bundle has one."""
        commands = [bundle.state_command for bundle in self.bundles if bundle.state_command]
        return "; ".join([*commands, 'cat "$SWE_AGENT_STATE_FILE"']) if commands else ""

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the environment."""
        return {name: str(value) for name, value in self.tools.env_variables.items()}


def load_config(path: Path) -> SWEConfig:
    """Return the configuration of a YAML file. Raises SWEConfigError."""
    file = read_yaml(path)
    top = dict(file.pop("agent", None) or {})
    ignored = [f"{key}: {IGNORED[key]}" for key in list(file) if key in IGNORED and file.pop(key) is not None]
    if file:
        raise SWEConfigError(f"{path}: unknown key {', '.join(sorted(file))}; the keys of SWEAgent are below agent")
    ignored += [f"agent.{note}" for note in _drop_ignored(top)]
    try:
        config = SWEConfig.model_validate({**top, "file": path.resolve(), "ignored": ignored})
    except ValidationError as error:
        raise SWEConfigError(f"{path}: {problems_text(error)}") from None
    _ = config.commands, config.demonstrations
    return config


def _drop_ignored(agent: dict[str, Any]) -> Iterator[str]:
    """Remove the keys without effect that have a value, and yield them, each with its reason."""
    for section in ("", "templates", "tools"):
        part = agent if not section else agent.get(section)
        if not isinstance(part, dict):
            continue
        values = cast("dict[str, Any]", part) if not section else dict(cast("dict[str, Any]", part))
        if section:
            agent[section] = values
        for key in [key for key in values if key in IGNORED]:
            if values.pop(key):
                yield f"{section}{'.' * bool(section)}{key}: {IGNORED[key]}"
    processors = agent.get("history_processors")
    if not isinstance(processors, list):
        return
    kept: list[Any] = []
    for processor in cast("list[Any]", processors):
        kind = str(cast("dict[str, Any]", processor).get("type")) if isinstance(processor, dict) else ""
        if kind in IGNORED:
            yield f"history_processors.{kind}: {IGNORED[kind]}"
        else:
            kept.append(processor)
    agent["history_processors"] = kept


@cache
def default_config() -> SWEConfig:
    """Return SWEAgent's default configuration."""
    return load_config(DEFAULT)
