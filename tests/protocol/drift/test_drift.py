"""The drift command, its reports, whose cases are hit, and the bundles that it compares."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from codex_replay.cli.drift import pages
from codex_replay.cli.drift.command import command
from codex_replay.protocol import data_tables
from codex_replay.protocol.drift.compare import compare
from codex_replay.protocol.drift.report import as_json
from codex_replay.protocol.drift.rules import IDS, RULES
from codex_replay.protocol.drift.users import TESTS, Usage
from codex_replay.protocol.schema.bundle import Bundle, BundleError, alone
from codex_replay.shell.codex import bundles, install, schema_gen

ROOT = Path(__file__).resolve().parents[3]
PRIMARY = data_tables.schema("0.92.0")[data_tables.PRIMARY]
Edit = Callable[[dict[str, Any]], None]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments])


def edited(path: Path, edit: Edit) -> Path:
    """Write the 0.92.0 primary file to `path`, its definitions changed by `edit`."""
    document = json.loads(PRIMARY)
    edit(document["definitions"])
    path.write_text(json.dumps(document))
    return path


def without(method: str, union: str = "ClientRequest") -> Edit:
    def edit(definitions: dict[str, Any]) -> None:
        members = definitions[union]["oneOf"]
        definitions[union]["oneOf"] = [each for each in members if each["properties"]["method"]["enum"] != [method]]

    return edit


# --- the command


def test_a_version_against_itself_is_nothing() -> None:
    done = run("0.92.0", "0.92.0", "--json")
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report["findings"] == []
    assert report["uncompared"] == []
    assert (report["drift"], report["from"], report["to"]) == (1, "0.92.0", "0.92.0")
    assert report["counts"]["from"]["client_methods"] == 55


def test_a_primary_file_says_what_its_folder_says(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(PRIMARY)
    assert run("0.92.0", path).exit_code == 0
    # Not byte for byte the same, and so compared as the file that it is.
    assert run("0.92.0", edited(path, lambda definitions: None)).exit_code == 0


def test_a_method_that_went_breaks_who_sends_it(tmp_path: Path) -> None:
    done = run("0.92.0", edited(tmp_path / "mine.json", without("thread/archive")), "--json")
    assert done.exit_code == 1
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["rule"] == "method-gone"
    assert finding["class"] == "breaking"
    assert finding["method"] == "thread/archive"
    assert (finding["sends"], finding["reads"], finding["hits"]) == ("client", "server", "senders")


def test_what_is_added_breaks_nobody(tmp_path: Path) -> None:
    done = run(edited(tmp_path / "mine.json", without("thread/archive")), "0.92.0", "--json")
    assert done.exit_code == 0
    assert [finding["rule"] for finding in json.loads(done.stdout)["findings"]] == ["method-new"]


def test_a_type_that_many_methods_share_is_one_finding_with_many_places(tmp_path: Path) -> None:
    def edit(definitions: dict[str, Any]) -> None:
        del definitions["v2"]["Turn"]["properties"]["status"]
        definitions["v2"]["Turn"]["required"].remove("status")

    report = json.loads(run("0.92.0", edited(tmp_path / "mine.json", edit), "--json").stdout)
    (finding,) = report["findings"]
    assert finding["type"] == "Turn"
    assert finding["hits"] == "readers"
    places = {(place["method"], place["path"]) for place in finding["places"]}
    assert {("turn/start", "$.result.turn.status"), ("turn/completed", "$.params.turn.status")} <= places


def test_the_verdict_stands_first_and_last_around_the_table(tmp_path: Path) -> None:
    done = run("0.92.0", edited(tmp_path / "mine.json", without("turn/completed", "ServerNotification")))
    assert done.exit_code == 1
    assert "turn/completed" in done.stdout
    assert "clients that read it" in done.stdout
    verdict = "From 0.92.0 to mine.json, 1 change breaks clients. 0 changes add something new."
    assert (done.stdout.splitlines()[0], done.stdout.splitlines()[-1]) == (verdict, verdict)


def test_renamed_and_moved_definitions_are_no_findings(tmp_path: Path) -> None:
    text = PRIMARY.decode()
    moved = {
        "v2/Turn": "v2/Zurn",
        "v2/ThreadItem": "v2/Part",
        "v2/ThreadStartParams": "v2/StartIt",
        "v2/PatchChangeKind": "PatchWay",
    }
    for old, new in moved.items():
        text = text.replace(f'"#/definitions/{old}"', f'"#/definitions/{new}"')
    document = json.loads(text)
    definitions = document["definitions"]
    for old, new in moved.items():
        node = definitions["v2"].pop(old.removeprefix("v2/"))
        (definitions["v2"] if new.startswith("v2/") else definitions)[new.removeprefix("v2/")] = node
    path = tmp_path / "moved.json"
    path.write_text(json.dumps(document))
    report = json.loads(run("0.92.0", path, "--json").stdout)
    assert (report["findings"], report["uncompared"]) == ([], [])


def test_a_part_of_a_bundle_is_compared_as_far_as_it_goes(tmp_path: Path) -> None:
    done = run("0.92.0", edited(tmp_path / "part.json", lambda definitions: definitions.pop("ServerRequest")), "--json")
    report = json.loads(done.stdout)
    assert report["findings"] == []
    assert report["uncompared"] == ["ServerRequest was not compared: the bundle of part.json does not define it."]
    said = "Nothing changed between 0.92.0 and part.json in what could be compared; 1 part could not be."
    assert pages.verdict(report) == said


NONE: dict[str, bytes] = {
    "number": b'{"definitions":{"ClientRequest":5}}',
    "empty": b"",
    "object": b"{}",
    "list": b"[]",
    "text": b"no json",
    "binary": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
    "no-union": b'{"definitions":{"ClientRequest":{"oneOf":[]}}}',
    "no-schema": b'{"definitions":{"ClientRequest":{"oneOf":[5]}}}',
    "v2": b'{"definitions":{"ClientRequest":{"oneOf":[{"properties":{"method":{"enum":["a"]}}}]},"v2":{"X":5}}}',
    "no-method": b'{"definitions":{"ClientRequest":{"type":"object"}}}',
    "cassette": b'{"cassette":1,"codex":"0.92.0"}\n{"n":1}\n',
    "dangling": b'{"definitions":{"ClientRequest":{"oneOf":[{"properties":{"method":{"enum":["initialize"]},'
    b'"params":{"$ref":"#/x"}}}]}}}',
}


@pytest.mark.parametrize("what", NONE)
def test_what_is_no_bundle_is_refused_in_a_sentence(what: str, tmp_path: Path) -> None:
    path = tmp_path / f"{what}.json"
    path.write_bytes(NONE[what])
    for pair in (("0.92.0", path), (path, "0.92.0")):
        done = run(*pair)
        assert done.exit_code == 2
        assert done.stderr.startswith("codex-replay: ")
        assert len(done.stderr.splitlines()) == 1
        assert "Traceback" not in done.output


@pytest.mark.parametrize("named", ["0.92", "latest", "no/such/file", "nowhere.json", ""])
def test_what_is_no_version_and_no_file_is_refused(named: str) -> None:
    assert run("0.92.0", named).exit_code == 2


@pytest.mark.parametrize("folder", [True, False])
def test_what_is_nothing_like_a_bundle_is_told_how_one_is_made(tmp_path: Path, folder: bool) -> None:
    path = tmp_path / "s.yaml"
    if folder:
        path.mkdir()
    else:
        path.write_text("a: 1\n")
    told = run("0.92.0", path).stderr
    assert f"{path} is not a schema bundle: it " in told
    assert "`codex app-server generate-json-schema --out DIR`" in told
    assert "Expecting value" not in told


def test_an_output_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("0.92.0", "0.92.0", "--markdown", tmp_path / "file" / "out.md")
    assert done.exit_code == 2
    assert done.stderr.startswith("codex-replay: ")


def test_json_loads_no_rich() -> None:
    code = (
        "import sys\nfrom codex_replay.cli.main import main\n"
        "try:\n    main(['drift', '0.92.0', '0.92.0', '--json'])\n"
        "except SystemExit:\n    pass\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'rich', 'deepdiff', 'pytest', 'jsonschema_rs'}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    assert json.loads(done.stdout)["findings"] == []
    assert done.stderr.strip() == "[]"


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    """A pipe, or /dev/stdout, which a rename would put a file in the place of."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        try:
            assert run("0.92.0", "0.92.0", "--markdown", pipe).exit_code == 0
            assert pipe.is_fifo()
            assert reader.communicate(timeout=60)[0].startswith("# Drift from 0.92.0 to 0.92.0")
        finally:
            reader.kill()


