"""Values fit where they go, and references name what is there."""

from __future__ import annotations

import pytest

from orbit_sdk.check import Diagnostic, Severity
from tests.unit.check.documents import (
    BOOLEAN,
    INTEGER,
    NULL,
    NUMBER,
    TEXT,
    Document,
    const,
    decide,
    end,
    fail,
    findings,
    handler,
    merge,
    one_of,
    optional,
    poll,
    record,
    ref,
    task,
    told,
    wait,
)

KIND = one_of("A", "B")


def given(value: Document, needed: Document, **more: Document) -> tuple[Diagnostic, ...]:
    """A step that gives one parameter."""
    nodes = {"a": task("e", "use@1", input={"x": value}), "e": end()}
    return findings(nodes, handlers={"use@1": handler(parameters={"x": needed})}, **more)


def codes(found: tuple[Diagnostic, ...]) -> list[str]:
    return [each.code for each in found]


@pytest.mark.parametrize(
    ("value", "needed"),
    [
        (ref("input.tier"), one_of("BASIC", "PLUS", "TOP", "OTHER")),
        (ref("input.amount"), NUMBER),
        (ref("input.customer"), optional(TEXT)),
        (ref("input.express"), one_of(True, False)),
        (ref("instance.started_at"), TEXT),
        (const(3), INTEGER),
        (const({"a": [1, 2]}), {}),
        ({"text": ["n-", ref("input.amount"), ref("input.order")]}, TEXT),
        ({"object": {"id": ref("input.order")}}, record(id=TEXT)),
        ({"array": [const(1), ref("input.amount")]}, {"type": "array", "items": INTEGER, "maxItems": 2}),
        ({"array": []}, {"type": "array", "items": TEXT}),
        ({"array": [const(1)]}, {"type": "array"}),
        ({"object": {"a": const(1)}}, {"anyOf": [record(a=INTEGER), NULL]}),
    ],
)
def test_what_always_fits_is_silent(value: Document, needed: Document) -> None:
    assert given(value, needed) == ()


@pytest.mark.parametrize(
    ("value", "needed", "path"),
    [
        (ref("input.amount"), TEXT, "nodes.a.input.x"),
        (ref("input.express"), TEXT, "nodes.a.input.x"),
        (const("1"), INTEGER, "nodes.a.input.x"),
        (const(None), TEXT, "nodes.a.input.x"),
        (ref("input.tier"), one_of("LOW", "HIGH"), "nodes.a.input.x"),
        (ref("input"), {"type": "array"}, "nodes.a.input.x"),
        ({"object": {"id": ref("input.amount")}}, record(id=TEXT), "nodes.a.input.x.object.id"),
        ({"array": [const("a"), const(1)]}, {"type": "array", "items": TEXT}, "nodes.a.input.x.array[1]"),
        ({"array": [const("a")]}, {"type": "array", "items": TEXT, "minItems": 2}, "nodes.a.input.x"),
        ({"object": {}}, record(id=TEXT), "nodes.a.input.x"),
        (
            {"object": {"id": const("a"), "more": const(1)}},
            {**record(id=TEXT), "additionalProperties": False},
            "nodes.a.input.x.object.more",
        ),
        (
            {"object": {"id": const("a")}},
            {"type": "object", "additionalProperties": INTEGER},
            "nodes.a.input.x.object.id",
        ),
        ({"text": ["a", ref("input.express")]}, TEXT, "nodes.a.input.x.text[1]"),
        ({"array": [{"text": [ref("input")]}]}, {}, "nodes.a.input.x.array[0].text[0]"),
    ],
)
def test_what_never_fits_is_refused_where_it_stands(value: Document, needed: Document, path: str) -> None:
    assert [(each.code, each.json_path) for each in given(value, needed)] == [("VALUE_NEVER_FITS", path)]


@pytest.mark.parametrize(
    ("value", "needed"),
    [
        (ref("input.remark"), TEXT),
        (ref("input.order"), {**TEXT, "maxLength": 9}),
        (ref("input.order"), one_of("a", "b")),
        (ref("input.tier"), one_of("TOP", "OTHER")),
        ({"text": ["a", ref("input.remark")]}, TEXT),
    ],
)
def test_what_may_fit_is_a_warning(value: Document, needed: Document) -> None:
    (found,) = given(value, needed)
    assert (found.code, found.severity) == ("VALUE_MAY_NOT_FIT", Severity.WARNING)


