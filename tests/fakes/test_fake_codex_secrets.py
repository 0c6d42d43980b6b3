"""fake-codex at the level `exact`, with secrets in what the client says: the recorded client itself is never refused.

A live frame is redacted by fake-codex, without what the recorder had seen before: numbers of placeholders may differ.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.test_fake_codex import INITIALIZE, line, run

PROGRAM = str(Path(sys.executable).with_name("codex-replay"))
#: A server that has a secret and a person of its own, and answers each request.
SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "method" in request:
        result = {"apiKey": "sk-proj-" + "Zz9" * 16, "email": "owner@example.org"}
        print(json.dumps({"id": request["id"], "result": result}, separators=(",", ":")), flush=True)
"""


def key(letter: str) -> str:
    return "sk-proj-" + f"{letter}1b2" * 12


def token(name: str) -> str:
    parts = ({"alg": "RS256"}, {"sub": name, "email": f"{name}@example.org", "exp": 1900000000})
    return ".".join(
        [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts] + ["c2lnbmF0dXJl"]
    )


def said(*texts: str) -> list[bytes]:
    """The lines of a client that says each text in a request of its own."""
    params = {"keyPath": "k", "mergeStrategy": "replace"}
    writes = [{"method": "config/value/write", "params": {**params, "value": {"text": text}}} for text in texts]
    return [line(INITIALIZE), *(line({"id": n, **write}) for n, write in enumerate(writes, 2))]


def recorded(folder: Path, sent: list[bytes], *options: str) -> Path:
    words = [PROGRAM, "record", "--out", "run.ndjson", "--codex", "0.92.0", *options, "--", sys.executable, "-c", SERVER]
    done = subprocess.run(words, input=b"".join(sent), capture_output=True, timeout=60, cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return folder / "run.ndjson"


def exact(cassette: Path, sent: list[bytes]) -> Any:
    return run(sent, timeout=60, cassette=cassette, match="exact")


SAID = {
    "two keys": (key("a"), key("b")),
    "the first again": (key("a"), key("b"), key("a"), key("b")),
    "two in one text": (f"{key('a')} and {key('b')}", key("b"), key("a")),
    "e-mails": ("mail ann@example.org", "mail bob@example.com, then ann@example.org", "bob@example.com"),
    "tokens": (token("ann"), token("bob"), token("ann")),
    "what is no secret": ("foo@1.2.3.tgz and icon@2x.png", "two"),
    "the server's own": (key("a"), "sk-proj-" + "Zz9" * 16, "owner@example.org"),
}


@pytest.mark.parametrize("name", SAID)
def test_the_recorded_client_is_not_refused(name: str, tmp_path: Path) -> None:
    sent = said(*SAID[name])
    cassette = recorded(tmp_path, sent)
    for text in SAID[name]:
        assert name == "what is no secret" or text.encode() not in cassette.read_bytes()
    done = exact(cassette, sent)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b'"result"') == len(sent)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ((key("a"), key("b")), (key("a"), key("a"))),
        ((key("a"), key("a")), (key("a"), key("b"))),
        ((key("a"), key("b"), key("a")), (key("a"), key("b"), key("b"))),
        (("mail ann@example.org",), ("mail nobody",)),
    ],
)
def test_another_secret_in_the_place_of_one_is_refused(was: tuple[str, ...], now: tuple[str, ...], tmp_path: Path) -> None:
    done = exact(recorded(tmp_path, said(*was)), said(*now))
    assert done.returncode == 1
    assert b"params.value.text: recorded " in done.stderr
    for secret in (key("a"), key("b")):
        assert secret.encode() not in done.stdout + done.stderr


NAMED = ("--literal", "Project Bluebird", "--literal", "Ann Other")


def test_what_only_the_user_named_is_matched_by_what_stands_around_it(tmp_path: Path) -> None:
    sent = said("Project Bluebird", "for Ann Other of Project Bluebird: go", f"{key('a')} of Ann Other")
    cassette = recorded(tmp_path, sent, *NAMED)
    assert b"Bluebird" not in cassette.read_bytes()
    done = exact(cassette, sent)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b'"result"') == len(sent)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (("for Project Bluebird: go",), ("for Project Bluebird: stop",)),
        (("for Project Bluebird: go",), ("for : go",)),
        (("Project Bluebird", "Project Bluebird"), ("Project Bluebird", "Ann Other")),
        (("Project Bluebird", "Ann Other"), ("Project Bluebird", "Project Bluebird")),
    ],
)
def test_what_the_user_named_must_stay_the_same_and_stand_in_the_same_text(
    was: tuple[str, ...], now: tuple[str, ...], tmp_path: Path
) -> None:
    assert exact(recorded(tmp_path, said(*was), *NAMED), said(*now)).returncode == 1
