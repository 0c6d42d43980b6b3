"""A proxy that fails by itself passes no case about a failure: each such case is red with it, on the fake."""

from __future__ import annotations

import pytest

from tests.strength.defects.__main__ import run
from tests.strength.proxy_variants import command

#: The cases in which an error is the right answer, except for most of the vectors of broken calls.
FAULTS = (
    "a_fault or after_a_fault or failed_turn_is_not or refuses_the_login or app_server_that_dies or types_of_a_failure "
    "or two_choices or shapes_of_a_tool or (test_tool_calls and truncated-in-json)"
)
#: What fails by itself; the last one takes 2.5 s for each answer, so it runs with a few of the cases.
ITSELF = {
    "always-at-capacity": "",
    "answers-before-the-fault": "",
    "faults-wait-for-an-idle-timeout": "chat and (500 or whole or after_a_fault)",
}
#: An app-server that dies between two requests is no fault of a turn, and a later answer is no error.
NO_FAULT = "an_app_server_that_dies_is_replaced"


@pytest.mark.parametrize("variant", ITSELF)
def test_each_case_about_a_failure_is_red(variant: str) -> None:
    chosen = f"({FAULTS}) and ({ITSELF[variant]})" if ITSELF[variant] else FAULTS
    if variant == "faults-wait-for-an-idle-timeout":  # it answers all but faults as it should
        chosen += f" and not {NO_FAULT} and not two_choices and not shapes_of_a_tool and not test_tool_calls"
    found = run("broken", command(variant), chosen)
    assert len(found) >= 7
    assert [case["id"] for case in found if case["outcome"] != "failed"] == []