def test_markdown_and_html_show_a_strange_name_and_run_nothing(tmp_path: Path) -> None:
    def edit(definitions: dict[str, Any]) -> None:
        definitions["v2"]["ThreadStartParams"]["properties"]["<img src=x onerror=alert(1)>|`"] = {"type": "string"}

    bundle = edited(tmp_path / "odd.json", edit)
    assert run(bundle, "0.92.0", "--markdown", tmp_path / "a.md", "--html", tmp_path / "a.html").exit_code == 1
    page, text = (tmp_path / "a.html").read_text(), (tmp_path / "a.md").read_text()
    assert "<img" not in page  # what it shows of this, and how: tests/browser
    assert "<img" not in text
    assert "\\|" in text
    assert not re.search(r"<[^>]*\b(src|href)=(?!\"data:,\"|\"#main\")|https?://|@import|url\(", page)


# --- whose cases are hit


def deck(folder: Path, *names: str) -> Path:
    for name in names:
        target = folder / f"{name}.ndjson"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "cassettes" / "app_server" / f"{name}.ndjson", target)
    return folder


def test_cassettes_tell_which_cases_break(tmp_path: Path) -> None:
    cassettes = deck(tmp_path / "mine", "test_threads/v1_archive", "test_threads/v1_list", "test_v2/end_of_input_in_a_turn")
    bundle = edited(tmp_path / "mine.json", without("archiveConversation"))
    done = run("0.92.0", bundle, "--cassettes", cassettes, "--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert report["cassettes"] | {"folder": ""} == {"folder": "", "cases": 3, "hit": 1, "hits": {"test_threads/v1_archive": [0]}}
    assert report["findings"][0]["cases"] == ["test_threads/v1_archive"]
    assert pages.verdict(report).startswith("1 of your 3 cases is affected by 1 breaking change. In all, from ")


def test_what_nobody_uses_breaks_nobody(tmp_path: Path) -> None:
    cassettes = deck(tmp_path / "mine", "test_v2/end_of_input_in_a_turn")
    done = run("0.92.0", edited(tmp_path / "mine.json", without("archiveConversation")), "--cassettes", cassettes)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].startswith(
        "Your only case is not affected. In all, from 0.92.0 to mine.json, 1 change breaks"
    )


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("mine.ndjson", "There is no bundle file mine.ndjson: check the path, or name a Codex version such as 0.92.0."),
        ("0.92", "'0.92' is not a Codex version"),
        ("/dev/null", "/dev/null is a device: name a file or a folder."),
    ],
)
def test_what_is_not_a_bundle_is_refused(named: str, said: str) -> None:
    with pytest.raises(BundleError, match=re.escape(said)):
        bundles.bundle_of(named)


