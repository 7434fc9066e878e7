"""The OpenAPI 3.1 document, generated from the table of operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from handiwork.server.operations import Operation
from handiwork.server.schemas.sessions import Problem

_REF = "#/components/schemas/{model}"


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the document."""
    models: dict[type[BaseModel], None] = {Problem: None}
    for operation in operations:
        models |= dict.fromkeys(filter(None, (operation.body, operation.answer)))
    schemas: dict[str, Any] = {}
    for model in models:
        mode = "serialization" if any(model is operation.answer for operation in operations) else "validation"
        _, definitions = models_json_schema([(model, mode)], ref_template=_REF)
        schemas |= definitions.get("$defs", {})
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Handiwork", "version": version("handiwork")},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    summary = (operation.handler.__doc__ or "").strip().split("\n")[0]
    description: dict[str, Any] = {
        "operationId": operation.name,
        "summary": summary,
        "parameters": [*_path_parameters(operation.path), *_query_parameters(operation.query)],
        "responses": _responses(operation),
    }
    if operation.body is not None:
        description["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _ref(operation.body)}},
        }
    elif operation.takes:
        description["requestBody"] = {"required": True, "content": {operation.takes: {"schema": {"format": "binary"}}}}
    return description


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": "^[0-9a-f]+$"}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query_parameters(query: type[BaseModel] | None) -> list[dict[str, Any]]:
    if query is None:
        return []
    schema = query.model_json_schema()
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(part)}
        for name, part in schema["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a query parameter's schema without null: a client leaves the parameter out instead."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**rest, **kinds[0]}


def _responses(operation: Operation) -> dict[str, Any]:
    schema: dict[str, str] = {} if operation.answer is None else _ref(operation.answer)
    content = {operation.gives if operation.answer is None else "application/json": {"schema": schema}}
    responses: dict[str, Any] = {str(operation.status): {"description": "success", "content": content}}
    body_statuses = [*([413] if operation.body or operation.takes else []), *([415] if operation.body else [])]
    for status in sorted({400, 401, 403, 422, *body_statuses, *operation.refuses}):
        problem = {"application/json": {"schema": _ref(Problem)}}
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
    return responses


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}
