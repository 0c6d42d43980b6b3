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

from codex_replay.cli.drift import pages
from codex_replay.cli.drift.command import command
from codex_replay.protocol import data_tables
from codex_replay.protocol.drift import clients, compare, experimental
from codex_replay.protocol.drift.findings import Drift
from codex_replay.protocol.drift.report import as_json
from codex_replay.protocol.drift.users import Usage
from codex_replay.protocol.schema.bundle import Bundle, alone
from codex_replay.shell.codex import bundles, errors, install
from tests.protocol.drift.drift_model import CHANGES, Protocol, Writer, planted

SEEDS = st.integers(0, 2**32)
GONE = ("method-gone", "property-gone", "value-gone", "variant-gone")
SAID = "capabilities.experimentalApi in initialize"
#: The changes by which something goes, except for a null, which only a type loses.
GOING = [name for name in CHANGES if name.endswith((" goes", " go")) and name != "null goes"]


def written(protocol: Protocol, random: Random, name: str = "new") -> Bundle:
    return alone(name, Writer(protocol, random).bundle())


def marked(seed: int, name: str, gated: bool) -> bool:
    """Plant a removal and hold the mark to it: on what moved behind the capability, and on nothing else. False without room."""
    made = planted(seed, name)
    if made is None:
        return False
    old, new, _ = made
    random = Random(seed)
    sides = written(old, random, "old"), written(new, random)
    beside = written(old if gated else new, random)
    found = compare.compare(*sides, lambda plain: (beside if plain is sides[1] else None, ""))
    plain = compare.compare(*sides)
    assert {(each.rule, each.change) for each in found.findings} == {(each.rule, each.change) for each in plain.findings}
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
    found = {(name, made[2].rule) for name in CHANGES for seed in range(30) if (made := planted(seed, name))}
    assert {name for name, rule in found if rule in GONE} == set(GOING)
    assert {rule for name, rule in found if name in GOING} == set(GONE)


@pytest.mark.parametrize(
    ("gated", "broken"), [(True, lambda *arguments: True), (False, lambda *arguments: False)], ids=["never", "always"]
)
def test_a_mark_that_is_never_or_always_set_turns_the_law_red(
    gated: bool, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = next(seed for seed in range(60) if marked(seed, "property goes", gated))
    monkeypatch.setattr(clients._Other, "has", broken)
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
    return alone("made", json.dumps({"definitions": definitions}).encode())


def of(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in ("kept", *names)}}


def gating(old: Bundle, new: Bundle, after: Bundle, before: Bundle | None = None) -> Drift:
    """Compare two bundles of which the new one has the experimental `after`, and the old one `before` if it has one."""
    return compare.compare(old, new, lambda plain: (after if plain is new else before, ""))


COUNTS = {"breaking": 0, "additive": 0, "behind": 0, "without": 0, "with": 0}


def test_of_two_properties_one_is_gone_and_one_is_gated() -> None:
    found = gating(made(of("a", "b")), made(of()), made(of("b")))
    assert {each.change.what: each.behind for each in found.findings} == {"a": "", "b": "experimentalApi"}
    report = as_json(found)
    assert report["counts"] | {"from": 0, "to": 0} == {"from": 0, "to": 0, **COUNTS, "breaking": 2, "behind": 1}
    assert [each.get("behind") for each in report["findings"]] == [None, "experimentalApi"]
    gone, gated = (row.change for row in pages.rows(report, "breaking"))
    assert gone == "property gone: a (string)"
    assert gated == f"property gone: b (string); now only for clients that send {SAID}"
    assert pages.verdict(report) == (
        f"From made to made, 2 changes break clients (1 of them breaks only clients that do not send {SAID}). "
        "0 changes add something new."
    )
    assert gated in pages.markdown(report)
    assert report["findings"][1]["sentence"] == (
        f"Only a client that sends {SAID} may send this part; the server refuses it from other clients."
    )


