"""The payload of newConversation, field by field. Source: docs/contract/payloads.md, 1) newConversation (always)."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, MANY, NOTE, TREE, many_tools, tool
from suites.proxy.failures import must_be_served_without
from suites.proxy.saying import must_be, must_be_answered, must_be_same, must_be_unset, must_have, must_lack, only

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

METHOD = "newConversation"
#: The example of the document; the first four values depend on environment variables, which are unset here.
DEFAULTS: dict[str, Any] = {
    "model": "gpt-5.2",
    "cwd": "/tmp/codex-work",
    "approvalPolicy": "never",
    "sandbox": "read-only",
    "includeApplyPatchTool": False,
}
UNSET = ("baseInstructions", "compactPrompt", "config")
FIELDS = {*DEFAULTS, *UNSET, "developerInstructions", "dynamicTools"}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("field", DEFAULTS)
@pytest.mark.spec("newconversation-default", "PAY-11", "PAY-21", "PAY-22", "PAY-23", "PAY-24")
def test_defaults(proxy: Proxy, endpoint: str, field: str) -> None:
    """Without environment variables, every field of newConversation has the value in the specification's example."""
    params = proxy.post(endpoint).params(METHOD)
    must_be(f"{METHOD}.{field}", params[field], DEFAULTS[field])
    assert type(params[field]) is type(DEFAULTS[field]), f"{METHOD}.{field} must be {DEFAULTS[field]!r}, not {params[field]!r}"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("field", UNSET)
@pytest.mark.spec("newconversation-unset", "PAY-06", "PAY-25")
def test_unset(proxy: Proxy, endpoint: str, field: str) -> None:
    """A field of newConversation without a value is null or omitted; the table in the report shows which of the two."""
    must_be_unset(METHOD, proxy.post(endpoint).params(METHOD), field)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("newconversation-exact", "PAY-26", "HAND-20")
def test_no_other_field(proxy: Proxy, endpoint: str) -> None:
    """newConversation has only fields that the documents name."""
    body = {"tools": [tool(endpoint)], "n": 1, "temperature": 0.5, "stream": True, "parallel_tool_calls": False}
    for asked in ({}, body):
        found = set(proxy.post(endpoint, asked).params(METHOD)) - FIELDS
        must_be(f"The fields of {METHOD} that the documents do not name", found, set())


@pytest.mark.spec("newconversation-instructions", "HAND-33")
def test_instructions_are_no_base_instructions(proxy: Proxy) -> None:
    """On responses, instructions and system messages become developer instructions, never base instructions."""
    messages = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": proxy.prompt()}]
    params = proxy.responses({"instructions": "Be kind.", "input": messages}).params(METHOD)
    must_be_unset(METHOD, params, "baseInstructions")
    must_have(f"{METHOD}.developerInstructions", str(params["developerInstructions"]), "Be kind.")


@pytest.mark.spec("newconversation-dynamic-tools", "HAND-25", "SCHEMA-07")
def test_dynamic_tools(proxy: Proxy) -> None:
    """On responses each function tool becomes a dynamic tool, in order, with its unchanged schema."""
    found = proxy.responses({"tools": many_tools("responses")}).params(METHOD)["dynamicTools"]
    must_be("The number of dynamicTools", len(found), len(MANY))
    for at, member in enumerate(("name", "description", "inputSchema")):
        must_be_same(f"`{member}` of dynamicTools", [each[member] for each in found], [each[at] for each in MANY])
    wanted = [["description", "inputSchema", "name"]] * len(MANY)
    must_be("The members of dynamicTools", [sorted(each) for each in found], wanted)


@pytest.mark.parametrize("given", [None, ""], ids=["none", "empty"])
@pytest.mark.spec("newconversation-bare-tool", "HAND-27", "SCHEMA-07")
def test_a_tool_without_a_description_is_declared(proxy: Proxy, given: str | None) -> None:
    """A dynamic tool has its three required members; if the description is missing, the proxy chooses a text."""
    params = proxy.responses({"tools": [tool("responses", description=given)]}).params(METHOD)
    declared = only("dynamic tool of one function", params["dynamicTools"])
    must_be("The members of dynamicTools[0]", sorted(declared), ["description", "inputSchema", "name"])
    assert isinstance(declared["description"], str), f"dynamicTools[0].description must be a string: {declared['description']!r}"
    must_be("name of dynamicTools[0]", declared["name"], "getFileTree")
    must_be_same("inputSchema of dynamicTools[0]", declared["inputSchema"], TREE)


@pytest.mark.parametrize(
    "choice", ["auto", "required", {"type": "function", "name": "saveNote"}], ids=["auto", "required", "forced"]
)
@pytest.mark.spec("newconversation-dynamic-choice", "HAND-26")
def test_dynamic_tools_for_every_choice(proxy: Proxy, choice: Any) -> None:
    """For every tool choice, the dynamic tools include each tool that the model is allowed or required to call."""
    tools = [tool("responses"), tool("responses", "saveNote", NOTE)]
    found = proxy.responses({"tools": tools, "tool_choice": choice}).params(METHOD)["dynamicTools"]
    wanted = {"saveNote"} if isinstance(choice, dict) else {"getFileTree", "saveNote"}
    names = [each["name"] for each in found]
    assert wanted <= set(names), f"dynamicTools must contain {sorted(wanted)} with tool_choice {choice!r}; got {names}"


@pytest.mark.parametrize("native", ["web_search", "file_search", "code_interpreter"])
@pytest.mark.spec("newconversation-native-tools", "HAND-17", "HAND-41")
def test_native_tools_are_not_dynamic(proxy: Proxy, native: str) -> None:
    """The proxy refuses or omits a tool that is not a function, and forwards a function in the same request."""
    done = proxy.responses({"tools": [{"type": native}, tool("responses")]}, ok=False)
    if 400 <= done.status < 500:
        assert done.json["error"]["message"], "error.message of the answer is empty; it must name the error"
        must_be_served_without(proxy, "responses", {"tools": [tool("responses")]}, f"a tool of type {native}")
        return
    must_be_answered(done, 200, f"with a tool of type {native}")
    params = done.params(METHOD)
    must_be("`name` of dynamicTools", [each["name"] for each in params["dynamicTools"]], ["getFileTree"])
    for name in ("sendUserTurn", "sendUserMessage"):
        must_lack(f"{name}.tools", str(done.params(name).get("tools")), native)


@pytest.mark.spec("newconversation-no-tools", "HAND-28")
def test_no_tools_no_dynamic_tools(proxy: Proxy) -> None:
    """If the request has no tools, dynamicTools is omitted, null or empty."""
    must_be(
        f"{METHOD}.dynamicTools (null and omitted count as empty)", proxy.responses().params(METHOD).get("dynamicTools") or [], []
    )
