"""The payload of newConversation, and what the environment puts there."""

from __future__ import annotations

from typing import Any

from codex_replay.reference.proxy.asking import tools
from codex_replay.reference.proxy.asking.tools import NO_PARAMETERS, Tools
from codex_replay.reference.proxy.settings import Settings
from tests.strength.proxy_variants.patching import after, drop, in_params, put, variant

NEW = "newConversation"


def in_dynamic(change: Any) -> None:
    """Change the dynamic tools: `change(list)` returns the new list."""
    after(Tools, "dynamic", lambda found, *_: change(found))


def in_settings(**fields: Any) -> None:
    """Run with these settings, whatever the environment says."""
    from codex_replay.reference.proxy import __main__ as program

    after(program, "from_env", lambda settings, *_: settings._replace(**fields))


@variant
def alias_to_the_server() -> None:
    in_params(NEW, lambda params, asked, _: params.update(model=asked.model.requested))


@variant
def no_model() -> None:
    drop(NEW, "model")


@variant
def no_cwd() -> None:
    drop(NEW, "cwd")


@variant
def cwd_with_a_slash() -> None:
    in_params(NEW, lambda params, *_: params.update(cwd=params["cwd"] + "/"))


@variant
def no_approval_policy() -> None:
    drop(NEW, "approvalPolicy")


@variant
def approval_policy_on_request() -> None:
    put(NEW, approvalPolicy="on-request")


@variant
def no_sandbox() -> None:
    drop(NEW, "sandbox")


@variant
def sandbox_is_null() -> None:
    put(NEW, sandbox=None)


@variant
def sandbox_mode_for_sandbox() -> None:
    in_params(NEW, lambda params, *_: params.update(sandboxMode=params.pop("sandbox")))


@variant
def apply_patch_omitted() -> None:
    in_params(NEW, lambda params, *_: params["includeApplyPatchTool"] or params.pop("includeApplyPatchTool"))


@variant
def apply_patch_is_null() -> None:
    put(NEW, includeApplyPatchTool=None)


@variant
def base_instructions_empty() -> None:
    in_params(NEW, lambda params, *_: params.update(baseInstructions=params["baseInstructions"] or ""))


@variant
def compact_prompt_empty() -> None:
    put(NEW, compactPrompt="")


@variant
def config_empty() -> None:
    put(NEW, config={})


@variant
def one_field_more() -> None:
    put(NEW, profile=None)


@variant
def instructions_as_base() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.instructions:
            params["baseInstructions"] = asked.instructions

    in_params(NEW, change)


@variant
def system_items_as_base() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.endpoint == "responses" and asked.system:
            params["baseInstructions"] = "\n\n".join(asked.system)

    in_params(NEW, change)


@variant
def no_dynamic_tools() -> None:
    drop(NEW, "dynamicTools")


@variant
def dynamic_tools_reversed() -> None:
    in_dynamic(lambda found: found[::-1])


@variant
def dynamic_tools_the_first_only() -> None:
    in_dynamic(lambda found: found[:1])


@variant
def dynamic_tools_as_parameters() -> None:
    in_dynamic(
        lambda found: [{**{k: v for k, v in t.items() if k != "inputSchema"}, "parameters": t["inputSchema"]} for t in found]
    )


@variant
def dynamic_tools_without_description() -> None:
    in_dynamic(lambda found: [{**each, "description": ""} for each in found])


@variant
def bare_tools_without_a_description() -> None:
    in_dynamic(lambda found: [{key: each[key] for key in each if key != "description" or each[key]} for each in found])


@variant
def bare_tools_with_a_null_description() -> None:
    in_dynamic(lambda found: [{**each, "description": each["description"] or None} for each in found])


@variant
def bare_tools_left_out() -> None:
    in_dynamic(lambda found: [each for each in found if each["description"]])


@variant
def dynamic_tools_without_schema() -> None:
    in_dynamic(lambda found: [{**each, "inputSchema": {"type": "object"}} for each in found])


@variant
def dynamic_tools_only_when_auto() -> None:
    after(Tools, "dynamic", lambda found, self: found if self.choice == "auto" else [])


@variant
def native_tools_forwarded() -> None:
    old = tools._definition

    def definition(tool: Any, where: str) -> Any:
        if tool.get("type") != "function":
            return {"type": "function", "function": {"name": tool["type"], "parameters": NO_PARAMETERS}}
        return old(tool, where)

    tools._definition = definition


@variant
def a_tool_of_its_own() -> None:
    def change(params: Any, *_: Any) -> None:
        params.setdefault("dynamicTools", [{"name": "ping", "description": "", "inputSchema": NO_PARAMETERS}])

    in_params(NEW, change)


# -- the environment -------------------------------------------------------------------------------------------------------


@variant
def workdir_ignored() -> None:
    in_settings(workdir=Settings().workdir)


@variant
def workdir_of_the_turn_ignored() -> None:
    put("sendUserTurn", cwd=Settings().workdir)


@variant
def approval_policy_ignored() -> None:
    in_settings(approval_policy="never")


@variant
def approval_policy_of_the_turn_ignored() -> None:
    put("sendUserTurn", approvalPolicy="never")


