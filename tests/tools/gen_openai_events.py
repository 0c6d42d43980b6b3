"""Generate the JSON Schema of the Responses stream events from the types of the `openai` package.

    python tests/tools/gen_openai_events.py           writes harness/codex_replay/protocol/data/openai-VERSION/events.json
    python tests/tools/gen_openai_events.py --check   compares with what is vendored; exit 1 and a diff when it differs

Run it with a Python that has the `openai` package of the version that is vendored (it is no dependency of ours). Only shapes
are taken: descriptions and titles are left out. The vendored file says which version it comes from.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "harness" / "codex_replay" / "protocol" / "data"
DROPPED = ("description", "title", "default")


def shape(schema: Any, *, names: bool = False) -> Any:
    """Return a schema without its words; `names` is True where the keys are property names, which all stay."""
    if isinstance(schema, dict):
        return {
            key: shape(value, names=not names and key in ("properties", "$defs"))
            for key, value in schema.items()
            if names or key not in DROPPED
        }
    if isinstance(schema, list):
        return [shape(entry) for entry in schema]
    return schema


def generate() -> tuple[str, str]:
    """Return the version of the installed package and the text of the file for it."""
    openai = import_module("openai")
    event_type = import_module("openai.types.responses").ResponseStreamEvent
    schema = shape(import_module("pydantic").TypeAdapter(event_type).json_schema())
    value = {"package": "openai", "version": openai.__version__, "license": "Apache-2.0", "schema": schema}
    return openai.__version__, json.dumps(value, indent=1, sort_keys=True) + "\n"


def main() -> int:
    """Write or check; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    given = parser.parse_args()
    try:
        version, text = generate()
    except ImportError as error:
        print(f"{error}. Run this with a Python that has it: pip install openai==VERSION, see {DATA}/openai-*.", file=sys.stderr)
        return 2
    path = DATA / f"openai-{version}" / "events.json"
    if not given.check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"{path}: {len(text)} bytes from openai {version}")
        return 0
    if not path.exists():
        print(
            f"openai {version} is not vendored; there is {', '.join(p.name for p in sorted(DATA.glob('openai-*')))}.",
            file=sys.stderr,
        )
        return 1
    diff = list(difflib.unified_diff(path.read_text().splitlines(), text.splitlines(), "vendored", "generated", lineterm="", n=2))
    print("\n".join(diff[:80]) if diff else f"{path.name} is what openai {version} says.")
    return 1 if diff else 0


if __name__ == "__main__":
    sys.exit(main())
