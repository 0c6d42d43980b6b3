"""The report's page as a file: whole, the same each time, and nothing in it that its data could break out of.

What a reader sees of it is tested in tests/browser.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import subprocess
import zlib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from report_sample import HOSTILE, behaviour_of, case, conversation, drift_of, everything, frame, hostile, report, story

from codex_replay.cli.cassette.group import group
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.plugin.reporting.report import taken_in
from codex_replay.report.cassette_trace import cassette_trace
from codex_replay.report.data import Report, Trace
from codex_replay.report.page import build
from codex_replay.shell.cassettes.file import CassetteReader, CassetteWriter

ROOT = Path(__file__).resolve().parents[2]
TEXT_TURN = ROOT / "cassettes" / "app_server" / "test_v2" / "text_turn.ndjson"


class Page(HTMLParser):
    """What an HTML parser makes of a page: its elements in order, and what stands in the scripts and styles."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self._open = False
        self.feed(path.read_text("ascii"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside.append("")
        self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.inside[-1] += data

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attrs, text) for (name, attrs), text in zip(self.elements, self.inside, strict=True) if name == tag]

    @property
    def data(self) -> Any:
        return json.loads(next(text for attrs, text in self.of("script") if attrs.get("id") == "data"))

    def chunk(self, name: str) -> Any:
        packed = next((text for attrs, text in self.of("script") if attrs.get("id") == name), None)
        return None if packed is None else json.loads(zlib.decompress(base64.b64decode(packed)))


def written(folder: Path, sample: tuple[Any, Any], name: str = "report.html") -> Page:
    return Page(build.write_html(*sample, folder / name))


# ------------------------------------------------------------------------------------------------------------- the data


def test_everything_of_the_report_is_in_the_page(tmp_path: Path) -> None:
    sample, stories = everything()
    shown = written(tmp_path, (sample, stories))
    data = shown.data
    plain = [key for key in sample if key not in ("cases", "drift")]
    assert {key: data[key] for key in plain} == {key: sample[key] for key in plain}  # type: ignore[literal-required]
    assert shown.chunk("d0") == sample["drift"]
    assert data["drift"] == {key: sample["drift"][key] for key in ("drift", "from", "to", "counts")}
    assert [each["id"] for each in data["cases"]] == [each["id"] for each in sample["cases"]]
    blocks = range(0, len(sample["cases"]), build.BLOCK)
    assert [each for i in blocks for each in shown.chunk(f"c{i // build.BLOCK}")] == sample["cases"]
    told = {each["case"]: each for each in stories}
    for light in data["cases"]:
        if "story" in light:
            assert shown.chunk(f"s{light['story']}") == told.get(light["id"])


def of_a_run(cases: int, outcome: str) -> tuple[Report, Iterator[Trace]]:
    """As many cases as all suites have, each with frames that are as long, when they are packed, as those of an ordinary case."""
    chance = random.Random(1)
    names = [case(f"case_{i}", module=f"test_{i % 40}", outcome=outcome, story=True) for i in range(cases)]

    def told(key: str) -> Trace:
        return story(
            key, [frame(n, {"method": "item/completed", "params": {"id": f"{chance.getrandbits(800):x}"}}) for n in range(24)]
        )

    return report(names), (told(each["id"]) for each in names)


def test_a_green_run_of_all_suites_is_a_page_of_less_than_4_mb(tmp_path: Path) -> None:
    green = build.write_html(*of_a_run(2800, "passed"), tmp_path / "green.html").stat().st_size
    assert green < 4e6
    assert build.write_html(*of_a_run(2800, "passed"), tmp_path / "full.html", full=True).stat().st_size > 4e6