@variant
def sandbox_mode_ignored() -> None:
    put(NEW, sandbox="read-only")


@variant
def sandbox_of_the_turn_ignored() -> None:
    put("sendUserTurn", sandboxPolicy={"type": "read-only"})


@variant
def apply_patch_ignored() -> None:
    in_settings(apply_patch=False)


@variant
def omit_manifest_ignored() -> None:
    in_settings(omit_manifest=False)


def manifest_kept(method: str) -> None:
    """Send the tools in a payload in spite of PROXY_RESPONSES_OMIT_TOOL_MANIFEST."""

    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.tools.definitions:
            params["tools"] = {"definitions": list(asked.tools.definitions)}

    in_params(method, change)


@variant
def omit_manifest_not_of_the_turn() -> None:
    manifest_kept("sendUserTurn")


@variant
def omit_manifest_not_of_the_message() -> None:
    manifest_kept("sendUserMessage")


@variant
def omitted_manifest_is_null() -> None:
    in_params("sendUserMessage", lambda params, *_: params.setdefault("tools", None))


@variant
def omitted_manifest_is_empty() -> None:
    in_params("sendUserTurn", lambda params, *_: params.setdefault("tools", {"definitions": []}))


@variant
def omit_manifest_not_of_dynamic_tools() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.endpoint == "responses" and (found := asked.tools.dynamic()):
            params["dynamicTools"] = found

    in_params(NEW, change)


@variant
def omit_manifest_of_the_instructions_too() -> None:
    def change(params: Any, asked: Any, settings: Any) -> None:
        if settings.omit_manifest:
            params["developerInstructions"] = asked.instructions

    in_params(NEW, change)


@variant
def never_base_instructions() -> None:
    put(NEW, baseInstructions=None)


@variant
def base_instructions_the_first_only() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if params["baseInstructions"]:
            params["baseInstructions"] = asked.system[0]

    in_params(NEW, change)


@variant
def base_instructions_reversed() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if params["baseInstructions"]:
            params["baseInstructions"] = "\n\n".join(asked.system[::-1])

    in_params(NEW, change)


@variant
def system_prompt_kept() -> None:
    in_settings(ignore_system=False)


@variant
def system_prompt_as_developer_instructions() -> None:
    def change(params: Any, asked: Any, _: Any) -> None:
        if asked.endpoint == "chat" and asked.system:
            params["developerInstructions"] = "\n\n".join(asked.system)

    in_params(NEW, change)


@variant
def ignore_flag_on_responses_too() -> None:
    from codex_replay.reference.proxy.asking import payloads

    def told(asked: Any, settings: Any) -> Any:
        return old(asked._replace(system=()) if settings.ignore_system else asked, settings)

    old = payloads.developer_instructions
    payloads.developer_instructions = told


def read_as_set(variable: str, field: str) -> None:
    """Take a switch for on whenever its variable is set, `false` included."""
    from codex_replay.reference.proxy import __main__ as program

    after(program, "from_env", lambda settings, env: settings._replace(**{field: True}) if variable in env else settings)


@variant
def apply_patch_when_set_to_anything() -> None:
    read_as_set("PROXY_INCLUDE_APPLY_PATCH_TOOL", "apply_patch")


@variant
def manifest_omitted_when_set_to_anything() -> None:
    read_as_set("PROXY_RESPONSES_OMIT_TOOL_MANIFEST", "omit_manifest")


@variant
def system_prompt_kept_when_set_to_anything() -> None:
    from codex_replay.reference.proxy import __main__ as program

    name = "PROXY_IGNORE_CLIENT_SYSTEM_PROMPT"
    after(program, "from_env", lambda settings, env: settings._replace(ignore_system=name not in env))


def mapped(field: str, was: str, becomes: str) -> None:
    """Take one value of a setting for another."""
    from codex_replay.reference.proxy import __main__ as program

    def change(settings: Any, *_: Any) -> Any:
        return settings._replace(**{field: becomes}) if getattr(settings, field) == was else settings

    after(program, "from_env", change)


@variant
def untrusted_becomes_on_request() -> None:
    mapped("approval_policy", "untrusted", "on-request")


@variant
def on_failure_becomes_on_request() -> None:
    mapped("approval_policy", "on-failure", "on-request")


@variant
def full_access_becomes_workspace_write() -> None:
    mapped("sandbox", "danger-full-access", "workspace-write")


@variant
def base_instructions_as_developer_instructions_too() -> None:
    def change(params: Any, *_: Any) -> None:
        if params["baseInstructions"]:
            params["developerInstructions"] = params["baseInstructions"]

    in_params(NEW, change)


@variant
def base_instructions_with_words_of_its_own() -> None:
    def change(params: Any, *_: Any) -> None:
        if params["baseInstructions"]:
            params["baseInstructions"] = "You are a helpful assistant.\n" + params["baseInstructions"]

    in_params(NEW, change)


@variant
def dynamic_schemas_sorted() -> None:
    def change(params: Any, *_: Any) -> None:
        for each in params.get("dynamicTools", []):
            each["inputSchema"] = dict(sorted(each["inputSchema"].items()))

    in_params(NEW, change)
