"""The JSON API as an OpenAPI document, from the queries and answers of the views."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import TypeAdapter

from advisor import __version__
from advisor.report.writers.text_formats import SCHEMA_VERSION
from advisor.serve.views import KEPT, NAMED, View

_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_WHY = {
    "400": "A parameter cannot be",
    "401": "Who asks is not known",
    "403": "A page of another site asks",
    "404": "There is nothing to show",
    "405": "Only GET and HEAD are answered",
    "414": "The address is too long",
    "421": "The service does not go by this name",
    "431": "The headers are too long",
    "500": "The service's own settings are wrong",
    "503": "The database cannot be read, or too many ask",
}


def api_document(views: Sequence[View]) -> Mapping[str, object]:
    """What may be asked below ``/api``, and what is answered."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "advisor", "version": __version__, "description": "Read-only; see docs/json.md."},
        "paths": {f"/api{view.path}": {"get": _operation(view)} for view in views},
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def _schemas() -> Mapping[str, object]:
    """Of what the ledger keeps, as its values are declared; the long lists of a job stand beside it."""
    from advisor.store import ledger

    kinds: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        (kind, "serialization", TypeAdapter(getattr(ledger, kind))) for kind in KEPT
    ]
    _, made = TypeAdapter.json_schemas(kinds, ref_template=f"{NAMED}{{model}}")
    schemas: dict[str, Any] = made["$defs"]
    for kind in KEPT:
        schema = schemas[kind]
        for name in ("alternatives", "options"):
            schema["properties"].pop(name, None)
        schema |= {"required": sorted(schema["properties"]), "additionalProperties": False}
    return schemas


def answer_schema(view: View) -> dict[str, Any]:
    """JSON Schema of an answer: no field has another name."""
    common = {"schema_version": {"const": SCHEMA_VERSION}, "warnings": {"type": "array"}}
    return {"type": "object", "properties": {**common, **view.answer}, "additionalProperties": False}


def _operation(view: View) -> Mapping[str, object]:
    failures = {status: _response(why, _ERROR) for status, why in _WHY.items()}
    return {
        "summary": view.document.__doc__,
        "operationId": view.document.__name__,
        "parameters": list(_parameters(view)),
        "responses": {"200": _response("The answer", answer_schema(view)), **failures},
    }


def _response(words: str, schema: Mapping[str, object]) -> Mapping[str, object]:
    return {"description": words, "content": {"application/json": {"schema": schema}}}


def _parameters(view: View) -> Iterator[Mapping[str, object]]:
    if "{name}" in view.path:
        yield {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    of_query: dict[str, Any] = view.query.model_json_schema(mode="serialization")
    for name, kind in of_query.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": False, "schema": kind}