def test_what_changes_inside_of_what_is_gated_is_found_for_those_who_say_it() -> None:
    before, after = {**of(), "required": ["kept"]}, of("more")
    after["properties"]["kept"] = {"type": "boolean"}
    old, new = made(of("a")), made(of())
    methods = [made(params, "go/gated") for params in (before, after)]
    found = compare.compare(old, old, lambda plain: (methods[0], ""))  # one bundle is both sides, so nothing changed
    assert found.findings == ()
    found = gating(old, new, methods[1], methods[0])
    assert [(each.clients, each.rule.id, each.rule.cls, each.change.what) for each in found.findings] == [
        ("without", "property-gone", "breaking", "a"),
        ("with", "type-changed", "breaking", ""),
        ("with", "property-optional", "additive", "kept"),
        ("with", "property-new", "additive", "more"),
    ]
    report = as_json(found)
    assert report["counts"] | {"from": 0, "to": 0} == {**COUNTS, "from": 0, "to": 0, "breaking": 2, "additive": 2} | {
        "behind": 1,
        "with": 1,
    }
    assert [next(key for key in ("behind", "with") if key in each) for each in report["findings"]] == ["behind", *["with"] * 3]
    assert {place["method"] for place in report["findings"][1]["places"]} == {"go", "go/gated"}
    mark = f"noticed only by clients that send {SAID}"
    rows = [row.change for cls in ("breaking", "additive") for row in pages.rows(report, cls)]
    assert [row.endswith(f"; {mark}") for row in rows] == [False, True, True, True]
    assert pages.markdown(report).count(mark) == 3
    assert pages.verdict(report) == (
        f"From made to made, 2 changes break clients (1 of them breaks only clients that do not send {SAID}, "
        "1 of them breaks only clients that send it). "
        f"2 changes add something new (2 of them are only for clients that send {SAID})."
    )


def test_what_comes_out_from_behind_the_capability_is_noticed_by_those_who_do_not_say_it() -> None:
    found = gating(made(of()), made(of("a"), "more"), made(of("a"), "more"), made(of("a"), "more"))
    assert [(each.clients, each.rule.id, each.behind) for each in found.findings] == [
        ("without", "method-new", ""),
        ("without", "property-new", ""),
    ]
    report = as_json(found)
    assert [each.get("without") for each in report["findings"]] == ["experimentalApi"] * 2
    assert report["counts"] | {"from": 0, "to": 0} == {**COUNTS, "from": 0, "to": 0, "additive": 2}  # of the breaking ones
    mark = f"noticed only by clients that do not send {SAID}"
    assert [row.change.endswith(f"; {mark}") for row in pages.rows(report, "additive")] == [True, True]
    assert "2 changes add something new (2 of them are only for clients that do not send" in pages.verdict(report)


def test_what_goes_for_all_at_one_place_and_is_gated_at_another_is_two_findings() -> None:
    old, new = made(of("a"), "went"), made(of(), "went")
    (finding,) = gating(old, new, made(of("a"), "went")).findings
    assert {place.method for place in finding.places} == {"go", "went"}
    assert finding.behind == "experimentalApi"
    document = json.loads(json.dumps(made(of("a"), "went").primary))
    document["definitions"]["ClientRequest"]["oneOf"][2]["properties"]["params"] = of()
    beside = alone("made", json.dumps(document).encode())
    found = {place.method: each.behind for each in gating(old, new, beside).findings for place in each.places}
    assert found == {"go": "experimentalApi", "went": ""}


def union(*variants: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"item": {"oneOf": [*variants]}}}


def variant(name: str, *properties: str) -> dict[str, Any]:
    return {**of(*properties), "properties": {**of(*properties)["properties"], "type": {"const": name}}, "required": ["type"]}


def test_a_union_all_other_variants_of_which_are_gated_is_the_same_union() -> None:
    old, new = (made(union(variant("x", *names))) for names in (("a",), ()))
    before, after = (made(union(variant("x", *names), variant("y", "a"))) for names in (("a",), ()))
    (finding,) = gating(old, new, after, before).findings
    assert (finding.clients, [place.shown for place in finding.places]) == ("all", ["$.params.item.a"])