def test_constants_are_judged_by_value() -> None:
    assert codes(given(const(2**53 - 1), INTEGER)) == []
    assert codes(given(const("2026-01-01T00:00:00Z"), {**TEXT, "format": "date-time"})) == []
    assert codes(given(const("yesterday"), {**TEXT, "format": "date-time"})) == ["VALUE_NEVER_FITS"]


def test_parameters_are_known_and_complete() -> None:
    more = {"handlers": {"use@1": handler(parameters={"amount": {}, "order": {}})}}
    found = findings(
        {"a": task("e", "use@1", input={"amuont": const(1), "order": const(1)}), "e": end()}, **more
    )
    assert [(each.code, each.json_path) for each in found] == [
        ("PARAMETER_MISSING", "nodes.a.input"),
        ("PARAMETER_UNKNOWN", "nodes.a.input.amuont"),
    ]
    assert "Did you mean 'amount'?" in found[1].message


def test_an_unknown_property_is_named_with_a_near_match() -> None:
    (found,) = given(ref("input.costumer"), {})
    assert (found.code, found.json_path) == ("FIELD_UNKNOWN", "nodes.a.input.x")
    assert "'costumer'" in found.message
    assert "Did you mean 'customer'?" in found.message


def test_a_scalar_has_no_properties() -> None:
    (found,) = given(ref("input.order.length"), {})
    assert found.code == "FIELD_UNKNOWN"
    assert "input.order is no object" in found.message


def test_a_path_through_an_optional_is_a_warning_until_it_is_tested() -> None:
    more = {"input": record(a=optional(record(b=TEXT)))}
    use = task("e", "use@1", input={"x": ref("input.a.b")})
    handlers = {"use@1": handler(parameters={"x": TEXT})}
    assert told({"a": use, "e": end()}, handlers=handlers, **more) == [("PATH_UNCERTAIN", "a")]
    tested = decide(({"is_null": ref("input.a")}, "e"), otherwise="a")
    assert told({"b": tested, "a": use, "e": end()}, handlers=handlers, **more) == []


def test_a_property_of_some_members_of_a_union_may_be_null() -> None:
    closed = {"additionalProperties": False}
    card = {**record(kind=const("card"), number=TEXT), **closed}
    cash = {**record(kind=const("cash")), **closed}
    both = {"input": {"anyOf": [card, cash]}}
    assert codes(given(ref("input.number"), optional(TEXT), **both)) == []
    assert codes(given(ref("input.number"), TEXT, **both)) == ["VALUE_MAY_NOT_FIT"]
    assert codes(given(ref("input.kind"), one_of("card", "cash"), **both)) == []
    spread = {"input": {"anyOf": [card, {"type": "object", "additionalProperties": INTEGER}]}}
    assert codes(given(ref("input.number"), {"anyOf": [INTEGER, TEXT, NULL]}, **spread)) == []
    loose = {"input": {"anyOf": [record(number=TEXT), record(kind=const("cash"))]}}
    assert codes(given(ref("input.number"), TEXT, **loose)) == ["VALUE_MAY_NOT_FIT"]


def test_properties_of_constants_and_of_anything_can_be_read() -> None:
    fixed = {"input": one_of({"a": 1}, {"a": 2, "b": 3})}
    assert codes(given(ref("input.a"), INTEGER, **fixed)) == []
    assert codes(given(ref("input.b"), optional(INTEGER), **fixed)) == []
    assert codes(given(ref("input.c"), {}, **fixed)) == ["FIELD_UNKNOWN"]
    assert codes(given(ref("input.c"), {}, input={})) == ["PATH_UNCERTAIN"]
    mixed = {"input": {"anyOf": [{"const": 5}, {"const": {"a": 1}}]}}
    assert codes(given(ref("input.a"), INTEGER, **mixed)) == ["PATH_UNCERTAIN"]


def test_a_place_that_cannot_be_reached_is_not_judged_by_its_type() -> None:
    nodes = {
        "b": decide(({"not": {"is_null": ref("input")}}, "a"), otherwise="e"),
        "a": task("e", "use@1", input={"x": ref("input")}),
        "e": end(),
    }
    found = told(nodes, handlers={"use@1": handler(parameters={"x": TEXT})}, input=NULL)
    assert found == [("VALUE_MAY_NOT_FIT", "a")]


