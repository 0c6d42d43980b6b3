"""The environment variables that a proxy supports. Source: docs/contract/payloads.md, the notes to each payload."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Proxy
from suites.proxy.expected import AS_SPECIFIED, CALLS, ENDPOINTS, OTHER_THAN_DEFAULT, tool
from suites.proxy.instructions import sent
from suites.proxy.saying import must_be, must_be_unset, must_have, must_lack, with_env

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

#: The default values, set explicitly; they must have the same effect as unset variables.
EXPLICIT: dict[str, str] = {
    "PROXY_APPROVAL_POLICY": "never",
    "PROXY_SANDBOX_MODE": "read-only",
    "PROXY_INCLUDE_APPLY_PATCH_TOOL": "false",
    "PROXY_IGNORE_CLIENT_SYSTEM_PROMPT": "true",
    "PROXY_RESPONSES_OMIT_TOOL_MANIFEST": "false",
}
#: Each policy and each sandbox mode of the app-server once; each pair needs one process.
LEGAL: list[Any] = [
    pytest.param(EXPLICIT, id="never-read-only"),
    pytest.param({"PROXY_APPROVAL_POLICY": "untrusted", "PROXY_SANDBOX_MODE": "danger-full-access"}, id="untrusted-full-access"),
    pytest.param({"PROXY_APPROVAL_POLICY": "on-failure", "PROXY_SANDBOX_MODE": "workspace-write"}, id="on-failure-workspace"),
    pytest.param(OTHER_THAN_DEFAULT, id="on-request-workspace"),
]
SET: list[Any] = [
    pytest.param("newConversation", "cwd", "/tmp/other-work", id="cwd"),
    pytest.param("sendUserTurn", "cwd", "/tmp/other-work", id="turn-cwd"),
    pytest.param("newConversation", "approvalPolicy", "on-request", id="approval-policy"),
    pytest.param("sendUserTurn", "approvalPolicy", "on-request", id="turn-approval-policy"),
    pytest.param("newConversation", "sandbox", "workspace-write", id="sandbox"),
    pytest.param("newConversation", "includeApplyPatchTool", True, id="apply-patch"),
]

#: The variable that decides a field.
VARIABLES = {
    "cwd": "PROXY_CODEX_WORKDIR",
    "approvalPolicy": "PROXY_APPROVAL_POLICY",
    "sandbox": "PROXY_SANDBOX_MODE",
    "includeApplyPatchTool": "PROXY_INCLUDE_APPLY_PATCH_TOOL",
}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(("method", "field", "value"), SET)
@pytest.mark.spec("env-field", "PAY-10", "PAY-27", "PAY-28", "PAY-29")
def test_field(proxy: Proxy, endpoint: str, method: str, field: str, value: Any) -> None:
    """The payload has the value of each environment variable in the right field."""
    asked = with_env({VARIABLES[field]: OTHER_THAN_DEFAULT[VARIABLES[field]]})
    must_be(f"{asked}{method}.{field}", proxy.post(endpoint, env=OTHER_THAN_DEFAULT).params(method)[field], value)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("env-sandbox-turn", "PAY-28")
def test_the_sandbox_of_the_turn(proxy: Proxy, endpoint: str) -> None:
    """sendUserTurn.sandboxPolicy has the type that PROXY_SANDBOX_MODE names."""
    policy = proxy.post(endpoint, env=OTHER_THAN_DEFAULT).params("sendUserTurn")["sandboxPolicy"]
    assert isinstance(policy, dict), f"sendUserTurn.sandboxPolicy must be an object, not {policy!r}"
    must_be("With PROXY_SANDBOX_MODE=workspace-write, sendUserTurn.sandboxPolicy.type", policy["type"], "workspace-write")


@pytest.mark.parametrize("env", LEGAL)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("env-legal-values", "PAY-27", "PAY-28")
def test_each_policy_and_each_sandbox(proxy: Proxy, endpoint: str, env: dict[str, str]) -> None:
    """For each value that the app-server accepts, newConversation and sendUserTurn have the value of the variable unchanged."""
    done = proxy.post(endpoint, env=env)
    opened, turn = done.params("newConversation"), done.params("sendUserTurn")
    policies = [opened["approvalPolicy"], turn["approvalPolicy"]]
    must_be(f"{with_env(env)}approvalPolicy of newConversation and of sendUserTurn", policies, [env["PROXY_APPROVAL_POLICY"]] * 2)
    boxes = [opened["sandbox"], turn["sandboxPolicy"]["type"]]
    must_be(f"{with_env(env)}newConversation.sandbox and sendUserTurn.sandboxPolicy.type", boxes, [env["PROXY_SANDBOX_MODE"]] * 2)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("env-apply-patch-false", "PAY-30")
def test_apply_patch_false(proxy: Proxy, endpoint: str) -> None:
    """The proxy treats a variable with the value `false` as false, although the variable is set."""
    params = proxy.post(endpoint, env=EXPLICIT).params("newConversation")
    must_be(
        "With PROXY_INCLUDE_APPLY_PATCH_TOOL=false, newConversation.includeApplyPatchTool", params["includeApplyPatchTool"], False
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("env-manifest-kept", "PAY-17")
def test_manifest_is_kept(proxy: Proxy, endpoint: str) -> None:
    """With the value `false`, sendUserTurn and sendUserMessage have the tool definitions; on responses, newConversation too."""
    done = proxy.post(endpoint, {"tools": [tool(endpoint)]}, env=EXPLICIT)
    for name in CALLS[1:]:
        names = [each["function"]["name"] for each in (done.params(name).get("tools") or {}).get("definitions") or []]
        must_be(f"The names of {name}.tools.definitions", names, ["getFileTree"])
    if endpoint == "responses":
        declared = [each["name"] for each in done.params("newConversation").get("dynamicTools") or []]
        must_be("The names of newConversation.dynamicTools", declared, ["getFileTree"])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("env-omit-manifest", "PAY-16", "PAY-82")
def test_omit_tool_manifest(proxy: Proxy, endpoint: str) -> None:
    """With PROXY_RESPONSES_OMIT_TOOL_MANIFEST, sendUserTurn and sendUserMessage have no `tools`, even if the client has tools."""
    done = proxy.post(endpoint, {"tools": [tool(endpoint)]}, env=OTHER_THAN_DEFAULT)
    for name in CALLS[1:]:
        params = done.params(name)
        assert "tools" not in params, (
            f"{name}.tools must be omitted (PROXY_RESPONSES_OMIT_TOOL_MANIFEST), but it is {params['tools']!r}"
        )


@pytest.mark.spec("env-omit-manifest-dynamic", "PAY-16")
def test_omit_dynamic_tools(proxy: Proxy) -> None:
    """With PROXY_RESPONSES_OMIT_TOOL_MANIFEST, no payload has tool definitions, and newConversation has no dynamic tools."""
    params = proxy.responses({"tools": [tool("responses")]}, env=OTHER_THAN_DEFAULT).params("newConversation")
    must_be("newConversation.dynamicTools (PROXY_RESPONSES_OMIT_TOOL_MANIFEST)", params.get("dynamicTools") or [], [])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec("env-omit-manifest-instructions", "PAY-97")
def test_omitted_tools_stay_in_the_instructions(proxy: Proxy, endpoint: str) -> None:
    """With PROXY_RESPONSES_OMIT_TOOL_MANIFEST, the developer instructions still describe the tools: only `tools` is omitted."""
    done = proxy.post(endpoint, {"tools": [tool(endpoint)]}, env=OTHER_THAN_DEFAULT)
    must_have("newConversation.developerInstructions", sent(done.params("newConversation")), "- getFileTree: {")


@pytest.mark.spec("env-base-instructions", "PAY-91")
def test_system_prompt_of_chat(proxy: Proxy) -> None:
    """On chat, the system message is in baseInstructions and nowhere else."""
    messages = [{"role": "system", "content": "Speak like a pirate."}, {"role": "user", "content": proxy.prompt()}]
    done = proxy.chat({"messages": messages}, env=OTHER_THAN_DEFAULT)
    opened = dict(done.params("newConversation"))
    must_be("newConversation.baseInstructions", str(opened.pop("baseInstructions", None)).strip(), "Speak like a pirate.")
    must_lack("newConversation without baseInstructions", str(opened), "pirate")
    for name in CALLS[1:]:
        must_lack(name, done.raw(name), "pirate")


@pytest.mark.spec("env-base-instructions-both", "PAY-91", "PAY-94")
def test_system_and_developer_prompts_of_chat(proxy: Proxy) -> None:
    """The proxy handles developer messages like system messages, and keeps the order of the conversation."""
    messages = [
        {"role": "system", "content": "First rule."},
        {"role": "developer", "content": [{"type": "text", "text": rule} for rule in ("Second rule.", "Third rule.")]},
        {"role": "user", "content": proxy.prompt()},
    ]
    base = proxy.chat({"messages": messages}, env=OTHER_THAN_DEFAULT).params("newConversation")["baseInstructions"]
    must_have("newConversation.baseInstructions", str(base), "First rule.", "Second rule.", "Third rule.")


@pytest.mark.parametrize("env", [pytest.param(None, id="unset"), pytest.param(EXPLICIT, id="true")])
@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.spec("env-system-dropped", "PAY-92", "PAY-93")
def test_system_prompt_is_dropped(proxy: Proxy, role: str, env: dict[str, str] | None) -> None:
    """By default and with the value `true`, no call to the app-server has the system prompt."""
    messages = [{"role": role, "content": "Speak like a pirate."}, {"role": "user", "content": proxy.prompt()}]
    done = proxy.chat({"messages": messages}, env=env)
    must_be_unset("newConversation", done.params("newConversation"), "baseInstructions")
    for name in CALLS:
        must_lack(f"{name}, for the {role} text is dropped by default,", done.raw(name), "pirate")


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize(
    "env", [pytest.param(None, id="unset"), pytest.param(EXPLICIT, id="true"), pytest.param(OTHER_THAN_DEFAULT, id="false")]
)
@pytest.mark.spec("env-ignore-not-responses", "PAY-33")
def test_responses_have_no_ignore_flag(proxy: Proxy, role: str, env: dict[str, str] | None) -> None:
    """On responses, system and developer items are always developer instructions, for every value of the variable."""
    items = [{"role": role, "content": "Speak like a pirate."}, {"role": "user", "content": proxy.prompt()}]
    params = proxy.responses({"input": items}, env=env).params("newConversation")
    must_have("newConversation.developerInstructions", str(params["developerInstructions"]), "Speak like a pirate.")
    must_be_unset("newConversation", params, "baseInstructions")
