"""The inputs and outputs that a micro agent declares, as pydantic models."""

from __future__ import annotations

from keyword import iskeyword
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, create_model

FieldType = Literal["string", "integer", "number", "boolean", "array", "object"]

_TYPES: dict[FieldType, object] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict[str, JsonValue],
}


class FieldSpec(BaseModel):
    """One input or output, a small part of JSON Schema; it is required unless it has a ``default``.

    In the file it may also be its type alone.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: FieldType = "string"
    description: str = ""
    enum: tuple[str, ...] | None = Field(default=None, min_length=1)
    items: AnyField | None = None
    default: JsonValue = None

    @property
    def required(self) -> bool:
        """Whether the field has no default."""
        return "default" not in self.model_fields_set

    @property
    def annotation(self) -> Any:
        """The field's type in Python."""
        if self.enum is not None:
            return Literal[self.enum]
        if self.type == "array":
            return list[self.items.annotation if self.items else JsonValue]
        return _TYPES[self.type]


def _spelled_out(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


AnyField = Annotated[FieldSpec, BeforeValidator(_spelled_out)]
"""A FieldSpec, or the name of its type."""

FieldSpec.model_rebuild()


def problem_of(name: str, spec: FieldSpec) -> str:
    """Return why a field cannot have this name or type; "" if it can."""
    if not name.isidentifier() or iskeyword(name) or name.startswith("_") or hasattr(BaseModel, name):
        return f"a field cannot be named {name!r}: take another word of letters, digits and _"
    if spec.enum is not None and spec.type != "string":
        return "enum is for strings"
    if spec.items is not None and spec.type != "array":
        return "items is for arrays"
    if not spec.required:
        try:
            create_model("Default", value=(spec.annotation, ...))(value=spec.default)
        except ValueError:
            return f"the default {spec.default!r} is not of the type {spec.type}"
    return ""


def model_of(name: str, fields: dict[str, FieldSpec]) -> type[BaseModel]:
    """Return a pydantic model of the fields that forbids others."""
    definitions = {
        key: (spec.annotation, Field(... if spec.required else spec.default, description=spec.description or None))
        for key, spec in fields.items()
    }
    return create_model(name, __config__=ConfigDict(extra="forbid"), **cast("Any", definitions))