def test_types_are_followed_by_name_even_around_themselves() -> None:
    types = {"Tree": record(value=INTEGER, children={"type": "array", "items": {"$ref": "#/types/Tree"}})}
    tree = {"$ref": "#/types/Tree"}
    assert codes(given(ref("input"), tree, types=types, input=tree)) == []
    twin = {
        **types,
        "Twin": record(value=NUMBER, children={"type": "array", "items": {"$ref": "#/types/Twin"}}),
    }
    assert codes(given(ref("input"), {"$ref": "#/types/Twin"}, types=twin, input=tree)) == []
    assert codes(given(ref("input"), tree, types=twin, input={"$ref": "#/types/Twin"})) == [
        "VALUE_MAY_NOT_FIT"
    ]
    far = {**types, "Far": record(value=TEXT, children={"type": "array", "items": {"$ref": "#/types/Far"}})}
    assert codes(given(ref("input"), {"$ref": "#/types/Far"}, types=far, input=tree)) == ["VALUE_NEVER_FITS"]


def test_keys_are_texts_and_instants_are_instants() -> None:
    nodes = {
        "a": task("w", concurrency_key=ref("input.amount"), fairness_key=ref("input.customer")),
        "w": wait("t", match=ref("input.express")),
        "t": {"kind": "TIMER", "until": ref("input.customer"), "next": "u"},
        "u": {"kind": "TIMER", "until": ref("instance.started_at"), "next": "q"},
        "q": poll("e", final_signal={"signal": "receipt", "match": const(1)}),
        "e": end(),
    }
    found = findings(nodes, signals={"receipt": {"body": record(state=one_of("RUN", "OK", "BAD"))}})
    assert [(each.code, each.json_path) for each in found] == [
        ("VALUE_NEVER_FITS", "nodes.a.concurrency_key"),
        ("VALUE_NEVER_FITS", "nodes.q.final_signal.match"),
        ("VALUE_NEVER_FITS", "nodes.w.match"),
        ("VALUE_MAY_NOT_FIT", "nodes.t.until"),
    ]


def test_the_output_fits_what_the_workflow_promises() -> None:
    nodes = {"e": end(ref("input.amount"))}
    assert told(nodes, output=INTEGER) == []
    assert told(nodes, output=TEXT) == [("VALUE_NEVER_FITS", "e")]


def test_a_declared_list_of_errors_closes_the_failure_code() -> None:
    branch = {"kind": "BRANCH", "on": ref("a.code", of="failure"), "cases": []}
    cases = [{"equals": [code], "next": "f"} for code in ("NO_FUNDS", "ATTEMPTS_EXHAUSTED", "EXPIRED")]
    nodes = {
        "a": task("e", "pay@1", on_failure={"next": "b"}),
        "b": {**branch, "cases": cases},
        "e": end(),
        "f": fail(),
    }
    assert told(nodes, handlers={"pay@1": handler(errors=["NO_FUNDS"])}) == []
    assert told(nodes, handlers={"pay@1": handler()}) == [("CASES_INCOMPLETE", "b")]


def test_a_merge_input_must_always_fit() -> None:
    def merged(value: Document) -> list[str]:
        nodes = {"a": task("m"), "m": merge("e", TEXT, ("a", "next", value)), "e": end()}
        return codes(findings(nodes))

    assert merged(ref("input.order")) == []
    assert merged(ref("input.remark")) == ["MERGE_MAY_NOT_FIT"]
    assert merged(ref("input.amount")) == ["VALUE_NEVER_FITS"]


A = ref("input.amount")
ORDER = ref("input.order")


@pytest.mark.parametrize(
    "when",
    [
        {"eq": [A, const(1)]},
        {"ne": [ORDER, ref("input.remark")]},
        {"eq": [ref("input.remark"), const(None)]},
        {"eq": [ref("input.tier"), const("TOP")]},
        {"le": [A, const(1.5)]},
        {"gt": [ORDER, const("m")]},
        {"lt": [ref("instance.started_at"), ref("instance.planned_at")], "as": "date-time"},
        {"in": {"value": ref("input.tier"), "among": ["TOP", "PLUS"]}},
        {"in": {"value": ref("input.remark"), "among": ["a", None]}},
        {"is_null": ref("input.remark")},
        {"and": [{"not": {"is_null": ref("input.remark")}}, {"lt": [ref("input.remark"), const("m")]}]},
        {"or": [{"is_null": ref("input.remark")}, {"lt": [ref("input.remark"), const("m")]}]},
        {"eq": [ref("input"), ref("input")]},
        {"eq": [const([1]), const([1])]},
    ],
)
def test_like_may_be_compared_with_like(when: Document) -> None:
    found = codes(findings({"b": decide((when, "e"), otherwise="f"), "e": end(), "f": end()}))
    assert [code for code in found if code != "CASE_DEAD"] == (
        ["COMPARISON_UNCERTAIN"] if "planned" in str(when) else []
    )


