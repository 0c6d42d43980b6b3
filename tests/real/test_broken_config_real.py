"""Random texts that are not TOML: the real server and the fake report the same fault, at the same place.

CODEX_REPLAY_SEED=N chooses other texts.
"""

from __future__ import annotations

import os
import random
import tomllib
from pathlib import Path
from typing import Any

from codex_fakes.scripted.state.toml_report import broken, warning
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import initialize

KEYS = ("model", "a.b", '"a b"', "a b", "a.", "", "'x", "model_providers.mock", "é", '"\\q"')
EQUALS = (" = ", "=", ": ", " == ", " ", " = = ")
VALUES = (
    '"x"', "x", "gpt-5", "never", "true", "True", "1", "01", "1.", "1_", "+1", "1 2", '"x', "'x", '"\\d"', "[1, 2]", '["a" "b"]',
    "[1,", "[", "{a = 1}", "{a = 1", "{a = 1 b = 2}", '{a: "b"}', "{a = x}", "", '"""x', "“x”", "0xg",
)  # fmt: skip
TAILS = ("", "", "", " # note", " extra", ",", "]", ' "y"')
HEADS = ("[a]", "[a.b]", "[[a]]", "[a", "[a b]", "[]", "[a]]", "[a] = 1", "# note", "")
TEXTS = 40


def texts(seed: int) -> list[str]:
    """Return texts that are not TOML, of one to four lines each."""
    chance, found = random.Random(seed), []
    while len(found) < TEXTS:
        lines = [
            chance.choice(HEADS) if chance.random() < 0.3 else "".join(map(chance.choice, (KEYS, EQUALS, VALUES, TAILS)))
            for _ in range(chance.randint(1, 4))
        ]
        text = "\n".join([*lines, ""])
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            found.append(text)
    return found


def test_the_fake_finds_the_fault_that_the_real_server_finds(tmp_path: Path) -> None:
    home = HermeticHome(tmp_path, "http://127.0.0.1:9")
    file = home.home / "config.toml"
    differing: list[Any] = []
    for text in texts(int(os.environ.get("CODEX_REPLAY_SEED", "1"))):
        file.write_text(text, encoding="utf-8")
        client = Client([str(find_installed("0.92.0")), "app-server"], env=home.env, cwd=str(home.work))
        try:
            initialize(client)
            client.request("getUserAgent")
            real = [message for message in client.messages() if message.get("method") == "configWarning"]
        finally:
            client.stop()
        fault = broken(text)
        assert fault is not None
        message, place = fault
        fake = [warning(f"{file}:{place[0]}:{place[1]}: {message}", str(file), place)]
        if real != fake:
            differing.append((text, real, fake))
    assert differing == []
