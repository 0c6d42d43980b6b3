"""Numbers that JSON readers read in different ways, and what the real Codex answered to each: tests/data/numbers.ndjson.

A row has the version, the line, and `answer`: null where the server stays silent, the message of the error, or "result". The rows
were written by `python -m tests.fakes.stdio.number_lines`, which asks the real servers; `make real` asks them again.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.codex.install import ensure

FILE = Path(__file__).parents[2] / "data" / "numbers.ndjson"
VERSIONS = ("0.92.0", "0.169.0")
SHOWN = 120  # characters of an error's text: the list of all methods follows
OPENING = (
    '{"id":"opening","method":"initialize","params":{"clientInfo":{"name":"x","version":"1"}}}',
    '{"method":"initialized"}',
)
#: A request that takes the real server as long as the request of a line, and a line that is no request.
LATER, ASIDE = "thread/list", '{"method":"initialized"}'
_NUMBERS = (
    "1e400", "-1E400", "1e999", "1e308", "1e+308", "1E308", "1.0", "1e2", "1.50", "1e15", "1e16", "1.5e+300", "-1e17", "0.1",
    "0.10", "1e-5", "1e-05", "0.00001", "-0.000015", "0.0000001", "1.5e-7", "1e-400", "0e0", "-0", "-0.0", "5e-324",
    "123456789012345680.0", "4294967296", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", "340282366920938463463374607431768211455",
    "340282366920938463463374607431768211456", "-170141183460469231731687303715884105729",
    "100000000000000000000000000000000000000000000", "10000000000000000303786028427003666890752", "9" * 400, "-" + "9" * 5000,
    "1" + "0" * 300, "01", "NaN", "-Infinity",
)  # fmt: skip
#: Where a number stands in a request; its id is the number of the line.
_PLACES = (
    '"method":"thread/list","params":{"limit":NUMBER}',
    '"method":"thread/list","params":{"limit":1,"nested":[[NUMBER]]}',
    '"method":"thread/list","params":NUMBER',
    '"method":"thread/list","params":{},"other":NUMBER',
    '"method":"nope","params":{"limit":NUMBER}',
)
_IDS = ("1.0", "1e2", "-0", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1e400", "9" * 30)


def rows() -> list[dict[str, Any]]:
    """Return the rows: `version`, `line` and `answer`."""
    return [json.loads(row) for row in FILE.read_bytes().splitlines()]


def lines() -> list[str]:
    """Return the lines, each with an id of its own."""
    return list(_lines())


def _lines() -> Iterator[str]:
    for number in _NUMBERS:
        for place in _PLACES:
            name = f"{number[:40]} {_PLACES.index(place)} {len(number)}"
            yield f'{{"id":"{name}",{place.replace("NUMBER", number)}}}'
    for number in _IDS:
        yield f'{{"id":{number},"method":"thread/list","params":{{}}}}'


def answers(messages: list[dict[str, Any]]) -> dict[str, str]:
    """Return the answers by their ids, in JSON."""
    given = [message for message in messages if "id" in message and "method" not in message]
    return {json.dumps(one["id"]): one["error"]["message"][:SHOWN] if "error" in one else "result" for one in given}


def answer_to(line: str, given: Mapping[str, str]) -> str | None:
    """Return the answer to a line, or None."""
    written = line[len('{"id":') : line.index(',"method"')]
    return given.get("0" if written == "-0" else written)


def ask(argv: list[str], env: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Send all lines to a server on stdio, each after the answer to a request of its own, and return the server's answers."""
    popen = subprocess.Popen(
        argv, env={**env}, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    messages: list[dict[str, Any]] = []
    with popen as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, line in enumerate((*OPENING, *lines(), *[ASIDE] * 3)):
            process.stdin.write(f'{line}\n{{"id":"after {number}","method":"{LATER}","params":{{}}}}\n')
            process.stdin.flush()
            while not messages or messages[-1].get("id") != f"after {number}":
                messages.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        messages += map(json.loads, process.stdout)
    return answers(messages)


def real(version: str, folder: Path) -> dict[str, str]:
    """Ask a real server."""
    home = HermeticHome(folder, "http://127.0.0.1:9", version=version)
    return ask([str(ensure(version)), "app-server"], home.env, home.work)


def main() -> None:
    """Ask the real servers and write the rows anew."""
    found = []
    for version in VERSIONS:
        with tempfile.TemporaryDirectory() as folder:
            given = real(version, Path(folder))
        found += [{"version": version, "line": line, "answer": answer_to(line, given)} for line in lines()]
    FILE.write_text("".join(json.dumps(row) + "\n" for row in found))


if __name__ == "__main__":
    main()
