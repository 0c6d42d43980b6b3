from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import pytest

from harness.protocol import bundle, schema_files
from harness.shell import schema_gen


def test_counts_of_0_92():
    # spec/real-codex-0.92.md, section 4
    counts = {direction: len(bundle.load().methods(direction)) for direction in bundle.DIRECTIONS}
    assert counts == {"client-request": 55, "server-notification": 29, "server-request": 6, "client-notification": 1}
    assert len(bundle.load().events()) == 64


def test_load_is_cached_and_an_unknown_version_is_a_sentence():
    assert bundle.load("0.92.0") is bundle.load("0.92.0")
    with pytest.raises(bundle.BundleError, match=r"No bundle of Codex 0\.1\.0 is vendored"):
        bundle.load("0.1.0")


def test_identity_is_the_digest_of_the_primary_file():
    data = dict(schema_files.schema_files())[schema_files.PRIMARY]
    assert bundle.load().sha256 == "sha256:" + hashlib.sha256(data).hexdigest()


def test_manifest_holds_and_a_changed_byte_is_found():
    assert schema_gen.verify_manifest("0.92.0") == []
    files = dict(schema_files.schema_files())
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
    with pytest.raises(bundle.BundleError, match="leads nowhere"):
        bundle.lookup(params.document, "#/definitions/NoSuchThing")


def test_a_primary_file_alone_is_a_bundle(tmp_path):
    path = tmp_path / "mine.json"
    path.write_bytes(dict(schema_files.schema_files())[schema_files.PRIMARY])
    mine = bundle.load_file(path)
    assert mine.sha256 == bundle.load().sha256
    for direction in bundle.DIRECTIONS:
        assert mine.methods(direction) == bundle.load().methods(direction)
    assert mine.result_type("client-request", "userInfo") == "UserInfoResponse"
    assert list(mine.files()) == [(schema_files.PRIMARY, path.read_bytes())]


def test_a_primary_file_in_its_directory_stands_for_the_directory():
    inside = bundle.load_file(schema_files.folder("0.92.0") + "/" + schema_files.PRIMARY)
    whole = bundle.load_file(schema_files.folder("0.92.0"), version="0.92.0")
    assert dict(inside.files()) == dict(whole.files()) == dict(schema_files.schema_files())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"definitions":{}}'])
def test_what_is_no_bundle_is_a_sentence(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(bundle.BundleError, match=r"\.$"):
        bundle.load_file(path)
    with pytest.raises(bundle.BundleError, match="cannot be read"):
        bundle.load_file(tmp_path / "absent.json")


def test_the_primary_file_is_wrong_where_two_types_share_a_name(tmp_path):
    # The reason why single files are read first: EventMsg in the primary file refers to the v2 error codes.
    path = tmp_path / "mine.json"
    path.write_bytes(dict(schema_files.schema_files())[schema_files.PRIMARY])
    codes = []
    for loaded in (bundle.load(), bundle.load_file(path)):
        info = loaded.event("stream_error").node["properties"]["codex_error_info"]["anyOf"][0]
        found = bundle.Schema(info, loaded.event("stream_error").document).follow()
        codes.append(json.dumps(found.node))
    assert "usage_limit_exceeded" in codes[0]
    assert "usage_limit_exceeded" not in codes[1]


def test_schema_files_imports_nothing_heavy():
    code = (
        "import sys, harness.protocol.schema_files as s;"
        "assert len(dict(s.schema_files())) == 154;"
        "heavy = {'re', 'json', 'typing', 'dataclasses', 'jsonschema_rs'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.'); {code}"], check=True)
