"""What is gone for all and what is only behind a capability: the law on planted removals, how it is told, whose bundle tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli import drift_pages
from harness.cli.drift import command
from harness.protocol import drift, experimental, schema_files
from harness.protocol.bundle import Bundle
from harness.protocol.drift_report import as_json
from harness.protocol.drift_use import Usage
from harness.shell import bundles
from harness.shell.codex import errors, install
from tests.drift_model import CHANGES, Protocol, Writer, planted

SEEDS = st.integers(0, 2**32)
GONE = ("method-gone", "property-gone", "value-gone", "variant-gone")
SAID = "capabilities.experimentalApi in initialize"
#: The changes by which something goes.
GOING = [name for name in CHANGES if any((made := planted(seed, name)) and made[2].rule in GONE for seed in range(30))]


def written(protocol: Protocol, random: Random, name: str = "new") -> Bundle:
    return Bundle(name, None, Writer(protocol, random).bundle())


def marked(seed: int, name: str, gated: bool) -> bool:
    """Plant a removal and hold the mark to it: on what moved behind the capability, and on nothing else. False without room."""
    made = planted(seed, name)
    if made is None:
        return False
    old, new, _ = made
    random = Random(seed)
    sides = written(old, random, "old"), written(new, random)
    beside = written(old if gated else new, random)
    found = drift.compare(*sides, lambda: (beside, ""))
    plain = drift.compare(*sides)
    assert [(each.rule, each.change) for each in found.findings] == [(each.rule, each.change) for each in plain.findings]
    assert (found.counts, found.uncompared) == (plain.counts, ())
    for each in found.findings:
        assert each.behind == ("experimentalApi" if gated and each.rule.id in GONE else "")
    return True


@pytest.mark.parametrize("name", GOING)
@settings(max_examples=5)
@given(seed=SEEDS)
def test_a_removal_is_behind_the_capability_if_the_experimental_bundle_has_it_still(name: str, seed: int) -> None:
    marked(seed, name, gated=True)


@pytest.mark.parametrize("name", GOING)
@settings(max_examples=5)
@given(seed=SEEDS)
def test_a_true_removal_is_not(name: str, seed: int) -> None:
    marked(seed, name, gated=False)


def test_removals_of_every_sort_are_planted() -> None:
    rules = {made[2].rule for name in GOING for seed in range(30) if (made := planted(seed, name))}
    assert rules == set(GONE)


@pytest.mark.parametrize(
    ("gated", "broken"), [(True, lambda old, beside, gone: []), (False, lambda old, beside, gone: gone)], ids=["never", "always"]
)
def test_a_mark_that_is_never_or_always_set_turns_the_law_red(
    gated: bool, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = next(seed for seed in range(60) if marked(seed, "property goes", gated))
    monkeypatch.setattr(drift, "_still_there", broken)
    with pytest.raises(AssertionError):
        marked(seed, "property goes", gated)


# --- in a small protocol


def made(params: dict[str, Any], *methods: str) -> Bundle:
    """Return a protocol whose methods (`go` and others) share one type of params, and which knows the capability."""
    capable = {"properties": {"capabilities": {"anyOf": [{"$ref": "#/definitions/Capabilities"}, {"type": "null"}]}}}
    opening = {"properties": {"method": {"enum": ["initialize"]}, "params": {"type": "object", **capable}}}
    members = [
        {"properties": {"method": {"enum": [name]}, "params": {"$ref": "#/definitions/GoParams"}}, "required": ["params"]}
        for name in ("go", *methods)
    ]
    definitions = {
        "ClientRequest": {"oneOf": [opening, *members]},
        "Capabilities": {"type": "object", "properties": {"experimentalApi": {"type": "boolean"}}},
        "GoParams": params,
        "GoResponse": {"type": "object"},
    }
    return Bundle("made", None, json.dumps({"definitions": definitions}).encode())


def of(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in ("kept", *names)}}


def test_of_two_properties_one_is_gone_and_one_is_gated() -> None:
    found = drift.compare(made(of("a", "b")), made(of()), lambda: (made(of("b")), ""))
    assert {each.change.what: each.behind for each in found.findings} == {"a": "", "b": "experimentalApi"}
    report = as_json(found)
    assert report["counts"] | {"from": 0, "to": 0} == {"from": 0, "to": 0, "breaking": 2, "additive": 0, "behind": 1}
    assert [each.get("behind") for each in report["findings"]] == [None, "experimentalApi"]
    gone, gated = (row.change for row in drift_pages.rows(report, "breaking"))
    assert gone == "property gone: a (string)"
    assert gated == f"property gone: b (string); now only for a client that says {SAID}"
    assert drift_pages.verdict(report) == (
        f"From made to made, 2 changes break clients (1 of them only those that do not say {SAID}), 0 add to what there is."
    )
    assert gated in drift_pages.markdown(report)
    assert report["findings"][1]["sentence"] == f"Only a client that says {SAID} may send it; any other is refused."


def test_what_one_of_its_places_has_lost_for_all_is_gone() -> None:
    old, new = made(of("a"), "went"), made(of(), "went")
    (finding,) = drift.compare(old, new, lambda: (made(of("a"), "went"), "")).findings
    assert {place.method for place in finding.places} == {"go", "went"}
    assert finding.behind == "experimentalApi"
    document = json.loads(json.dumps(made(of("a"), "went").primary))
    document["definitions"]["ClientRequest"]["oneOf"][2]["properties"]["params"] = of()
    beside = Bundle("made", None, json.dumps(document).encode())
    (finding,) = drift.compare(old, new, lambda: (beside, "")).findings
    assert finding.behind == ""


def test_the_experimental_bundle_is_asked_for_only_when_something_is_gone() -> None:
    asked: list[bool] = []

    def beside() -> tuple[Bundle | None, str]:
        asked.append(True)
        return None, ""

    required = {**of("a"), "required": ["a"]}
    assert [each.rule.id for each in drift.compare(made(of("a")), made(required), beside).findings] == ["property-required"]
    assert drift.compare(made(of()), made(of("a"), "more"), beside).findings
    assert not asked
    assert drift.compare(made(of("a")), made(of()), beside).findings
    assert asked == [True]


def test_a_bundle_that_cannot_be_had_is_said() -> None:
    found = drift.compare(made(of("a")), made(of()), lambda: (None, "There is no network."))
    assert [each.behind for each in found.findings] == [""]
    assert found.uncompared[-1] == (
        "Whether what is gone is still there for a client that says capabilities.experimentalApi is not known: "
        "There is no network."
    )


SENT: list[Any] = [("client", {"id": 1, "method": "go", "params": {"b": "x"}})]


@pytest.mark.parametrize(
    ("capabilities", "hit"),
    [({"experimentalApi": True}, []), ({"experimentalApi": False}, [0]), ({}, [0]), (None, [0]), ("x", [0])],
)
def test_who_says_the_capability_is_not_hit_by_what_is_behind_it(capabilities: Any, hit: list[int]) -> None:
    opening = ("client", {"id": 0, "method": "initialize", "params": {"capabilities": capabilities}})
    gated = drift.compare(made(of("b")), made(of()), lambda: (made(of("b")), ""))
    assert Usage(gated).hits([opening, *SENT]) == hit
    assert Usage(drift.compare(made(of("b")), made(of()))).hits([opening, *SENT]) == [0]
    assert Usage(gated).hits([("server", opening[1]), *SENT]) == [0]


# --- the command


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments])


def edited(path: Path, *dropped: str) -> Path:
    """Write the 0.92.0 primary file, some properties of ThreadStartParams left out."""
    document = json.loads(dict(schema_files.schema_files("0.92.0"))[schema_files.PRIMARY])
    for name in dropped:
        del document["definitions"]["v2"]["ThreadStartParams"]["properties"][name]
    path.write_text(json.dumps(document))
    return path


def test_an_experimental_bundle_of_ones_own_can_be_named(tmp_path: Path) -> None:
    mine, beside = edited(tmp_path / "a.json", "dynamicTools", "cwd"), edited(tmp_path / "b.json", "cwd")
    for options, behind in (((), [None, None]), (("--experimental", beside), [None, "experimentalApi"])):
        done = run("0.92.0", mine, "--json", *options)
        assert done.exit_code == 1
        found = json.loads(done.stdout)["findings"]
        assert [(each["what"], each.get("behind")) for each in found] == [("cwd", behind[0]), ("dynamicTools", behind[1])]


def test_what_is_no_experimental_bundle_is_refused(tmp_path: Path) -> None:
    mine = edited(tmp_path / "a.json", "cwd")
    (tmp_path / "b.json").write_text("[]")
    done = run("0.92.0", mine, "--experimental", tmp_path / "b.json")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert run("0.92.0", mine, "--experimental", tmp_path / "none.json").exit_code == 2
    assert "--behaviour compares none" in run("0.92.0", "0.92.0", "--behaviour", "--experimental", mine).stderr


def test_with_cassettes_only_what_hits_them_is_listed_and_the_rest_is_counted(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent / "cassettes" / "app_server" / "test_dynamic_tools"
    old, new = edited(tmp_path / "a.json", "cwd"), edited(tmp_path / "b.json", "dynamicTools", "model")
    report = json.loads(run(old, new, "--cassettes", root / "call.ndjson", "--json").stdout)
    assert [(each["what"], each.get("cases")) for each in report["findings"]] == [
        ("dynamicTools", ["call"]),
        ("model", []),
        ("cwd", None),
    ]
    assert [row.path for cls in ("breaking", "additive") for row in drift_pages.rows(report, cls)] == ["$.params.dynamicTools"]
    shown = run(old, new, "--cassettes", root / "call.ndjson").stdout
    assert "additive" not in shown
    assert "2 changes break clients, 1 adds to what there is, and 1 of them is used there." in " ".join(shown.split())


# --- the bundle of a version


@pytest.fixture
def binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for the installer: a script that writes one bundle, and another one with --experimental."""
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path / "cache"))
    said: dict[str, Any] = {"installs": 0, "capable": True, "offline": False}

    def ensure(version: str, progress: Callable[[install.Step], None]) -> Path:
        if said["offline"]:
            raise errors.CodexInstallError("There is no network.")
        said["installs"] += 1
        document = json.loads(edited(tmp_path / "with.json").read_text())
        initialize = document["definitions"]["InitializeParams"]["properties"]
        if said["capable"]:
            initialize["capabilities"] = {"type": "object", "properties": {"experimentalApi": {"type": "boolean"}}}
        (tmp_path / "with.json").write_text(json.dumps(document))
        del document["definitions"]["v2"]["ThreadStartParams"]["properties"]["dynamicTools"]
        (tmp_path / "plain.json").write_text(json.dumps(document))
        place = bundles.place_of(version)
        place.mkdir(parents=True, exist_ok=True)
        script = place / "codex"
        script.write_text(
            f'#!/bin/sh\nwhich=plain; [ "$5" = --experimental ] && which=with\n'
            f'mkdir -p "$4" && cp {tmp_path}/$which.json "$4/{schema_files.PRIMARY}"\n'
        )
        script.chmod(0o755)
        progress(install.Step("unpack", "Unpacking"))
        return script

    monkeypatch.setattr(install, "ensure", ensure)
    return said


