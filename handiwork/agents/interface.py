"""The pydantic models of an agent: its inputs, its outputs, and the data it keeps between steps."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic_core import from_json, to_json
from typing_extensions import TypeVar

Data = TypeVar("Data", bound=BaseModel, default=Any)
M = TypeVar("M", bound=BaseModel)


class TaskInputs(BaseModel):
    """The inputs of an agent that declares none: a task, and anything else."""

    model_config = ConfigDict(extra="allow")

    task: str


class AnyOutputs(BaseModel):
    """The outputs of an agent that declares none: anything."""

    model_config = ConfigDict(extra="allow")


class InterfaceError(Exception):
    """Inputs, outputs or extra data do not fit the agent's model; the text names each wrong field and the model's."""


class ExtraDataError(InterfaceError):
    """The extra data in the log do not fit the agent's model."""


def parse(model: type[M], values: Mapping[str, JsonValue], name: str) -> M:
    """Return the JSON object ``values`` as an object of the model. Raises InterfaceError, which calls them ``name``."""
    try:
        return model.model_validate_json(to_json(values))
    except ValidationError as error:
        problem = f"{name} do not fit {model.__name__}: {problems_text(error)}."
        raise InterfaceError(f"{problem} {model.__name__} has: {fields_text(model)}.") from None


def dump(model: type[BaseModel], value: BaseModel, name: str) -> dict[str, JsonValue]:
    """Return an object of the model as JSON that ``parse`` turns back into it.

    Raises InterfaceError if a field has a value that the model does not allow, and ValueError for one that JSON cannot
    hold.
    """
    values = from_json(value.model_dump_json(by_alias=True, round_trip=True, warnings="none"))
    parse(model, values, name)
    return values


def problems_text(error: ValidationError) -> str:
    """Return the validation errors as one line: "FIELD: PROBLEM; FIELD: PROBLEM"."""
    details = ((".".join(map(str, detail["loc"])), detail["msg"]) for detail in error.errors())
    return "; ".join(f"{field}: {message}" if field else message for field, message in details)


def fields_text(model: type[BaseModel]) -> str:
    """Return the model's fields as code, like "task: str, url: str = ''"; "..." stands for any other field."""
    parameters = inspect.signature(model).parameters.values()
    return ", ".join("..." if field.kind is field.VAR_KEYWORD else _text(field) for field in parameters)


def _text(field: inspect.Parameter) -> str:
    """Return the field without its constraints: "int" for Annotated[int, Ge(1)]."""
    if get_origin(field.annotation) is Annotated:
        field = field.replace(annotation=get_args(field.annotation)[0])
    return str(field)
