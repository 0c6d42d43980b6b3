"""Derive advice from the results of a run: a proxy may have a wrong start command, capability or profile in its settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from codex_replay.plugin.proxy.detect import V2_CALLS
from codex_replay.plugin.proxy.fields import HANDSHAKE, SPECIFIED
from codex_replay.plugin.proxy.subject import ProxySubject

#: So many cases must need a capability before it is called missing.
LEAST = 3
#: Where the settings of a proxy stand that has no table yet.
_TABLE = "[tool.codex-replay.proxy.NAME] of pyproject.toml or codex-replay.toml"
_NOT_READY = "The proxy was not ready within"


def wrong_profile(rows: Mapping[str, Iterable[Sequence[Any]]]) -> list[str]:
    """Return advice if the proxy follows another profile than the selected one.

    `rows` has for each profile the fields that the proxy sent; profiles in which the proxy sent no message are missing.
    """
    sent = sorted({row[0] for row in rows.get("as-specified", ())} - {HANDSHAKE})
    if not sent or any(method in SPECIFIED for method in sent):
        return []
    return [
        f"The proxy sends none of the calls of the profile as-specified ({', '.join(SPECIFIED)}); it sends "
        f"{', '.join(sent)}. Run with --profile {'speaks-v2' if set(V2_CALLS) <= set(sent) else 'works-on-0.92'}."
    ]


def missing_capabilities(subject: ProxySubject, results: Iterable[tuple[Sequence[str], bool]], table: str = _TABLE) -> list[str]:
    """Return advice on capabilities that the proxy probably lacks.

    `results` has for each case the capabilities that the case needs, and True if the case passed. `table` names the
    configuration table of the proxy, and its file.

    A capability is probably missing if every case that needs this capability failed, but other cases passed.
    """
    passed, failed, others = Counter[str](), Counter[str](), Counter[str]()
    for needed, good in results:
        for name in needed:
            (passed if good else failed)[name] += 1
        if good:
            others.update(name for name in subject.capabilities if name not in needed)
    advice = []
    for name in subject.capabilities:
        if failed[name] >= LEAST and not passed[name] and others[name]:
            kept = [each for each in subject.capabilities if each != name]
            advice.append(
                f"Every case that needs the capability {name} failed ({failed[name]}). If the proxy is not meant to have this "
                f"capability, put capabilities = {kept} into {table}; otherwise fix the failures.".replace("'", '"')
            )
    return advice


def not_ready(subject: ProxySubject, messages: Iterable[str], table: str = _TABLE) -> list[str]:
    """Return advice on the settings `ready` and `ready_seconds` in `table`, if a case failed because the proxy did not become
    ready.
    """
    if not any(message.startswith(_NOT_READY) for message in messages):
        return []
    if subject.url is not None:
        return [f"Start the proxy before the run, or correct the URL {subject.url}."]
    return [
        f"Set `ready` to a path that the proxy answers with a status below 500 once it is ready (now {subject.ready}), or set "
        f"`ready_seconds` to more than {subject.ready_seconds:g}, in {table}."
    ]