def gated(*arguments: str) -> list[tuple[str, str | None]]:
    done = run("0.92.0", "0.55.0", "--json", *arguments)
    return [(each["what"], each.get("behind")) for each in json.loads(done.stdout)["findings"] if each["class"] == "breaking"]


def test_both_bundles_are_written_while_the_binary_is_there(binary: dict[str, Any]) -> None:
    for _ in range(2):
        assert gated() == [("dynamicTools", "experimentalApi")]
    assert binary["installs"] == 1
    assert bundles.cached("0.55.0") != bundles.cached("0.55.0", experimental=True) is not None
    assert not bundles.place_of("0.55.0").exists()


def test_a_version_without_the_capability_has_no_experimental_bundle(binary: dict[str, Any]) -> None:
    binary["capable"] = False
    assert gated() == [("dynamicTools", None)]
    assert binary["installs"] == 1
    assert bundles.cached("0.55.0", experimental=True) is None


def test_a_bundle_kept_from_before_gets_its_experimental_one_when_it_is_asked_for(binary: dict[str, Any]) -> None:
    bundles.bundle_of("0.55.0")
    drop(bundles.bundles_folder(experimental=True))
    binary["offline"] = True
    done = run("0.92.0", "0.55.0", "--json")
    assert done.exit_code == 1  # what is known is told all the same
    assert json.loads(done.stdout)["uncompared"][-1].endswith("is not known: There is no network.")
    binary["offline"] = False
    assert gated() == [("dynamicTools", "experimentalApi")]
    assert binary["installs"] == 2


def drop(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()


# --- the capability


def test_a_bundle_tells_whether_it_knows_the_capability() -> None:
    assert experimental.declares(made(of()))
    assert not experimental.declares(bundles.bundle_of("0.92.0"))
