"""`codex-replay record --env-secrets`: the secrets of the environment are in nothing that is written or said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.core.redact.environment import environment_secrets
from codex_replay.shell.cassettes.file import CassetteReader

PROGRAM = str(Path(sys.executable).with_name("codex-replay"))
#: In no form and under no name that the redactor knows where they stand in the traffic.
ENVIRONMENT = {
    "WEATHER_API_KEY": "correct horse battery staple 7",
    "COMPANY_SECRET": 'Blue"bird\\é',
    "db_pass": "hunter2!",
    "DATABASE_URL": "postgres://app:tr0mbone@db.example/main",
    "PRIVATE_KEY": "first line 1\nsecond line 2",
}
SECRETS = ["correct horse battery staple 7", 'Blue"bird\\é', "hunter2!", "tr0mbone", "first line 1\nsecond line 2"]
HARMLESS = {
    "SSH_KEY": "/home/ann/.ssh/id", "AUTH_TOKEN": "none", "A_TOKEN": "true", "B_TOKEN": "12345678", "MAX_TOKENS": "128000x9",
    "PATH": "/usr/bin:/bin", "EDITOR": "hunter3!", "C_SECRET": "", "D_SECRET": "$OTHER", "E_TOKEN": "to be set", "PWD": "/srv/9",
    "OLDPWD": "/srv/8", "CACHE_KEY": "v1-abcdef9", "URL": "http://example.com:8080/a@b",
}  # fmt: skip


def record(folder: Path, *words: str, said: str, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    command = [PROGRAM, "record", "--out", "run.ndjson", *words, "--", "/bin/cat"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **env}
    return subprocess.run(command, input=said.encode(), capture_output=True, timeout=60, cwd=folder, env=environment)


def texts(folder: Path) -> list[str]:
    with CassetteReader(folder / "run.ndjson") as cassette:
        return [frame.value["params"]["text"] for frame in cassette if frame.sender == "client"]


def test_the_values_of_the_environment_are_taken_out_wherever_they_stand(tmp_path: Path) -> None:
    said = "".join(json.dumps({"method": "x", "params": {"text": f"it is {secret}."}}) + "\n" for secret in SECRETS)
    done = record(tmp_path, "--literal", "mine too", "--env-secrets", "--case", "hunter2!", said=said, env=ENVIRONMENT)
    assert (done.returncode, done.stdout, done.stderr) == (0, said.encode(), b"")
    assert texts(tmp_path) == [f"it is redacted-{n}." for n in range(2, 7)]
    with CassetteReader(tmp_path / "run.ndjson") as cassette:
        assert cassette.header.case == "redacted-4"


def test_without_the_option_they_stay(tmp_path: Path) -> None:
    record(tmp_path, said='{"method":"x","params":{"text":"hunter2!"}}\n', env=ENVIRONMENT)
    assert texts(tmp_path) == ["hunter2!"]


def test_settings_are_no_secrets_and_that_there_is_none_is_said(tmp_path: Path) -> None:
    said = json.dumps({"method": "x", "params": {"text": " ".join(filter(None, HARMLESS.values()))}}) + "\n"
    done = record(tmp_path, "--env-secrets", said=said, env=HARMLESS)
    assert done.returncode == 0
    assert b"no environment variable has a value that looks like a secret" in done.stderr
    assert "hunter3!" in texts(tmp_path)[0]


@pytest.mark.parametrize("value", ["redacted", "redacted-1", "      ", "\udcff\udcfe" * 4])
def test_a_value_that_cannot_be_taken_out_ends_nothing(value: str, tmp_path: Path) -> None:
    done = record(tmp_path, "--env-secrets", said="{}\n", env={"MY_TOKEN": value})
    assert (done.returncode, done.stdout) == (0, b"{}\n")


def test_the_name_of_each_variable_is_known() -> None:
    assert dict(environment_secrets({**ENVIRONMENT, **HARMLESS})).keys() == ENVIRONMENT.keys()


@pytest.mark.parametrize("value", ["/Ab1" + "cD2+" * 21 + "A==", "/" + "wJalrXUtnFEMI7K" * 2 + "MDENGbPxR"])
def test_a_key_in_base64_may_begin_as_a_path_does(value: str) -> None:
    assert list(environment_secrets({"ACCOUNT_KEY": value})) == [("ACCOUNT_KEY", value)]
    assert not list(environment_secrets({"ACCOUNT_KEY": "/home/ann/Keys/2026/of/the/old/machines"}))
