"""The payload of newConversation, field by field. Source: app-server-payloads.md, 1) newConversation (always)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.plugin.proxy import Proxy
from suites.proxy.expected import AS_SPECIFIED, ENDPOINTS, HANDOFF, NOTE, SPEC, TREE, tool
from suites.proxy.saying import must_be, must_be_unset, must_have, must_lack

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

WHERE = f"{SPEC}, 1) newConversation (always)"
MAPPING = f"{HANDOFF}, Mapping overview"
METHOD = "newConversation"
#: The example of the document; the values of the first four follow the environment, which is unset here.
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
@pytest.mark.spec("newconversation-default", WHERE, "model, cwd, approvalPolicy, sandbox, includeApplyPatchTool of the example")
def test_defaults(proxy: Proxy, endpoint: str, field: str) -> None:
    """With nothing set in the environment, the values are those of the example; none is omitted."""
    params = proxy.post(endpoint).params(METHOD)
    must_be(f"{METHOD}.{field}", params[field], DEFAULTS[field])
    assert type(params[field]) is type(DEFAULTS[field]), f"{METHOD}.{field} must be {DEFAULTS[field]!r}, not {params[field]!r}"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("field", UNSET)
@pytest.mark.spec("newconversation-unset", WHERE, '"baseInstructions": null, "compactPrompt": null, "config": null')
def test_unset(proxy: Proxy, endpoint: str, field: str) -> None:
    """Null, or omitted: the report's table says which."""
    must_be_unset(METHOD, proxy.post(endpoint).params(METHOD), field)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("newconversation-exact", SPEC, "the **exact JSON-RPC payloads** the proxy sends")
def test_no_other_field(proxy: Proxy, endpoint: str) -> None:
    """No field that the documents do not name."""
    body = {"tools": [tool(endpoint)], "n": 1, "temperature": 0.5, "stream": True}
    must_be(f"The fields of {METHOD} that no document names", set(proxy.post(endpoint, body).params(METHOD)) - FIELDS, set())


@pytest.mark.spec(
    "newconversation-instructions", f"{HANDOFF}, Abnormalities 1", "`instructions` are not passed as `baseInstructions`"
)
def test_instructions_are_no_base_instructions(proxy: Proxy) -> None:
    """On responses, instructions and system messages are developer instructions, and never base instructions."""
    messages = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": proxy.prompt()}]
    params = proxy.responses({"instructions": "Be kind.", "input": messages}).params(METHOD)
    must_be_unset(METHOD, params, "baseInstructions")
    must_have(f"{METHOD}.developerInstructions", str(params["developerInstructions"]), "Be kind.")


@pytest.mark.spec("newconversation-dynamic-tools", MAPPING, "tools[] (type=function only) + tool_choice | dynamicTools")
def test_dynamic_tools(proxy: Proxy) -> None:
    """On responses each function tool is a dynamic tool, in order, with its schema as it was given."""
    tools = [tool("responses"), tool("responses", "saveNote", NOTE, "Save it")]
    found = proxy.responses({"tools": tools}).params(METHOD)["dynamicTools"]
    must_be("`name` of dynamicTools", [each["name"] for each in found], ["getFileTree", "saveNote"])
    must_be("`description` of dynamicTools", [each["description"] for each in found], ["List files", "Save it"])
    must_be("`inputSchema` of dynamicTools", [each["inputSchema"] for each in found], [TREE, NOTE])


@pytest.mark.parametrize(
    "choice", ["auto", "required", {"type": "function", "name": "saveNote"}], ids=["auto", "required", "forced"]
)
@pytest.mark.spec("newconversation-dynamic-choice", MAPPING, "tools[] (type=function only) + tool_choice | dynamicTools")
def test_dynamic_tools_for_every_choice(proxy: Proxy, choice: Any) -> None:
    """A tool that may be called is declared; one that must be called is too."""
    tools = [tool("responses"), tool("responses", "saveNote", NOTE)]
    found = proxy.responses({"tools": tools, "tool_choice": choice}).params(METHOD)["dynamicTools"]
    wanted = {"saveNote"} if isinstance(choice, dict) else {"getFileTree", "saveNote"}
    names = [each["name"] for each in found]
    assert wanted <= set(names), f"dynamicTools must have {sorted(wanted)} with tool_choice {choice!r}; they are {names}"


@pytest.mark.parametrize("native", ["web_search", "file_search", "code_interpreter"])
@pytest.mark.spec("newconversation-native-tools", f"{HANDOFF}, Abnormalities 3", "Native (non-function) tools are not forwarded")
def test_native_tools_are_not_dynamic(proxy: Proxy, native: str) -> None:
    """A tool that is no function is refused, or left out; the function beside it is forwarded."""
    done = proxy.responses({"tools": [{"type": native}, tool("responses")]}, ok=False)
    if 400 <= done.status < 500:
        assert done.json["error"]["message"], "error.message of the answer is empty; it must say what is wrong"
        return
    must_be(f"The status of the answer to a request with a tool of type {native}, if it is not refused,", done.status, 200)
    params = done.params(METHOD)
    must_be("`name` of dynamicTools", [each["name"] for each in params["dynamicTools"]], ["getFileTree"])
    for name in ("sendUserTurn", "sendUserMessage"):
        must_lack(f"{name}.tools", str(done.params(name).get("tools")), native)


@pytest.mark.spec("newconversation-no-tools", MAPPING, "tools[] (type=function only) + tool_choice | dynamicTools")
def test_no_tools_no_dynamic_tools(proxy: Proxy) -> None:
    """Without tools there is nothing to declare: omitted, null or empty."""
    must_be(
        f"{METHOD}.dynamicTools, null and omitted being none,", proxy.responses().params(METHOD).get("dynamicTools") or [], []
    )