def test_no_cassettes_is_a_sentence(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        done = run("0.92.0", "0.92.0", "--cassettes", folder)
        assert done.exit_code == 2
        assert done.stderr.startswith("codex-replay: ")


def made(params: Any, result: Any) -> Bundle:
    """Return a protocol with one method, `go`."""
    union = {"properties": {"method": {"enum": ["go"]}, "params": {"$ref": "#/definitions/GoParams"}}, "required": ["params"]}
    definitions = {"ClientRequest": {"oneOf": [union]}, "GoParams": params, "GoResponse": result}
    return alone("made", json.dumps({"definitions": definitions}).encode())


def of(schema: Any, *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, "required": list(required)}


TEXT, WHOLE, NULL = {"type": "string"}, {"type": "integer", "format": "int64"}, {"type": "null"}
ONE, TWO = ({"type": "object", "properties": {"type": {"const": tag}}, "required": ["type"]} for tag in ("one", "two"))
OPEN, CLOSED = {"type": "object"}, {"type": "object", "additionalProperties": False}
MAP = {"type": "object", "additionalProperties": TEXT}
#: rule, sender, the schema before and after, a value that is hit by the change, one that is not.
USES: list[tuple[str, str, Any, Any, Any, Any]] = [
    ("property-gone", "client", of(TEXT), {"type": "object"}, {"x": "a"}, {}),
    ("property-gone", "server", of(TEXT), {"type": "object"}, {"x": "a"}, {}),
    ("property-new-required", "client", {"type": "object"}, of(TEXT, "x"), {}, {"x": "a"}),
    ("property-required", "client", of(TEXT), of(TEXT, "x"), {}, {"x": "a"}),
    ("property-optional", "server", of(TEXT, "x"), of(TEXT), {"x": "a"}, {}),
    ("value-gone", "client", of({"enum": ["a", "b"]}), of({"enum": ["b"]}), {"x": "a"}, {"x": "b"}),
    ("value-gone", "server", of({"enum": ["a", "b"]}), of({"enum": ["b"]}), {"x": "a"}, {"x": "b"}),
    ("variant-gone", "client", of({"oneOf": [ONE, TWO]}), of({"oneOf": [TWO]}), {"x": {"type": "one"}}, {"x": {"type": "two"}}),
    ("enum-closed", "client", of(TEXT), of({"enum": ["a"]}), {"x": "b"}, {"x": "a"}),
    ("enum-opened", "server", of({"enum": ["a"]}), of(TEXT), {"x": "a"}, {}),
    ("type-changed", "client", of(TEXT), of(WHOLE), {"x": "a"}, {"x": 1}),
    ("type-narrowed", "client", of({**WHOLE, "type": ["string", "integer"]}), of(WHOLE), {"x": "a"}, {"x": 1}),
    ("type-widened", "server", of(TEXT), of({"type": ["string", "integer"]}), {"x": "a"}, {}),
    ("null-gone", "client", of({"type": ["string", "null"]}), of(TEXT), {"x": None}, {"x": "a"}),
    ("null-new", "server", of(TEXT), of({"type": ["string", "null"]}), {"x": "a"}, {}),
    ("limits-narrowed", "client", of(WHOLE), of({"type": "integer", "format": "int32"}), {"x": 2**40}, {"x": 1}),
    ("limits-narrowed", "client", of(TEXT), of({"type": "string", "maxLength": 2}), {"x": "abc"}, {"x": "ab"}),
    ("limits-widened", "server", of({"type": "integer", "format": "int32"}), of(WHOLE), {"x": 1}, {}),
    ("keys-closed", "client", of(OPEN), of(CLOSED), {"x": {"other": 1}}, {"x": {}}),
    ("keys-closed", "client", of(TEXT), of(TEXT) | {"additionalProperties": False}, {"x": "a", "other": 1}, {"x": "a"}),
    ("map-gone", "client", of(MAP), of(OPEN), {"x": {"key": "a"}}, {"x": {}}),
    ("map-gone", "client", of(TEXT) | {"additionalProperties": TEXT}, of(TEXT), {"x": "a", "other": "b"}, {"x": "a"}),
    ("keyword-changed", "client", of({**TEXT, "not": {"const": "a"}}), of(TEXT), {"x": "a"}, {}),
]


@pytest.mark.parametrize(("rule", "sender", "before", "after", "hit", "spared"), USES, ids=[f"{row[0]}-{row[1]}" for row in USES])
def test_a_case_is_hit_where_it_uses_what_changed(rule: str, sender: str, before: Any, after: Any, hit: Any, spared: Any) -> None:
    plain = {"type": "object"}
    sides = [made(side, plain) if sender == "client" else made(plain, side) for side in (before, after)]
    drift = compare(*sides)
    assert [(each.rule.id, each.rule.sender, each.breaking) for each in drift.findings] == [(rule, sender, True)]
    for value, hits in ((hit, [0]), (spared, [])):
        params, result = (value, {}) if sender == "client" else ({}, value)
        messages: list[Any] = [("client", {"id": 7, "method": "go", "params": params}), ("server", {"id": 7, "result": result})]
        assert Usage(drift).hits(messages) == hits
        # Another method, another side, an error: none of its business.
        assert Usage(drift).hits([("client", {"id": 7, "method": "stay", "params": params}), messages[1]]) == []
        assert Usage(drift).hits([("server", messages[0][1]), ("client", messages[1][1])]) == []


def test_every_breaking_rule_has_a_test_of_use() -> None:
    assert {rule.id for rule in RULES.values() if rule.cls == "breaking"} == TESTS.keys()
    assert {row[0] for row in USES} | {"method-gone"} == TESTS.keys()


# --- bundles


@pytest.fixture
def binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for the installer: it "unpacks" a script that writes a bundle as Codex does. Counts its calls."""
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path / "cache"))
    said: dict[str, Any] = {"installs": 0, "fresh": True, "writes": True}

    def ensure(version: str, progress: Callable[[install.Step], None]) -> Path:
        said["installs"] += 1
        place = bundles.place_of(version)
        place.mkdir(parents=True, exist_ok=True)
        script = place / "codex"
        (tmp_path / "primary.json").write_bytes(PRIMARY)
        copy = f'mkdir -p "$4" && cp {tmp_path}/primary.json "$4/{data_tables.PRIMARY}"' if said["writes"] else "exit 3"
        script.write_text(f"#!/bin/sh\n{copy}\n")
        script.chmod(0o755)
        progress(install.Step("unpack" if said["fresh"] else "check", "Unpacking"))
        return script

    monkeypatch.setattr(install, "ensure", ensure)
    return said


def test_a_bundle_is_generated_once_and_its_binary_removed(binary: dict[str, Any]) -> None:
    told: list[str] = []
    for _ in range(2):
        assert len(bundles.bundle_of("0.55.0", told.append).methods("client-request")) == 55
    assert binary["installs"] == 1
    assert told == ["Unpacking", "Codex 0.55.0 writes its schemas"]
    assert not bundles.place_of("0.55.0").exists()


def test_a_binary_that_was_there_before_stays(binary: dict[str, Any]) -> None:
    binary["fresh"] = False
    bundles.bundle_of("0.55.0")
    assert bundles.place_of("0.55.0").exists()


def test_a_failure_leaves_no_binary_and_no_half_bundle(binary: dict[str, Any]) -> None:
    binary["writes"] = False
    with pytest.raises(BundleError, match="ended with status 3"):
        bundles.bundle_of("0.55.0")
    assert not bundles.place_of("0.55.0").exists()
    assert bundles.cached("0.55.0") is None
    assert not list(bundles.bundles_folder().iterdir())


def test_an_interrupt_removes_the_binary_too(binary: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(schema_gen, "generate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bundles.bundle_of("0.55.0")
    assert not bundles.place_of("0.55.0").exists()
    assert not list(bundles.bundles_folder().iterdir())


# --- the shapes that only real bundles have


def found(before: Any, after: Any) -> list[tuple[str, str]]:
    drift = compare(made(before, {"type": "object"}), made(after, {"type": "object"}))
    return [(each.change.rule, each.places[0].shown) for each in drift.findings]


def test_properties_beside_a_union_are_those_of_each_variant() -> None:
    beside = {"type": "object", "properties": {"x": TEXT}, "required": ["x"], "oneOf": [ONE, TWO]}
    each = [{**side, "properties": {**side["properties"], "x": TEXT}, "required": ["type", "x"]} for side in (ONE, TWO)]
    assert found(beside, {"oneOf": each}) == []
    assert found(beside, {"oneOf": [ONE, TWO]}) == [
        ("property-gone", "$.params(type=one).x"),
        ("property-gone", "$.params(type=two).x"),
    ]


def test_a_recursive_type_is_compared_and_ends() -> None:
    def tree(leaf: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"leaf": leaf, "more": {"type": "array", "items": {"$ref": "#/definitions/GoParams"}}},
        }

    assert found(tree(TEXT), tree(TEXT)) == []
    assert found(tree(TEXT), tree(WHOLE)) == [("type-changed", "$.params.leaf")]


def test_a_definition_that_is_nothing_but_itself_ends() -> None:
    itself = {"$ref": "#/definitions/GoParams"}
    assert found(itself, itself) == []


def test_the_report_counts_what_it_lists() -> None:
    report = as_json(compare(made(of(TEXT), of(TEXT)), made(of(WHOLE), of({"type": ["string", "null"]}))))
    assert (report["counts"]["breaking"], report["counts"]["additive"]) == (2, 0)
    assert {finding["class"] for finding in report["findings"]} == {"breaking"}


def test_the_page_on_drift_has_every_rule_as_it_is() -> None:
    page = (ROOT / "docs" / "drift.md").read_text()
    for rule in IDS:
        client, server = RULES[rule, "client"], RULES[rule, "server"]
        assert f"| `{rule}` | {client.cls} | {client.sentence} | {server.cls} | {server.sentence} |" in page
    assert page.count("\n| `") >= len(IDS)
