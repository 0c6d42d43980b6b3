"""The numbers and names of methods and events in the 0.92 schemas.

Source: REAL-34, REAL-116; SCHEMA-02.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from codex_replay.plugin.schema.fixtures import BundleFiles

PRIMARY = "codex_app_server_protocol.schemas.json"
COUNTS = {"ClientRequest": 55, "ServerNotification": 29, "ServerRequest": 6, "ClientNotification": 1}


def methods(union: Any) -> list[str]:
    """Return the method names in a union of frames of the schema."""
    return [name for branch in union["oneOf"] for name in branch["properties"]["method"]["enum"]]


@pytest.mark.parametrize("name", COUNTS)
def test_methods(bundle_files: BundleFiles, name: str) -> None:
    """55 client requests, 29 server notifications, 6 server requests, 1 client notification, each named once. (REAL-34)"""
    found = methods(bundle_files.json(f"{name}.json"))
    assert len(found) == COUNTS[name]
    assert max(Counter(found).values()) == 1


@pytest.mark.parametrize("name", COUNTS)
def test_methods_of_the_primary_file(bundle_files: BundleFiles, name: str) -> None:
    """The primary file lists the same methods as the single file of each direction. (SCHEMA-02)"""
    primary = bundle_files.json(PRIMARY)["definitions"]
    assert methods(primary[name]) == methods(bundle_files.json(f"{name}.json"))


def test_events(bundle_files: BundleFiles) -> None:
    """EventMsg has 64 types, the same in its own file and in the primary file. (SCHEMA-02)"""
    own = [name for branch in bundle_files.json("EventMsg.json")["oneOf"] for name in branch["properties"]["type"]["enum"]]
    primary = bundle_files.json(PRIMARY)["definitions"]["EventMsg"]["oneOf"]
    assert len(own) == len(set(own)) == 64
    assert own == [name for branch in primary for name in branch["properties"]["type"]["enum"]]


def test_the_client_notification(bundle_files: BundleFiles) -> None:
    """The one client notification is `initialized`. (REAL-34, REAL-87)"""
    assert methods(bundle_files.json("ClientNotification.json")) == ["initialized"]


def test_the_server_requests(bundle_files: BundleFiles) -> None:
    """The six requests of the server are the approvals of both generations, user input and the dynamic tool call. (REAL-34)"""
    assert sorted(methods(bundle_files.json("ServerRequest.json"))) == [
        "applyPatchApproval",
        "execCommandApproval",
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/tool/call",
        "item/tool/requestUserInput",
    ]


def test_events_are_no_listed_notifications(bundle_files: BundleFiles) -> None:
    """`codex/event/*` is not among the notifications of ServerNotification, although the server sends it. (REAL-38)"""
    assert not [name for name in methods(bundle_files.json("ServerNotification.json")) if name.startswith("codex/")]


def test_frames_have_no_jsonrpc_key(bundle_files: BundleFiles) -> None:
    """None of the four forms of the envelope has a `jsonrpc` key. (REAL-35)"""
    forms = bundle_files.json("JSONRPCMessage.json")["definitions"]
    for name in ("JSONRPCRequest", "JSONRPCNotification", "JSONRPCResponse", "JSONRPCError"):
        assert "jsonrpc" not in forms[name]["properties"]


def test_params_are_open(bundle_files: BundleFiles) -> None:
    """The params of every method allow further properties, so validation alone never finds an unknown key. (REAL-45)"""
    for file in bundle_files:
        if file.endswith("Params.json"):
            assert "additionalProperties" not in bundle_files.json(file)


def test_what_is_closed_all_the_same(bundle_files: BundleFiles) -> None:
    """Only two kinds of objects are closed: one-key variants of externally tagged enums, and the step of a plan. (REAL-45)"""
    for file in bundle_files:
        for node in nodes(bundle_files.json(file)):
            if node.get("additionalProperties") is False:
                keys = set(node["properties"])
                assert keys == set(node["required"])
                assert len(keys) == 1 or keys == {"step", "status"}, (file, node)


def nodes(value: Any) -> list[dict[str, Any]]:
    """Return every object of a JSON value."""
    if isinstance(value, dict):
        return [value, *(node for each in value.values() for node in nodes(each))]
    return [node for each in value for node in nodes(each)] if isinstance(value, list) else []
