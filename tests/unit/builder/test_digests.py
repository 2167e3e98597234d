"""Digests are the same under every supported Python and pydantic: they are held by a file."""

import json
from pathlib import Path

import orbit_sdk as orbit
from orbit_sdk.definition.handler_types import handler_types_digest
from tests.typing import jobs_external, vocabulary
from tests.unit.builder import shop, test_known_workflows, zoo

HELD = Path(__file__).with_name("digests.json")
MODULES = (jobs_external, shop, test_known_workflows, vocabulary, zoo)


def found() -> dict[str, str]:
    """The digest of every workflow, and of the types of every handler, in some modules."""
    digests: dict[str, str] = {}
    for module in MODULES:
        for value in vars(module).values():
            if isinstance(value, orbit.Workflow):
                digests[f"workflow {value.id}@{value.version}"] = value.compile().digest
            elif isinstance(value, orbit.Handler):
                digests[f"handler {value.key}"] = value.types_digest()
    return dict(sorted(digests.items()))


def test_digests_are_the_same_everywhere() -> None:
    """After a meant change of the format: `python tools/check_pydantic_floor.py --write`."""
    assert found() == json.loads(HELD.read_text())


def test_a_definition_tells_the_digest_that_the_workers_of_its_handlers_announce() -> None:
    handlers = {
        value.key: value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, orbit.Handler)
    }
    compared = 0
    for module in MODULES:
        for value in vars(module).values():
            if isinstance(value, orbit.Workflow):
                definition = value.compile().definition
                for key in definition.handlers.keys() & handlers.keys():
                    assert handler_types_digest(definition, key) == handlers[key].types_digest(), key
                    compared += 1
    assert compared > 10
