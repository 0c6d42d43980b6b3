"""The environment that a proxy is run with. Source: app-server-payloads.md, the notes to each payload."""

from __future__ import annotations

from typing import Any

import pytest

from harness.plugin.proxy import Proxy
from suites.proxy.expected import AS_SPECIFIED, CALLS, ENDPOINTS, SPEC, texts, tool
from suites.proxy.instructions import sent
from suites.proxy.saying import must_be, must_be_unset, must_have, must_lack

pytestmark = [pytest.mark.proxy_profile(AS_SPECIFIED), pytest.mark.model("Hi.")]

RULES = f"{SPEC}, Common normalization rules"
NEW = f"{SPEC}, 1) newConversation (always)"
CHAT = f"{SPEC}, Chat endpoint"
#: One environment with everything unlike its default, so that one process serves these cases.
ALL: dict[str, str] = {
    "PROXY_CODEX_WORKDIR": "/tmp/other-work",
    "PROXY_APPROVAL_POLICY": "on-request",
    "PROXY_SANDBOX_MODE": "workspace-write",
    "PROXY_INCLUDE_APPLY_PATCH_TOOL": "true",
    "PROXY_IGNORE_CLIENT_SYSTEM_PROMPT": "false",
    "PROXY_RESPONSES_OMIT_TOOL_MANIFEST": "true",
}
SET: list[Any] = [
    pytest.param("newConversation", "cwd", "/tmp/other-work", id="cwd"),
    pytest.param("sendUserTurn", "cwd", "/tmp/other-work", id="turn-cwd"),
    pytest.param("newConversation", "approvalPolicy", "on-request", id="approval-policy"),
    pytest.param("sendUserTurn", "approvalPolicy", "on-request", id="turn-approval-policy"),
    pytest.param("newConversation", "sandbox", "workspace-write", id="sandbox"),
    pytest.param("newConversation", "includeApplyPatchTool", True, id="apply-patch"),
]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(("method", "field", "value"), SET)
@pytest.mark.spec(
    "env-field", NEW, "PROXY_CODEX_WORKDIR, PROXY_APPROVAL_POLICY, PROXY_SANDBOX_MODE, PROXY_INCLUDE_APPLY_PATCH_TOOL"
)
def test_field(proxy: Proxy, endpoint: str, method: str, field: str, value: Any) -> None:
    """Each variable has its place in the payloads."""
    must_be(f"{method}.{field}", proxy.post(endpoint, env=ALL).params(method)[field], value)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec(
    "env-sandbox-turn", NEW, "`approvalPolicy` and `sandbox` are derived from `PROXY_APPROVAL_POLICY` and `PROXY_SANDBOX_MODE`"
)
def test_the_sandbox_of_the_turn(proxy: Proxy, endpoint: str) -> None:
    """The turn's policy is of the type that the variable names."""
    policy = proxy.post(endpoint, env=ALL).params("sendUserTurn")["sandboxPolicy"]
    assert isinstance(policy, dict), f"sendUserTurn.sandboxPolicy must be an object, not {policy!r}"
    must_be("sendUserTurn.sandboxPolicy.type", policy["type"], "workspace-write")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec(
    "env-omit-manifest", RULES, "tool definitions are omitted from app-server payloads even if provided by the client"
)
def test_omit_tool_manifest(proxy: Proxy, endpoint: str) -> None:
    """`tools` is omitted entirely from turn and message, however many tools the client has."""
    done = proxy.post(endpoint, {"tools": [tool(endpoint)]}, env=ALL)
    for name in CALLS[1:]:
        params = done.params(name)
        assert "tools" not in params, (
            f"{name}.tools must be omitted (PROXY_RESPONSES_OMIT_TOOL_MANIFEST), but it is {params['tools']!r}"
        )


@pytest.mark.spec(
    "env-omit-manifest-dynamic", RULES, "tool definitions are omitted from app-server payloads even if provided by the client"
)
def test_omit_dynamic_tools(proxy: Proxy) -> None:
    """No payload has definitions of tools: newConversation declares none either."""
    params = proxy.responses({"tools": [tool("responses")]}, env=ALL).params("newConversation")
    must_be("newConversation.dynamicTools (PROXY_RESPONSES_OMIT_TOOL_MANIFEST)", params.get("dynamicTools") or [], [])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.spec(
    "env-omit-manifest-instructions",
    f"{SPEC}, Tool schema payloads",
    "This schema list is also embedded in `developerInstructions` for app-server alignment",
)
def test_omitted_tools_stay_in_the_instructions(proxy: Proxy, endpoint: str) -> None:
    """The variable is about `tools`; the model learns of them from the developer instructions all the same."""
    done = proxy.post(endpoint, {"tools": [tool(endpoint)]}, env=ALL)
    must_have("newConversation.developerInstructions", sent(done.params("newConversation")), "- getFileTree: {")


@pytest.mark.spec("env-base-instructions", CHAT, "only sent as `baseInstructions` when `PROXY_IGNORE_CLIENT_SYSTEM_PROMPT=false`")
def test_system_prompt_of_chat(proxy: Proxy) -> None:
    """The system message is the base instructions, and no part of the prompt."""
    messages = [{"role": "system", "content": "Speak like a pirate."}, {"role": "user", "content": proxy.prompt()}]
    done = proxy.chat({"messages": messages}, env=ALL)
    must_have("newConversation.baseInstructions", str(done.params("newConversation")["baseInstructions"]), "Speak like a pirate.")
    must_lack("The text of sendUserMessage.items", texts(done.params("sendUserMessage")), "pirate")


@pytest.mark.spec("env-base-instructions-both", CHAT, "System/developer messages are only sent as `baseInstructions`")
def test_system_and_developer_prompts_of_chat(proxy: Proxy) -> None:
    """Developer messages are treated as system messages are, in the order of the conversation."""
    messages = [
        {"role": "system", "content": "First rule."},
        {"role": "developer", "content": [{"type": "text", "text": "Second rule."}]},
        {"role": "user", "content": proxy.prompt()},
    ]
    base = proxy.chat({"messages": messages}, env=ALL).params("newConversation")["baseInstructions"]
    must_have("newConversation.baseInstructions", str(base), "First rule.", "Second rule.")


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.spec("env-system-dropped", CHAT, "(default is true, so they are dropped)")
def test_system_prompt_is_dropped(proxy: Proxy, role: str) -> None:
    """By default it reaches the app-server nowhere."""
    messages = [{"role": role, "content": "Speak like a pirate."}, {"role": "user", "content": proxy.prompt()}]
    done = proxy.chat({"messages": messages})
    must_be_unset("newConversation", done.params("newConversation"), "baseInstructions")
    for name in CALLS:
        must_lack(f"{name}, for the {role} text is dropped by default,", done.raw(name), "pirate")


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("ignore", ["true", "false"])
@pytest.mark.spec("env-ignore-not-responses", NEW, "there is no ignore flag on the responses path")
def test_responses_have_no_ignore_flag(proxy: Proxy, role: str, ignore: str) -> None:
    """On responses such items are developer instructions, whatever the variable says, and never base instructions."""
    items = [{"role": role, "content": "Speak like a pirate."}, {"role": "user", "content": proxy.prompt()}]
    env = ALL if ignore == "false" else None
    params = proxy.responses({"input": items}, env=env).params("newConversation")
    must_have("newConversation.developerInstructions", str(params["developerInstructions"]), "Speak like a pirate.")
    must_be_unset("newConversation", params, "baseInstructions")