@pytest.mark.parametrize(
    ("when", "path"),
    [
        ({"eq": [A, const("1")]}, "eq"),
        ({"eq": [A, const(1.5)]}, "eq"),
        ({"eq": [ref("input.express"), const(1)]}, "eq"),
        ({"eq": [ref("input.tier"), const("NONE")]}, "eq"),
        ({"eq": [A, const(None)]}, "eq"),
        ({"lt": [ref("input.express"), const(True)]}, "lt"),
        ({"lt": [A, ORDER]}, "lt"),
        ({"lt": [A, const(1)], "as": "decimal"}, "lt"),
        ({"in": {"value": ref("input.tier"), "among": ["NONE"]}}, "in"),
        ({"not": {"gt": [ref("input"), const(1)]}}, "not.gt"),
        (
            {"and": [{"eq": [A, const(1)]}, {"or": [{"eq": [A, const(2)]}, {"eq": [A, const([])]}]}]},
            "and[1].or[1].eq",
        ),
    ],
)
def test_unlike_values_cannot_be_compared(when: Document, path: str) -> None:
    (found,) = findings({"b": decide((when, "e"), otherwise="f"), "e": end(), "f": end()})
    assert (found.code, found.json_path) == ("COMPARISON_UNLIKE", f"nodes.b.cases[0].when.{path}")


@pytest.mark.parametrize(
    "when",
    [
        {"lt": [ref("input.remark"), const("m")]},
        {"gt": [ref("input.decimal"), const("1")], "as": "decimal"},
        {"eq": [ref("input.some"), const("m")]},
        {"eq": [ref("input.some"), A]},
    ],
)
def test_what_can_be_compared_only_sometimes_is_a_warning(when: Document) -> None:
    decimal = optional({"type": "string", "format": "decimal"})
    anything = {"anyOf": [TEXT, BOOLEAN, INTEGER]}
    some = record(amount=INTEGER, remark=optional(TEXT), some=anything, decimal=decimal)
    (found,) = findings({"b": decide((when, "e"), otherwise="f"), "e": end(), "f": end()}, input=some)
    assert (found.code, found.severity) == ("COMPARISON_UNCERTAIN", Severity.WARNING)


DECIMAL = {"type": "string", "format": "decimal"}
INSTANT = {"type": "string", "format": "date-time"}
X, Y = ref("input.x"), ref("input.y")


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ({"ge": [X, const("1.5")], "as": "decimal"}, None),
        ({"in": {"value": X, "among": ["1.5", "2"]}, "as": "decimal"}, None),
        ({"lt": [Y, ref("instance.started_at")], "as": "date-time"}, None),
        ({"eq": [X, const("1.50")]}, None),
        ({"ge": [X, const("much")], "as": "decimal"}, "COMPARISON_AS_WRONG"),
        ({"ge": [X, Y], "as": "decimal"}, "COMPARISON_AS_WRONG"),
        ({"in": {"value": X, "among": ["1.5", "much"]}, "as": "decimal"}, "COMPARISON_AS_UNCERTAIN"),
        ({"ge": [X, ref("input.note")], "as": "decimal"}, "COMPARISON_AS_UNCERTAIN"),
        ({"or": [{"lt": [X, const("10")]}, {"is_null": Y}]}, "COMPARISON_AS_MISSING"),
        ({"not": {"eq": [Y, ref("instance.started_at")]}}, "COMPARISON_AS_MISSING"),
    ],
)
def test_decimals_and_instants_are_compared_as_such(when: Document, code: str | None) -> None:
    given = record(x=DECIMAL, y=INSTANT, note=TEXT)
    nodes = {"b": decide((when, "e"), otherwise="f"), "e": end(), "f": end()}
    found = codes(findings(nodes, input=given))
    assert [each for each in found if each != "CASE_DEAD"] == ([] if code is None else [code])