def test_a_variant_without_a_name_is_gone_for_all_though_more_of_it_is_gated() -> None:
    loose = {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "string"}}, "required": ["b"]}
    more = {**loose, "properties": {**loose["properties"], "d": {"type": "string"}}}
    old, new = made(union(of("a"), loose)), made(union(of("a")))
    (finding,) = gating(old, new, made(union(of("a"))), made(union(of("a"), more))).findings
    assert (finding.rule.id, finding.clients) == ("variant-gone", "all")


def test_an_object_that_was_closed_is_closed_for_all_though_more_of_it_is_gated() -> None:
    old, new, before, after = (made({**of(*names), **extra}) for names in ((), ("b",)) for extra in ({}, CLOSED))
    (finding,) = gating(old, new, after, before).findings
    assert (finding.rule.id, finding.clients) == ("keys-closed", "all")


CLOSED = {"additionalProperties": False}


def test_each_side_is_asked_for_its_experimental_bundle() -> None:
    old, new = made(of("a")), made(of())
    asked: list[Bundle] = []
    compare.compare(old, new, lambda plain: (asked.append(plain), (None, ""))[1])
    assert asked == [new, old]


def test_a_bundle_that_cannot_be_had_is_said() -> None:
    old, new = made(of("a")), made(of())
    found = compare.compare(old, new, lambda plain: (None, "There is no network."))
    assert [each.behind for each in found.findings] == [""]
    assert found.uncompared[-1] == (
        "The changes for a client that sends capabilities.experimentalApi are unknown, "
        "and so is whether it can still use the removed parts: "
        "There is no network."
    )


def test_without_the_old_one_it_is_told_what_is_gated_and_not_what_came() -> None:
    old, new, after = made(of("a")), made(of()), made(of("a", "b"), "perhaps/new")
    found = compare.compare(old, new, lambda plain: (after, "") if plain is new else (None, "There is no network."))
    assert [(each.change.what, each.behind) for each in found.findings] == [("a", "experimentalApi")]
    assert found.uncompared[-1] == (
        "The further changes for a client that sends capabilities.experimentalApi are unknown: There is no network."
    )


def test_what_cannot_be_compared_among_what_is_gated_counts_as_gone() -> None:
    old, new = made(of(), "other"), made(of(), "other")
    whole = json.loads(json.dumps(old.primary))
    whole["definitions"]["GoResponse"] = of("a")
    lacking = json.loads(json.dumps(whole))
    del lacking["definitions"]["GoResponse"]
    before, after = (alone("made", json.dumps(each).encode()) for each in (whole, lacking))
    found = gating(before, new, after)
    assert {(each.rule.id, each.change.what, each.clients) for each in found.findings} == {
        ("property-gone", "a", "all"),
        ("property-gone", "kept", "all"),
    }
    assert any(each.startswith("The result of go was not compared") for each in found.uncompared)
    del whole["definitions"]["ClientRequest"]
    found = gating(made(of("a")), new, alone("part", json.dumps(whole).encode()))
    assert {each.clients for each in found.findings if each.rule.id == "property-gone"} == {"all"}


SENT: list[Any] = [("client", {"id": 1, "method": "go", "params": {"b": "x"}})]


@pytest.mark.parametrize(
    ("capabilities", "hit"),
    [({"experimentalApi": True}, []), ({"experimentalApi": False}, [0]), ({}, [0]), (None, [0]), ("x", [0])],
)
def test_who_says_the_capability_is_not_hit_by_what_is_behind_it(capabilities: Any, hit: list[int]) -> None:
    opening = ("client", {"id": 0, "method": "initialize", "params": {"capabilities": capabilities}})
    gated = gating(made(of("b")), made(of()), made(of("b")))
    assert Usage(gated).hits([opening, *SENT]) == hit
    assert Usage(compare.compare(made(of("b")), made(of()))).hits([opening, *SENT]) == [0]
    assert Usage(gated).hits([("server", opening[1]), *SENT]) == [0]
    inside = gating(made(of()), made(of()), made(of()), made(of("b")))
    assert Usage(inside).hits([opening, *SENT]) == ([] if hit else [0])
    assert Usage(inside).hits(SENT) == []