def test_each_failed_case_has_its_frames_and_each_module_a_passed_one(tmp_path: Path) -> None:
    sample, stories = of_a_run(400, "passed")
    for each in sample["cases"][100:400:3]:
        each["outcome"] = "failed"
    shown = written(tmp_path, (sample, stories))
    lights = shown.data["cases"]
    having = [light for light in lights if light["story"] >= 0]
    assert {light["module"] for light in having if light["outcome"] == "passed"} == {f"test_{i}" for i in range(40)}
    assert sum(light["outcome"] == "failed" for light in having) == 100
    assert sum(light["outcome"] == "passed" for light in having) == build.PASSED
    for light in having:
        assert shown.chunk(f"s{light['story']}")["case"] == light["id"]


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    build.write_html(*everything(), tmp_path / "a.html")
    build.write_html(*everything(), tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_stories_are_taken_one_at_a_time_and_only_those_of_the_cases(tmp_path: Path) -> None:
    sample = report([case("a", story="k"), case("b", story="k"), case("c", story="not there")])
    stories = [story("of nobody", []), story("k", [frame(1, "first")]), story("k", [frame(1, "second")])]
    shown = written(tmp_path, (sample, iter(stories)))
    assert [each["story"] for each in shown.data["cases"]] == [0, 0, 1]
    assert shown.chunk("s0")["frames"][0]["text"] == "first"
    assert shown.chunk("s1") is None
    assert "of nobody" not in "".join(shown.inside)


def test_numbers_that_json_does_not_know_do_not_make_a_page_that_no_browser_reads(tmp_path: Path) -> None:
    shown = written(tmp_path, (report([], strength={"ratio": float("nan"), "list": [float("inf")]}), []))
    assert shown.data["strength"] == {"ratio": "nan", "list": ["inf"]}


DEEP = "[" * 200 + "]" * 200


@pytest.mark.parametrize(
    "left",
    [b"", b'{"drift": 1, "findings": [', b"[]", b'"text"', b"\xff\xfe{}", b"[" * 100_000, f'{{"a": {DEEP}}}'.encode()],
    ids=["empty", "cut", "a list", "a text", "no UTF-8", "endless", "deep"],
)
def test_a_file_beside_the_report_that_is_damaged_is_told_and_not_passed_over(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "drift.json").write_bytes(left)
    told = taken_in(tmp_path / "drift.json")
    assert told == {"unreadable": "drift.json in the report folder is damaged: it is not JSON of a codex-replay command."}
    assert written(tmp_path, (report([], drift=told), [])).data["drift"] == {}


def test_what_lies_beside_the_report_is_taken_in_as_it_is(tmp_path: Path) -> None:
    assert taken_in(tmp_path / "drift.json") is None
    (tmp_path / "drift.json").mkdir()
    assert list(taken_in(tmp_path / "drift.json") or ()) == ["unreadable"]
    left = tmp_path / "strength.json"
    left.write_text('{"a": [1, NaN, {"b": 1e999}], "c": "\\ud800"}')
    assert taken_in(left) == {"a": [1, "nan", {"b": "inf"}], "c": "\ud800"}


def test_a_page_that_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    build.write_html(*everything(), tmp_path / "report.html")
    before = (tmp_path / "report.html").read_bytes()

    def broken() -> Any:
        yield conversation("app_server/test_turns/red")
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        build.write_html(everything()[0], broken(), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


# ---------------------------------------------------------------------------------------------------------- untrusted


def test_hostile_data_add_no_element_and_change_no_text_of_the_page(tmp_path: Path) -> None:
    """The parser sees the same page as with harmless data: only what stands in the data's own elements differs."""
    bad, good = written(tmp_path, hostile(), "bad.html"), written(tmp_path, hostile("calm"), "good.html")
    assert bad.elements == good.elements
    ours = [i for i, (tag, attrs) in enumerate(bad.elements) if tag != "title" and attrs.get("id") is None]
    assert [bad.inside[i] for i in ours] == [good.inside[i] for i in ours]


def test_the_parser_would_see_data_that_break_out(tmp_path: Path) -> None:
    good = build.write_html(*hostile("calm"), tmp_path / "good.html")
    broken = tmp_path / "broken.html"
    broken.write_text(good.read_text().replace('"title":"calm"', '"title":"</script><b>calm"', 1))
    assert Page(broken).elements != Page(good).elements


def test_hostile_data_come_back_as_they_were(tmp_path: Path) -> None:
    sample, stories = hostile()
    shown = written(tmp_path, (sample, stories))
    assert shown.data["command"] == HOSTILE
    assert shown.chunk("c0") == sample["cases"]
    assert shown.chunk("s0") == stories[0]


def test_the_data_are_plain_ascii_that_says_nothing_to_a_parser(tmp_path: Path) -> None:
    path = build.write_html(*hostile(), tmp_path / "page.html")
    text = path.read_bytes().decode("ascii")
    shown = Page(path)
    between = text.split('id="data">', 1)[1].split("</script>", 1)[0]
    assert re.search(r"[<>&\x00-\x1f\x7f]", between) is None
    for attrs, inside in shown.of("script"):
        if attrs.get("type") == "application/octet-stream":
            assert re.fullmatch(r"[A-Za-z0-9+/]+=*", inside)


def test_the_policy_allows_the_one_script_and_the_one_style_sheet_and_no_network(tmp_path: Path) -> None:
    shown = written(tmp_path, everything())
    policy = next(attrs["content"] or "" for attrs, _ in shown.of("meta") if "http-equiv" in attrs)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    code = [text for attrs, text in shown.of("script") if "type" not in attrs]
    sheets = [text for _, text in shown.of("style")]
    assert len(code) == len(sheets) == 1
    for rule, text in (("script-src", code[0]), ("style-src", sheets[0])):
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert rules["trusted-types"] == "'none'"
    assert "connect-src" not in rules
    assert not {"http:", "https:", "*", "'unsafe-inline'", "'unsafe-eval'"} & set(policy.replace(";", " ").split())


def test_nothing_in_the_page_comes_from_elsewhere(tmp_path: Path) -> None:
    shown = written(tmp_path, everything())
    places = [value for _, attrs in shown.elements for name, value in attrs.items() if name in ("src", "href", "action", "data")]
    assert sorted(set(places)) == ["#main", "data:,"]
    assert "url(" not in shown.of("style")[0][1]
    assert "@import" not in shown.of("style")[0][1]


#: What makes markup or code of a string, or speaks to the network.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|setHTML|"
    r"\beval\b|\bFunction\(|setTimeout\(\s*[\"'`]|javascript:|"
    r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|\bimport\b|https?://|localStorage|document\.cookie"
)


@pytest.mark.parametrize("name", [*build.SCRIPTS])
def test_the_script_makes_no_markup_of_strings_and_knows_no_network(name: str) -> None:
    text = (ROOT / "harness" / "codex_replay" / "report" / "page" / name).read_text("ascii")
    assert FORBIDDEN.findall(text) == []
    assert "</script" not in text.lower()
    assert "<!--" not in text


@pytest.mark.parametrize(
    "line", ["node.innerHTML = text;", "fetch('x')", "new Function(text)", "setTimeout('x', 1)", "import('./x.js')"]
)
def test_a_script_that_did_would_be_seen(line: str) -> None:
    assert FORBIDDEN.findall(line)


def test_every_part_of_the_page_is_used() -> None:
    there = {
        path.name
        for path in (ROOT / "harness" / "codex_replay" / "report" / "page").iterdir()
        if path.suffix in (".js", ".css", ".html")
    }
    assert there == {*build.SCRIPTS, "page.html", "page.css"}


def test_the_gate_looks_at_the_page_in_a_browser() -> None:
    """A target of make without a command succeeds in silence, and nobody would have looked."""
    plan = subprocess.run(["make", "-n", "browser"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "tests.gate tests/browser" in plan
    assert "step make browser" in (ROOT / ".ci" / "run").read_text().splitlines()


# ---------------------------------------------------------------------------------------------------- cassettes as stories


def test_the_story_of_a_cassette_is_its_frames_to_the_byte() -> None:
    told = cassette_trace(TEXT_TURN, "a/case")
    with CassetteReader(TEXT_TURN) as reader:
        frames = list(reader)
    assert [(each["n"], each["t"], each["seam"], each["from"], each["conn"]) for each in told["frames"]] == [
        (each.n, each.t, each.seam, each.sender, each.conn) for each in frames
    ]
    for each, original in zip(told["frames"], frames, strict=True):
        if original.seam == "rpc":
            assert each["text"].encode() + b"\n" == original.raw
        else:
            assert json.loads(each["text"]) == original.payload
    assert told["source"] == "recorded"
    assert not told["truncated"]


def test_what_a_replay_binds_and_masks_is_told(tmp_path: Path) -> None:
    uuid = "0198c0de-0000-7000-8000-000000000001"
    path = cassette(
        tmp_path,
        b'{"id":7,"result":{"thread":{"id":"%s","createdAt":1,"path":"/home/user/x","model":"m"}}}\n' % uuid.encode(),
        b'{"method":"turn/started","params":{"threadId":"%s"}}\n' % uuid.encode(),
    )
    first, second = cassette_trace(path, "a/case")["frames"]
    assert first["bound"] == [f"<thread:1> = {uuid}", "id = 7"]
    assert first["masked"] == ["$.result.thread.createdAt", "$.result.thread.path"]
    assert second["bound"] == [f"<thread:1> = {uuid}"]


def test_the_path_of_a_request_is_no_path_of_the_machine(tmp_path: Path) -> None:
    writer = CassetteWriter(tmp_path / "c.ndjson", Header("0.92.0", "unknown", "a/case", {"http": "authored"}))
    request = {"method": "GET", "path": "/v1/models", "headers": [["host", "127.0.0.1:1"], ["x", "y"]]}
    writer.write(Frame(0, 0.0, "http", "client", "request", payload=request, conn=1))
    writer.close()
    assert cassette_trace(tmp_path / "c.ndjson", "a")["frames"][0]["masked"] == ["$.headers[0][1]"]


def test_a_cassette_without_its_end_is_told_as_cut(tmp_path: Path) -> None:
    assert cassette_trace(cassette(tmp_path, b'{"method":"x"}\n', whole=False), "a")["truncated"]


def test_a_frame_beyond_the_limit_says_how_long_it_was(tmp_path: Path) -> None:
    line = json.dumps({"method": "x", "params": "y" * 100_000}, separators=(",", ":")).encode() + b"\n"
    (told,) = cassette_trace(cassette(tmp_path, line), "a")["frames"]
    assert len(told["text"]) == 1 << 16
    assert told["cut"] == len(line) - 1


def test_a_recording_too_long_for_a_page_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cassette(tmp_path, *[b'{"method":"x"}\n'] * 5)
    monkeypatch.setattr("codex_replay.report.cassette_trace.MOST_FRAMES", 3)
    told = cassette_trace(path, "a")
    assert len(told["frames"]) == 3
    assert told["truncated"]


def test_lines_that_are_no_utf_8_and_no_json_are_told_too(tmp_path: Path) -> None:
    told = cassette_trace(cassette(tmp_path, b"\xff\xfe\n", b"plain\r\n"), "a")["frames"]
    assert [(each["text"], each["kind"]) for each in told] == [("\\xff\\xfe", "bytes"), ("plain\r", "bytes")]


# -------------------------------------------------------------------------------------------------------- drift --html


@pytest.mark.parametrize("name", ["0.92.0-0.93.0", "behaviour-0.92.0-0.116.0"])
def test_a_drift_has_a_page_of_its_own(tmp_path: Path, name: str) -> None:
    found = json.loads((ROOT / "reports" / "drift" / f"{name}.json").read_text())
    (tmp_path / "a.html").write_text(build.drift_html(found), "ascii")
    shown = Page(tmp_path / "a.html")
    assert shown.chunk("d0") == found
    assert (shown.data["mode"], shown.data["cases"]) == ("drift", [])
    assert shown.of("title") == [({}, f"codex-replay: drift from {found['from']} to {found['to']}")]
    assert build.drift_html(found) == build.drift_html(found)


@pytest.mark.parametrize("make", [drift_of, behaviour_of], ids=["schemas", "behaviour"])
def test_a_hostile_drift_adds_no_element(tmp_path: Path, make: Callable[[str], Any]) -> None:
    (tmp_path / "bad.html").write_text(build.drift_html(make(HOSTILE)), "ascii")
    (tmp_path / "good.html").write_text(build.drift_html(make("calm")), "ascii")
    bad, good = Page(tmp_path / "bad.html"), Page(tmp_path / "good.html")
    assert bad.elements == good.elements
    assert bad.chunk("d0")["findings"][0] == make(HOSTILE)["findings"][0]


# ------------------------------------------------------------------------------------------------- cassette show --html


def test_show_writes_the_page_of_a_cassette(tmp_path: Path) -> None:
    done = show(TEXT_TURN, "--html", tmp_path / "out.html")
    assert done.exit_code == 0
    shown = Page(tmp_path / "out.html")
    assert shown.data["mode"] == "cassette"
    assert shown.data["about"]["codex"] == "0.92.0"
    assert shown.chunk("s0") == cassette_trace(TEXT_TURN, "app_server/test_v2/text_turn")
    assert done.output == f"{tmp_path / 'out.html'}: {len(shown.chunk('s0')['frames'])} frames.\n"


@pytest.mark.parametrize("args", [(TEXT_TURN, "--html"), ("--html", TEXT_TURN), (TEXT_TURN, "--html", "-")])
def test_without_a_place_the_page_goes_to_stdout(tmp_path: Path, args: tuple[Any, ...]) -> None:
    show(TEXT_TURN, "--html", tmp_path / "out.html")
    assert show(*args).stdout == (tmp_path / "out.html").read_text()


def test_a_cut_recording_is_shown_and_said(tmp_path: Path) -> None:
    done = show(cassette(tmp_path, b'{"method":"x"}\n', whole=False), "--html", tmp_path / "out.html")
    assert done.exit_code == 0
    assert "the page is incomplete" in done.stderr
    assert Page(tmp_path / "out.html").chunk("s0")["truncated"]


@pytest.mark.parametrize(
    ("args", "status", "sentence"),
    [
        ((), 2, "Missing argument 'FILE'"),
        (("--html", "nowhere.ndjson"), 2, "nowhere.ndjson: the cassette cannot be opened"),
        ((TEXT_TURN, "--html", "nowhere/out.html"), 2, "the folder does not exist"),
        ((TEXT_TURN, "--html", "."), 2, "this is a folder"),
        ((TEXT_TURN, "--html", TEXT_TURN), 2, "the page would overwrite the cassette"),
        ((TEXT_TURN, "--html", "out.html", "--grep", "x"), 2, "--html shows every frame"),
        ((TEXT_TURN, "--html", "out.html", "--frame", "3"), 2, "--html shows every frame"),
    ],
    ids=["no file", "no cassette", "no folder", "a folder", "itself", "grep", "frame"],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[Any, ...], status: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = TEXT_TURN.read_bytes()
    done = show(*args)
    assert done.exit_code == status
    assert sentence in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert TEXT_TURN.read_bytes() == before


def show(*args: Any) -> Result:
    return CliRunner().invoke(group, ["show", *map(str, args)])


def cassette(folder: Path, *lines: bytes, whole: bool = True) -> Path:
    path = folder / "c.ndjson"
    writer = CassetteWriter(path, Header("0.92.0", "unknown", "a/case", {"rpc": "authored"}))
    for number, line in enumerate(lines):
        writer.write(Frame(0, number / 10, "rpc", "server", "msg", line))
    if whole:
        writer.close()
    else:
        writer.abandon()
    return path
