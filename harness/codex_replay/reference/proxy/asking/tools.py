"""Read the tools in a client's request, and return them in the forms that the app-server requires: definitions and dynamic tools.

A function tool is nested in a chat request (`{"type":"function","function":{...}}`) and flat in a Responses request
(`{"type":"function","name":...}`). A tool that is not a function tool is refused, because the client would not run it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from codex_replay.reference.proxy.errors import bad_request

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


class Tools(NamedTuple):
    """The function tools that a request declares.

    `definitions` have the nested form of chat requests. `choice` is none, auto, required or forced; `forced` is the name of
    the forced tool.
    """

    definitions: tuple[dict[str, Any], ...] = ()
    choice: str = "auto"
    forced: str | None = None
    parallel: bool = True

    @property
    def functions(self) -> list[dict[str, Any]]:
        """Return the value of `function` for each definition."""
        return [definition["function"] for definition in self.definitions]

    @property
    def names(self) -> set[str]:
        """Return the names of the tools that the model may call. If the tool choice is none, return no names."""
        return set() if self.choice == "none" else {function["name"] for function in self.functions}

    @property
    def strict(self) -> list[str]:
        """Return the names of the strict tools. The arguments of a call to a strict tool must follow the schema exactly."""
        return [function["name"] for function in self.functions if function.get("strict") is True]

    def dynamic(self) -> list[dict[str, Any]]:
        """Return the tools in the form of `dynamicTools` (SCHEMA-07). If the tool choice is none, return no tools."""
        if self.choice == "none":
            return []
        return [
            {
                "name": function["name"],
                "description": function.get("description") or "",
                "inputSchema": schema_of(function),
            }
            for function in self.functions
        ]


def schema_of(function: dict[str, Any]) -> Any:
    """Return the JSON schema of a function's parameters.

    If the client gave no schema, return the schema of an object without properties.
    """
    found = function.get("parameters")
    return NO_PARAMETERS if found is None else found


def read_tools(body: dict[str, Any]) -> Tools:
    """Read `tools`, `tool_choice` and `parallel_tool_calls` of a request. Raises `ProxyError` (400) for an invalid request."""
    given = body.get("tools") or []
    if not isinstance(given, list):
        raise bad_request("tools must be a list.", "tools")
    definitions = tuple(_definition(tool, f"tools[{at}]") for at, tool in enumerate(given))
    names = [definition["function"]["name"] for definition in definitions]
    if len(set(names)) < len(names):
        raise bad_request("Two tools have the same name.", "tools")
    choice, forced = _choice(body.get("tool_choice"), names)
    parallel = body.get("parallel_tool_calls")
    if parallel is not None and not isinstance(parallel, bool):
        raise bad_request("parallel_tool_calls must be true or false.", "parallel_tool_calls")
    return Tools(definitions, choice, forced, parallel is not False)


def _definition(tool: Any, where: str) -> dict[str, Any]:
    if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
        raise bad_request(f"{where} is not a tool.", where)
    if tool["type"] != "function":
        raise bad_request(f"{where} is a {tool['type']} tool; only function tools can be used here.", where, "unsupported_tool")
    nested = isinstance(tool.get("function"), dict)
    definition: dict[str, Any] = tool
    if not nested:
        definition = {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}
    name = definition["function"].get("name")
    if not isinstance(name, str) or not name:
        raise bad_request(f"{where} has no name.", f"{where}.name")
    return definition


def _choice(choice: Any, names: list[str]) -> tuple[str, str | None]:
    if choice is None:
        return "auto", None
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            raise bad_request(f"tool_choice {choice!r} is not none, auto or required.", "tool_choice")
        return choice, None
    if isinstance(choice, dict) and choice.get("type") == "function":
        inner = choice.get("function")
        name = inner.get("name") if isinstance(inner, dict) else choice.get("name")
        if name not in names:
            raise bad_request(f"tool_choice names {name!r}, which is not among the tools.", "tool_choice")
        return "forced", name
    raise bad_request("tool_choice must be a string or a function object.", "tool_choice")