@pytest.mark.parametrize(
    ("value", "when", "code"),
    [
        (INTEGER, {"eq": [ref("input.x"), const([1])]}, "COMPARISON_UNLIKE"),
        ({"type": "array"}, {"eq": [ref("input.x"), const({"a": 1})]}, "COMPARISON_UNLIKE"),
        ({}, {"gt": [ref("input.x"), const(1)]}, "COMPARISON_UNCERTAIN"),
        ({"type": "array"}, {"eq": [ref("input.x"), const([])]}, None),
    ],
)
def test_arrays_objects_and_anything_are_compared_by_kind(
    value: Document, when: Document, code: str | None
) -> None:
    nodes = {"b": decide((when, "e"), otherwise="f"), "e": end(), "f": end()}
    assert codes(findings(nodes, input=record(x=value))) == ([] if code is None else [code])


@pytest.mark.parametrize(
    ("source", "needed", "expected"),
    [
        ({"type": "integer", "minimum": 2}, {"type": "integer", "exclusiveMinimum": 1}, "ALWAYS"),
        ({"type": "integer", "minimum": 1}, {"type": "integer", "exclusiveMinimum": 1}, "RUNTIME"),
        ({"type": "number"}, {"type": "number", "multipleOf": 0.5}, "RUNTIME"),
        ({"type": "number", "multipleOf": 4}, {"type": "number", "multipleOf": 2}, "ALWAYS"),
        (
            {"type": "integer", "exclusiveMinimum": 2, "minimum": 1},
            {"type": "number", "minimum": 2},
            "ALWAYS",
        ),
        (
            {"type": "integer", "exclusiveMinimum": 1, "minimum": 2},
            {"type": "number", "minimum": 2},
            "ALWAYS",
        ),
        ({"type": "number", "exclusiveMaximum": 2}, {"type": "number", "minimum": 2}, "NEVER"),
        ({"type": "integer", "multipleOf": 6}, {"type": "integer", "multipleOf": 3}, "ALWAYS"),
        ({"type": "integer", "multipleOf": 3}, {"type": "integer", "multipleOf": 6}, "RUNTIME"),
        ({"type": "number", "multipleOf": 0.5}, {"type": "number", "multipleOf": 0.5}, "ALWAYS"),
        (INTEGER, {"type": "number", "multipleOf": 1}, "ALWAYS"),
        (NUMBER, INTEGER, "RUNTIME"),
        ({"type": "string", "minLength": 3}, {"type": "string", "maxLength": 2}, "NEVER"),
        ({"type": "array", "minItems": 1, "items": INTEGER}, {"type": "array", "items": TEXT}, "NEVER"),
        ({"type": "array", "items": INTEGER}, {"type": "array", "items": TEXT}, "RUNTIME"),
        ({"type": "array", "maxItems": 0}, {"type": "array", "items": TEXT}, "ALWAYS"),
        (record(a=TEXT), {"type": "object", "additionalProperties": False}, "NEVER"),
        (record(maybe={"a": TEXT}), {"type": "object", "additionalProperties": False}, "RUNTIME"),
        (record(a=TEXT), {"type": "object", "additionalProperties": TEXT}, "RUNTIME"),
        ({"type": "object", "additionalProperties": False}, record(maybe={"a": TEXT}), "ALWAYS"),
        ({"type": "string", "format": "date"}, TEXT, "ALWAYS"),
        (TEXT, {"type": "string", "format": "date"}, "RUNTIME"),
        ({"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}, "RUNTIME"),
    ],
)
def test_how_the_values_of_one_type_stand_to_another(
    source: Document, needed: Document, expected: str
) -> None:
    found = codes(given(ref("input.x"), needed, input=record(x=source)))
    named = {"ALWAYS": [], "RUNTIME": ["VALUE_MAY_NOT_FIT"], "NEVER": ["VALUE_NEVER_FITS"]}
    assert found == named[expected]


def test_a_comparison_of_types_that_branch_without_end_proves_nothing() -> None:
    """Each level of these types has many ways into the next; the budget ends the search."""
    wide = 8
    types: Document = {}
    for side in ("L", "R"):
        for level in range(wide):
            members = [
                record(**{f"p{number}": {"$ref": f"#/types/{side}{(level + 1) % wide}"}})
                for number in range(wide)
            ]
            types[f"{side}{level}"] = {
                "anyOf": [*members, {"type": "string", "maxLength": level + (side == "L")}]
            }
    left, right = {"$ref": "#/types/L0"}, {"$ref": "#/types/R0"}
    assert codes(given(ref("input"), right, types=types, input=left)) == ["VALUE_MAY_NOT_FIT"]
