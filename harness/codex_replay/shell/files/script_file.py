"""Read a script (docs/scripts.md) from a JSON or YAML file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from codex_replay.core.wire import client_json
from codex_replay.protocol.script.script import BadScript, parse
from codex_replay.shell.files.yaml_text import load_yaml

LONGEST = 64 << 20  # bytes: a device goes on without end


def read_script(path: Path) -> object:
    """Return the script in a JSON or YAML file. Raises `BadScript` with a sentence if the file is not a script."""
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise BadScript(f"The script {path} is longer than {LONGEST >> 20} MB; see docs/scripts.md.")
        text = data.decode("utf-8-sig")  # some editors begin a file with a byte-order mark
    except OSError as error:
        raise BadScript(f"The script {path} cannot be read ({error.strerror}); check the path.") from None
    except UnicodeDecodeError:
        raise BadScript(f"The script {path} is not UTF-8; see docs/scripts.md.") from None
    try:
        value = _yaml(text) if path.suffix in (".yaml", ".yml") else _json(text)
        client_json.check_size(value)
    except RecursionError:
        raise BadScript(f"The script {path} is nested too deeply; see docs/scripts.md.") from None
    except _Repeated as error:
        raise BadScript(f'{path}: the key "{error}" occurs twice in one object. Remove one of the two.') from None
    except ValueError as error:
        raise BadScript(f"The script {path} is not JSON or YAML, as its name requires: {error}.") from None
    try:
        parse(value)
    except BadScript as error:
        raise BadScript(f"{path}: {error}") from None
    return value


class _Repeated(Exception):
    """An object in a script file has the same key twice; one of the two values would be ignored."""


def _json(text: str) -> object:
    value: object = client_json.read(text.encode())
    json.loads(text, object_pairs_hook=_checked)
    return value


def _checked(pairs: list[tuple[str, Any]]) -> None:
    _refuse_repeated(key for key, _ in pairs)


def _yaml(text: str) -> object:
    import yaml

    class Loader(yaml.SafeLoader):
        """A YAML loader that refuses an object with the same key twice."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            _refuse_repeated(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            return super().construct_mapping(node, deep)

    return load_yaml(text, Loader)


def _refuse_repeated(keys: Iterable[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise _Repeated(key)
        seen.add(key)