# --- the command


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments])


def edited(path: Path, *dropped: str) -> Path:
    """Write the 0.92.0 primary file, some properties of ThreadStartParams left out."""
    document = json.loads(data_tables.schema("0.92.0")[data_tables.PRIMARY])
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


def capable(path: Path, *dropped: str) -> Path:
    """Write the same of a version that knows the capability."""
    document = json.loads(edited(path, *dropped).read_text())
    known = {"type": "object", "properties": {"experimentalApi": {"type": "boolean"}}}
    document["definitions"]["InitializeParams"]["properties"]["capabilities"] = known
    path.write_text(json.dumps(document))
    return path


def test_of_bundles_of_ones_own_both_experimental_ones_can_be_named(tmp_path: Path) -> None:
    old, new = capable(tmp_path / "a.json", "dynamicTools", "cwd"), capable(tmp_path / "b.json", "dynamicTools", "cwd")
    before, after = capable(tmp_path / "c.json", "cwd"), capable(tmp_path / "d.json", "dynamicTools")
    done = run(old, new, "--json", "--experimental", after, "--experimental-from", before)
    found = json.loads(done.stdout)
    assert [(each["rule"], each["what"], each["with"]) for each in found["findings"]] == [
        ("property-gone", "dynamicTools", "experimentalApi"),
        ("property-new", "cwd", "experimentalApi"),
    ]
    assert (done.exit_code, found["uncompared"]) == (1, [])
    done = run(old, new, "--json", "--experimental", after)
    assert (done.exit_code, json.loads(done.stdout)["findings"]) == (0, [])
    assert json.loads(done.stdout)["uncompared"][0].endswith("is missing; name it with --experimental-from.")
    done = run(old, new, "--json")
    assert json.loads(done.stdout)["uncompared"][0].endswith("is missing; name it with --experimental.")


def test_what_is_no_experimental_bundle_is_refused(tmp_path: Path) -> None:
    mine = edited(tmp_path / "a.json", "cwd")
    (tmp_path / "b.json").write_text("[]")
    done = run("0.92.0", mine, "--experimental", tmp_path / "b.json")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert run("0.92.0", mine, "--experimental", tmp_path / "none.json").exit_code == 2
    for option in ("--experimental", "--experimental-from"):
        said = run("0.92.0", "0.92.0", "--behaviour", option, mine).stderr
        assert said.startswith(f"codex-replay: {option} names a bundle, but --behaviour does not compare bundles")


def test_with_cassettes_only_what_hits_them_is_listed_and_the_rest_is_counted(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3] / "cassettes" / "app_server" / "test_dynamic_tools"
    old, new = edited(tmp_path / "a.json", "cwd"), edited(tmp_path / "b.json", "dynamicTools", "model")
    report = json.loads(run(old, new, "--cassettes", root / "call.ndjson", "--json").stdout)
    assert [(each["what"], each.get("cases")) for each in report["findings"]] == [
        ("dynamicTools", ["call"]),
        ("model", []),
        ("cwd", None),
    ]
    assert [row.path for cls in ("breaking", "additive") for row in pages.rows(report, cls)] == ["$.params.dynamicTools"]
    shown = run(old, new, "--cassettes", root / "call.ndjson").stdout
    assert "additive" not in shown
    changes = "In all, from a.json to b.json, 2 changes break clients. 1 change adds something new."
    verdict = f"Your only case is affected by 1 breaking change. {changes}"
    assert shown.splitlines()[0] == verdict


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
            f'mkdir -p "$4" && cp {tmp_path}/$which.json "$4/{data_tables.PRIMARY}"\n'
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
    assert json.loads(done.stdout)["uncompared"][-1].endswith(": There is no network.")
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
