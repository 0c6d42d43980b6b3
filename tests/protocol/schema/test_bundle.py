from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import pytest

from codex_replay.protocol import data_tables
from codex_replay.protocol.schema import bundle
from codex_replay.shell.codex import schema_gen
from codex_replay.shell.files import version_data
from codex_replay.shell.files.bundle_files import load_file


def test_counts_of_0_92():
    # REAL-35
    counts = {direction: len(bundle.load().methods(direction)) for direction in bundle.DIRECTIONS}
    assert counts == {"client-request": 55, "server-notification": 29, "server-request": 6, "client-notification": 1}
    assert len(bundle.load().events()) == 64


def test_load_is_cached_and_an_unknown_version_is_a_sentence():
    assert bundle.load("0.92.0") is bundle.load("0.92.0")
    with pytest.raises(bundle.BundleError, match=r"No bundle of Codex 0\.1\.0 is packaged"):
        bundle.load("0.1.0")


def test_identity_is_the_digest_of_the_primary_file():
    data = data_tables.schema()[data_tables.PRIMARY]
    assert bundle.load().sha256 == "sha256:" + hashlib.sha256(data).hexdigest()


def test_manifest_holds_and_a_changed_byte_is_found():
    assert schema_gen.verify_manifest("0.92.0") == []
    files = dict(data_tables.schema())
    damaged = {**files, "EventMsg.json": files["EventMsg.json"].replace(b"token_count", b"token_counts", 1)}
    del damaged["RequestId.json"]
    found = schema_gen.compare(files.items(), damaged.items(), ("vendored", "generated"))
    assert [d.name for d in found] == ["EventMsg.json", "RequestId.json"]
    assert "token_counts" in found[0].what
    assert found[1].what == "is vendored, not generated"


def test_every_request_has_a_result_type():
    loaded = bundle.load()
    for direction in ("client-request", "server-request"):
        for method in loaded.methods(direction):
            assert loaded.result(direction, method) is not None, method


def test_every_response_type_answers_some_request():
    # A type left over would mean that a method is mapped to the wrong one.
    loaded = bundle.load()
    used = {loaded.result_type(d, m) for d in ("client-request", "server-request") for m in loaded.methods(d)}
    named = {n for n in loaded.type_names() if n.endswith("Response")}
    assert named - used == {"JSONRPCResponse"}


def test_references_resolve_and_a_dangling_one_is_told():
    loaded = bundle.load()
    params = loaded.params("client-request", "thread/start")
    assert "dynamicTools" in params.follow().node["properties"]
    with pytest.raises(bundle.BundleError, match="has no target"):
        bundle.lookup(params.document, "#/definitions/NoSuchThing")


def test_a_primary_file_alone_is_a_bundle(tmp_path):
    path = tmp_path / "mine.json"
    path.write_bytes(data_tables.schema()[data_tables.PRIMARY])
    mine = load_file(path)
    assert mine.sha256 == bundle.load().sha256
    for direction in bundle.DIRECTIONS:
        assert mine.methods(direction) == bundle.load().methods(direction)
    assert mine.result_type("client-request", "userInfo") == "UserInfoResponse"
    assert list(mine.files.items()) == [(data_tables.PRIMARY, path.read_bytes())]


def test_a_primary_file_in_its_directory_stands_for_the_directory():
    inside = load_file(version_data.schema_folder("0.92.0") + "/" + data_tables.PRIMARY)
    whole = load_file(version_data.schema_folder("0.92.0"), version="0.92.0")
    assert dict(inside.files) == dict(whole.files) == dict(data_tables.schema())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"definitions":{}}'])
def test_what_is_no_bundle_is_a_sentence(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(bundle.BundleError, match=r"\.$"):
        load_file(path)
    with pytest.raises(bundle.BundleError, match="cannot be read"):
        load_file(tmp_path / "absent.json")


def test_the_primary_file_is_wrong_where_two_types_share_a_name():
    # The reason why single files are read first: EventMsg in the primary file refers to the v2 error codes.
    primary = bundle.load().primary
    texts = []
    for document in (bundle.load().type("EventMsg").document, primary):
        events = document.get("oneOf") or document["definitions"]["EventMsg"]["oneOf"]
        (branch,) = [each for each in events if each["properties"]["type"]["enum"] == ["stream_error"]]
        info = branch["properties"]["codex_error_info"]["anyOf"][0]
        texts.append(json.dumps(bundle.lookup(document, info["$ref"])))
    assert "usage_limit_exceeded" in texts[0]
    assert "usageLimitExceeded" in texts[1]


def test_a_lone_primary_file_means_what_the_single_files_say(tmp_path):
    path = tmp_path / "mine.json"
    path.write_bytes(data_tables.schema()[data_tables.PRIMARY])
    alone, whole = load_file(path, version="0.92.0"), bundle.load()
    payloads = [(each.event(name)) for name in whole.events() for each in (alone, whole)]
    for direction in bundle.DIRECTIONS:
        for method in whole.methods(direction):
            payloads += [each.params(direction, method) for each in (alone, whole)]
            payloads += [each.result(direction, method) for each in (alone, whole)]
    compared = 0
    for one, other in zip(payloads[::2], payloads[1::2], strict=True):
        assert (one is None) is (other is None)
        if one is not None:
            assert spelled(one, ()) == spelled(other, ())
            compared += 1
    assert compared > 150


def spelled(schema: bundle.Schema, inside: tuple[str, ...]) -> object:
    """The schema with every reference replaced by what it means, prose left out."""
    schema = schema.follow()
    text = json.dumps(schema.node)
    if text in inside:
        return "again"

    def walk(node):
        if isinstance(node, dict):
            if "$ref" in node:
                return spelled(bundle.Schema(node, schema.document), (*inside, text))
            prose = ("title", "description", "definitions", "$schema")
            return {key: walk(each) for key, each in node.items() if key not in prose}
        return [walk(each) for each in node] if isinstance(node, list) else node

    return walk(schema.node)


def test_reading_the_schema_files_imports_nothing_heavy():
    code = (
        "import sys, codex_replay.protocol.data_tables as s;"
        "assert len(dict(s.schema())) == 154;"
        "heavy = {'re', 'json', 'typing', 'dataclasses', 'jsonschema_rs'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, 'harness'); {code}"], check=True)
