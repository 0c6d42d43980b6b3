"""A script in a file: JSON or YAML."""

from __future__ import annotations

from pathlib import Path

from codex_replay.core.wire import client_json
from codex_replay.protocol.script.script import BadScript, parse

LONGEST = 64 << 20  # bytes: a device goes on without end


def read_script(path: Path) -> object:
    """Read a script from a JSON or YAML file; raises `BadScript` with a sentence when it is not one."""
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise BadScript(f"The script {path} is longer than {LONGEST >> 20} MB; see docs/scripts.md.")
        text = data.decode("utf-8")
    except OSError as error:
        raise BadScript(f"The script {path} cannot be read ({error.strerror}); check the path.") from None
    except UnicodeDecodeError:
        raise BadScript(f"The script {path} is not UTF-8; see docs/scripts.md.") from None
    value: object
    try:
        if path.suffix in (".yaml", ".yml"):
            import yaml

            try:
                value = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ValueError(str(error).replace("\n", " ")) from error
        else:
            value = client_json.read(text.encode())
        client_json.check_size(value)
    except RecursionError:
        raise BadScript(f"The script {path} is nested too deeply; see docs/scripts.md.") from None
    except ValueError as error:
        raise BadScript(f"The script {path} is not JSON or YAML, as its name requires: {error}.") from None
    try:
        parse(value)
    except BadScript as error:
        raise BadScript(f"{path}: {error}") from None
    return value
