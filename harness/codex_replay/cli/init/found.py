"""The findings of `codex-replay init` about a proxy or client, in one form for all kinds: lines for users, data for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from codex_replay.core.text.numbers import plural
from codex_replay.protocol.versions import DEFAULT, STEPS

if TYPE_CHECKING:
    from codex_replay.core.redact.redactor import Redactor


@dataclass(frozen=True, slots=True)
class Found:
    """The findings of `init` about a proxy or client.

    `lines` are pairs (label, text) that `init` prints. `row` is the table that `init` writes to the configuration. `lacks`
    has a reason for each capability that the proxy lacks; `init` writes the reasons as comments above the table.

    `options` are the options of every run that `init` writes to the configuration, such as `app-server`. `judged` is False
    if `init` must not run the suite automatically. `wrong` is a sentence about the failure if the proxy or client failed
    when `init` started it. `data` has the findings as JSON, for programs.
    """

    lines: list[tuple[str, str]]
    row: dict[str, Any]
    lacks: Mapping[str, str] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    profile: str | None = None
    judged: bool = True
    wrong: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    def redacted(self, redactor: Redactor) -> Found:
        """Return the value without secrets, which the proxy or client may have printed."""
        return replace(
            self,
            lines=[(label, redactor.text(text)) for label, text in self.lines],
            lacks={name: redactor.text(why) for name, why in self.lacks.items()},
            wrong=redactor.text(self.wrong),
            data=cast("Mapping[str, Any]", redactor.value(json.loads(json.dumps(dict(self.data))))),
        )


Tell = Callable[[str], None]


def find_proxy(subject: str, folder: str, wait: float, report_on: Tell, app_server: str | None = None) -> Found:
    """Try a proxy; raises `BadSubject`, or `SubjectFailure` if the proxy does not become ready.

    `app_server` is the fake to use as the codex of the proxy. Without it, use the fake of the default version, and if the
    proxy serves no request with it, the fake of the newest version.
    """
    from codex_replay.plugin.proxy.detect import READY_PATHS, detect, table
    from codex_replay.plugin.proxy.probe import observe
    from codex_replay.plugin.proxy.subject import parse_proxy

    proxy = parse_proxy(subject, {})
    fake = app_server or "fake"
    seen = observe(proxy, folder, wait, report_on, fake)
    found = detect(seen)
    if found.wrong and app_server is None and not seen.attached:
        report_on(f"the proxy serves no request with Codex {DEFAULT}; trying Codex {STEPS[-1]}")
        later = observe(proxy, folder, wait, report_on, f"fake@{STEPS[-1]}")
        if not (judged := detect(later)).wrong:
            seen, found, fake = later, judged, f"fake@{STEPS[-1]}"
    ready = ", ".join(f"{path} {seen.ready.get(path) or 'no answer'}" for path in READY_PATHS)
    key = f"{'' if found.needs_key else 'not '}needed ({seen.keyless} without a key is answered {seen.without_key})"
    if not seen.without_key:
        key = f"unknown: {seen.keyless} without a key got no answer ({seen.no_answer})"
    lines = [
        ("ready", f"after {seen.seconds:.1f} s ({ready})"),
        ("key", key),
        *([("codex", fake)] if fake != "fake" else []),
        ("calls", ", ".join(found.calls) or ("not visible through a URL" if seen.attached else "none")),
        ("profile", _PROFILES.get(found.profile or "", found.profile or "unknown")),
        ("capable of", ", ".join(found.capabilities) or "nothing"),
    ]
    if found.wrong:
        lines = lines[:1]
    elif found.clients is not None:
        lines.append(("clients", f"{found.clients} at once" if found.clients else "none"))
    if found.dialects and not found.wrong:
        lines.append(("tool calls", f"found in a text as {', '.join(found.dialects)}"))
    steps = []
    if found.lacks and not found.wrong:
        steps.append(
            f"Check that the proxy is not meant to have these capabilities: {', '.join(found.lacks)}. Cases that need one of "
            "these capabilities are skipped. If the proxy has one of these capabilities after all, add it to `capabilities` "
            "in the table of the proxy."
        )
    where = {"url": proxy.url} if proxy.url is not None else {"command": subject}
    data = {**asdict(found), "seconds": round(seen.seconds, 3), "ready_paths": dict(seen.ready)}
    del data["wrong"]
    lacks = {} if found.wrong else found.lacks
    row, options = {**where, **table(found)}, {} if fake == "fake" else {"app-server": fake}
    return Found(lines, row, lacks, steps, found.profile, not seen.attached, found.wrong, data, options)


_PROFILES = {"default": "both: the proxy follows PROXY_PROFILE"}


def find_editor(subject: str, folder: str, wait: float, report_on: Tell, app_server: str | None = None) -> Found:
    """Try an editor client; raises `pytest.UsageError` if its command is invalid, `BadSubject` if `app_server` is."""
    from codex_replay.plugin.editor_client.probe import try_editor

    report_on("starting the editor and sending it a prompt")
    found = try_editor(subject, wait, app_server or "fake")
    lines = [
        ("sends", ", ".join(found.methods) or "nothing"),
        ("reports", ", ".join(found.reports) or "nothing"),
        ("turn", f"completed after {found.seconds:.1f} s" if found.seconds else "not completed"),
    ]
    data = asdict(found)
    options = {"app-server": app_server} if app_server else {}
    return Found(lines, {"command": subject}, wrong=data.pop("wrong"), data=data, options=options)


def find_lite(subject: str, folder: str, wait: float, report_on: Tell) -> Found:
    """Try a lite client; raises `pytest.UsageError` if its command is invalid."""
    from codex_replay.plugin.lite_client.probe import try_lite

    report_on("running the client with a prompt")
    found = try_lite(subject, folder, wait)
    lines = [
        ("requests", ", ".join(found.requests) or "none"),
        ("answer", f"printed after {found.seconds:.1f} s" if not found.wrong else "not printed"),
    ]
    if len(found.requests) > 1:
        lines.append(("note", f"one prompt took {plural(len(found.requests), 'request')}"))
    data = asdict(found)
    return Found(lines, {"command": subject}, wrong=data.pop("wrong"), data=data)


FINDERS: dict[str, Callable[..., Found]] = {
    "proxy": find_proxy,
    "editor-client": find_editor,
    "lite-client": find_lite,
}
