"""Mistakes that were thought up from the documents alone, and that the checks of their day did not find."""

from __future__ import annotations

import hmac
import re
from typing import Any

from codex_replay.reference.proxy import app
from codex_replay.reference.proxy.asking import normalise, payloads
from codex_replay.reference.proxy.asking.normalise import Transcript
from tests.strength.proxy_variants.patching import in_params, variant


@variant
def first_part_of_a_system_text() -> None:
    old = normalise._text_of
    normalise._text_of = lambda content, where: old(content[:1] if isinstance(content, list) else content, where)


@variant
def instructions_collapsed() -> None:
    old = payloads.developer_instructions

    def collapsed(asked: Any, settings: Any) -> Any:
        said = asked.instructions and re.sub(r"\s*\n\s*", "\n", asked.instructions)
        return old(asked._replace(instructions=said), settings)

    payloads.developer_instructions = collapsed


@variant
def outputs_of_parts_are_empty() -> None:
    old = normalise._output

    def output(call_id: str, given: Any, *more: Any) -> None:
        old(call_id, "" if isinstance(given, list) else given, *more)

    normalise._output = output


@variant
def key_compared_by_its_beginning() -> None:
    class Beginning:
        compare_digest = staticmethod(lambda token, key: token.startswith(key) or hmac.compare_digest(token, key))

    app.hmac = Beginning


@variant
def key_compared_by_its_end() -> None:
    class End:
        compare_digest = staticmethod(lambda token, key: bool(token) and key.startswith(token))

    app.hmac = End


def _empty_manifest(method: str) -> None:
    def change(params: dict[str, Any], *_: Any) -> None:
        params.setdefault("tools", {"definitions": []})

    in_params(method, change)


@variant
def manifest_of_nothing_on_the_turn() -> None:
    _empty_manifest("sendUserTurn")


@variant
def manifest_of_nothing_on_the_message() -> None:
    _empty_manifest("sendUserMessage")


@variant
def rules_for_an_empty_list_of_tools() -> None:
    old = payloads.developer_instructions
    payloads.developer_instructions = lambda asked, settings: (
        old(asked, settings) or ("Tool calling instructions:" if asked.body.get("tools") == [] else None)
    )


@variant
def one_image_a_message() -> None:
    old = normalise._content

    def content(role: str, parts: Any, where: str, transcript: Transcript) -> None:
        if isinstance(parts, list):
            images = [part for part in parts if isinstance(part, dict) and part.get("type") in normalise.IMAGE_PARTS]
            parts = [part for part in parts if part not in images or part is images[0]]
        old(role, parts, where, transcript)

    normalise._content = content
