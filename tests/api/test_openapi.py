"""The interface describes itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from orbit_server.api.call import Call
from orbit_server.api.openapi import openapi_document
from orbit_server.api.routes import PATH_PARAMETERS, Route, Router
from orbit_server.api.table import ROUTES
from tests.server import Api

FILE = Path(__file__).resolve().parents[2] / "schemas" / "openapi.v1.json"


async def _nothing(_: Call) -> None:
    return None


def test_the_document_is_valid_openapi() -> None:
    validate(openapi_document(ROUTES))


async def test_the_server_gives_out_the_checked_in_document(edge: Api) -> None:
    served = (await edge.get("/openapi.json")).body
    assert served == json.loads(FILE.read_text())


def test_every_row_of_the_table_is_described() -> None:
    paths = openapi_document(ROUTES)["paths"]
    described = {(method.upper(), path) for path, item in paths.items() for method in item}
    assert described == {(route.method, route.path) for route in ROUTES}


def test_operation_ids_are_unique() -> None:
    paths = openapi_document(ROUTES)["paths"]
    ids = [operation["operationId"] for item in paths.values() for operation in item.values()]
    assert len(ids) == len(set(ids))


def test_every_path_parameter_is_known() -> None:
    assert {name for route in ROUTES for name in route.parameters} == set(PATH_PARAMETERS)


def test_a_route_that_creates_asks_for_its_key() -> None:
    for route in ROUTES:
        if route.method == "POST":
            assert route.body is not None, route.path
            assert route.item is not None or route.idempotency in ("required", "natural"), route.path
        else:
            assert route.body is None, route.path


def test_a_row_cannot_stand_in_the_table_twice() -> None:
    row = Route("GET", "/v1/x/{task_id}", None, None, _nothing, "x")
    with pytest.raises(ValueError, match="twice"):
        Router([row, Route("GET", "/v1/x/{workflow_id}", None, None, _nothing, "y")])


def test_a_literal_goes_before_a_parameter() -> None:
    one = Route("GET", "/v1/x/{task_id}", None, None, _nothing, "x")
    batch = Route("POST", "/v1/x/batch", None, None, _nothing, "y")
    router = Router([one, batch])
    assert router.find("POST", "/v1/x/batch") == (batch, ())
    assert router.find("GET", "/v1/x/a%20b") == (one, ("a%20b",))
    for path in ("", "v1/x/a", "/v1/x/", "/v1/x", "/v1/x/a/", "/v1//a", "/"):
        assert router.find("GET", path) is None
