"""One parser for what the options of all subjects name."""

from __future__ import annotations

import sys

import pytest

from codex_replay.plugin.base.subjects import (
    BadSubject,
    Choice,
    SubjectOption,
    fill,
    parse_app_server,
    running_elsewhere,
    usage_errors,
)

ALL = SubjectOption("--x", "a, b", ("fake", "reference"), fake=True, codex=True, url=True)
URL = SubjectOption("--x", "fake, or a URL", ("fake",), url=True, command=False)
NEEDY = SubjectOption("--x", "a, b", must_hold=("{codex}", "which is its codex"))


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("fake", Choice("name", value="fake")),
        ("reference", Choice("name", value="reference")),
        (f"fake:{sys.executable} -c 'a b'", Choice("fake", (sys.executable, "-c", "a b"))),
        ("codex@0.92.0", Choice("codex", value="0.92.0")),
        ("fake@0.169.0", Choice("imitated", value="0.169.0")),
        ("https://api.example.org/v1/", Choice("url", value="https://api.example.org/v1")),
        (f"{sys.executable} {{codex}}", Choice("command", (sys.executable, "{codex}"))),
        ("mine", Choice("entry", value="mine")),
    ],
)
def test_each_form_is_known(text: str, choice: Choice) -> None:
    assert ALL.parse(text, {"mine": {}}) == choice


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        (ALL, " ", "--x: the command line is empty; give a, b."),
        (ALL, "fake:", "--x: the command line is empty; give a, b."),
        (ALL, "'", "--x ': this is not a command line (No closing quotation)."),
        (ALL, "no-such-program y", "--x no-such-program y: there is no such program; give a, b."),
        (
            ALL,
            __file__,
            f"--x {__file__}: {__file__} is a file, but not executable; put its interpreter before it, as in node server.js.",
        ),
        (URL, "http://[::1", "--x http://[::1: this is not a URL (Invalid IPv6 URL); give fake, or a URL."),
        (ALL, "http://h:70000/v1", "--x http://h:70000/v1: this is not a URL (Port out of range 0-65535); give a, b."),
        (URL, "codex@1", "--x codex@1: give fake, or a URL."),
        (URL, "fake:ls", "--x fake:ls: give fake, or a URL."),
        (NEEDY, "ls {codec}", "--x ls {codec}: it must contain {codex}, which is its codex."),
    ],
)
def test_anything_else_is_a_sentence(option: SubjectOption, text: str, message: str) -> None:
    with pytest.raises(BadSubject) as raised:
        option.parse(text)
    assert str(raised.value) == message
    with pytest.raises(pytest.UsageError), usage_errors():
        option.parse(text)


def test_a_fake_of_another_version_is_told_which() -> None:
    subject = parse_app_server("fake@0.169.0")
    assert (subject.live, subject.version, subject.argv[1]) == (False, "0.169.0", "FAKE_CODEX_VERSION=0.169.0")
    with pytest.raises(BadSubject, match=r"^--app-server fake@0\.116\.0: There is no turn table for Codex 0\.116\.0"):
        parse_app_server("fake@0.116.0")
    with pytest.raises(BadSubject, match=r"Run the real one: --app-server codex@0\.116\.0$"):
        parse_app_server("fake@0.116.0")


@pytest.mark.parametrize("url", ["ws://127.0.0.1:1", "wss://host", "unix:///s"])
def test_a_server_that_listens_is_reached_through_connect(url: str) -> None:
    subject = parse_app_server(url)
    assert (subject.live, subject.argv[1:]) == (True, ("connect", url))
    assert "this server already runs" in running_elsewhere(url)
    assert running_elsewhere("codex@0.92.0") == ""


def test_placeholders_are_filled() -> None:
    assert fill("--port={port} {codex}", {"{port}": "80", "{codex}": "/c"}) == "--port=80 /c"
