"""Reports to test the page with. All of it is authored: nothing here was ever said by a program."""

from __future__ import annotations

import json
from typing import Any

from codex_replay.report.data import Case, Frame, Report, Trace

#: What would show that data became part of the page: markup, ends of elements, links, and characters that hide or turn text.
#: `window.pwned` is what a script among them would set.
HOSTILE = (
    "</script><script>window.pwned=1</script><!--<script>\u2028\u2029"
    '<img src="http://127.0.0.1:9/x" onerror="window.pwned=2">'
    "<svg/onload=window.pwned=3>\"'><iframe src=javascript:window.pwned=4></iframe>"
    "]]>&lt;b&gt;${window.pwned=5}`$title\u202ecba\u2066\x00\x1b[31m\ud800\U0001f600"
)


def frame(n: int, value: Any, *, sender: str = "server", **more: Any) -> Frame:
    """One frame of an rpc message, told by its method."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    told: dict[str, Any] = {
        "n": n,
        "t": n / 1000,
        "seam": "rpc",
        "from": sender,
        "conn": None,
        "what": value.get("method", "a reply") if isinstance(value, dict) else "no message",
        "kind": "notification" if isinstance(value, dict) else "bytes",
        "text": text,
        "mark": None,
        "expected": None,
        "paths": [],
        "bound": [],
        "masked": [],
        **more,
    }
    return told  # type: ignore[return-value]


def story(case: str, frames: list[Frame], **more: Any) -> Trace:
    """A story of these frames."""
    told: dict[str, Any] = {"case": case, "source": "this run", "cassette": None, "truncated": False, "frames": frames, **more}
    return told  # type: ignore[return-value]


def case(name: str, *, suite: str = "app_server", module: str = "test_turns", **more: Any) -> Case:
    """A case that passed, unless `more` says otherwise; its story goes by its id, if `story` is True."""
    number = f"{suite}/{module}/{name}"
    told: dict[str, Any] = {
        "id": number,
        "suite": suite,
        "module": module,
        "case": name,
        "nodeid": f"suites/{suite}/{module}.py::test_{name}",
        "title": f"The case {name} ends well",
        "spec": {
            "check": f"check-{name}",
            "document": "App-server payloads",
            "section": "PAY-55",
            "line": None,
            "text": "A turn that was started ends.",
            "links": ["docs/contract/payloads.md#pay-55"],
        },
        "outcome": "passed",
        "seconds": 0.25,
        "message": "",
        "details": "",
        "expected": None,
        "actual": None,
        "recorded": [],
        "again": f"pytest 'suites/{suite}/{module}.py::test_{name}' --app-server fake",
        "story": None,
        **more,
    }
    if told["story"] is True:
        told["story"] = number
    return told  # type: ignore[return-value]


def report(cases: list[Case], **more: Any) -> Report:
    """A report of these cases; its verdict is theirs."""
    outcomes = {each["outcome"] for each in cases}
    told: dict[str, Any] = {
        "report": 2,
        "verdict": "failed" if "failed" in outcomes else "verified" if "passed" in outcomes else "nothing verified",
        "subject": {"app-server": "fake"},
        "codex": "0.92.0",
        "profile": "default",
        "profiles": ["default"],
        "record": "none",
        "validated": True,
        "command": "codex-replay run app_server",
        "started": "2001-01-01T00:00:00Z",
        "seconds": 12.5,
        "cases": cases,
        **more,
    }
    return told  # type: ignore[return-value]


def started(status: str, **more: Any) -> dict[str, Any]:
    """A frame's value with something of every sort in it."""
    turn = {"id": "0", "status": status, "items": [], "error": None, "startedAt": 1700000000, **more}
    return {"method": "turn/completed", "params": {"threadId": "0198c0de-0000-7000-8000-000000000001", "turn": turn}}


def conversation(key: str) -> Trace:
    """A failed case: both seams, one frame different, one missing, one unexpected, a masked and a bound value."""
    live = started("failed", startedAt=1700009999)
    live["params"]["threadId"] = "0198c0de-0000-7000-8000-00000000beef"
    frames = [
        frame(1, {"id": 1, "method": "initialize", "params": {}}, sender="client", kind="request"),
        frame(2, {"id": 1, "result": {"userAgent": "codex"}}, kind="response", what="result #1 of initialize"),
        frame(
            3,
            {"method": "POST", "path": "/v1/responses"},
            sender="client",
            seam="http",
            conn=1,
            kind="http-request",
            what="POST /v1/responses",
        ),
        frame(4, {"event": "response.created", "data": {}}, seam="http", conn=1, kind="sse", what="event response.created"),
        frame(
            5,
            live,
            mark="different",
            expected=json.dumps(started("completed")),
            paths=["$.params.turn.status"],
            bound=["<thread:1> = 0198c0de-0000-7000-8000-00000000beef"],
            masked=["$.params.turn.startedAt"],
        ),
        frame(6, "", mark="missing", expected='{"method":"thread/archived"}', kind="notification", what="thread/archived"),
        frame(7, {"method": "warning", "params": {"needle": "haystack"}}, mark="unexpected"),
        frame(8, {"method": "cut/short"}, cut=123456),
    ]
    return story(key, frames, cassette="cassettes/app_server/test_turns/red.ndjson")


def everything() -> tuple[Report, list[Trace]]:
    """A report with something in every place that the page has."""
    cases = [case(f"good_{i}", module=f"test_{i % 3}") for i in range(60)]
    cases += [
        case(
            "red",
            outcome="failed",
            message="AssertionError: the turn failed",
            details="E  the turn failed\n" * 5,
            story=True,
            expected='{"status":"completed","n":1.50}',
            actual='{"status":"failed","n":1.50}',
        ),
        case("listed", suite="proxy", outcome="known", message="the limit is not passed on yet", story=True),
        case("live", suite="backend", outcome="skipped", message="live only: needs an account", spec=None),
        case("lost", suite="backend", story=True),
        case("short", story=True),
    ]
    stories = [
        conversation("app_server/test_turns/red"),
        story("proxy/test_turns/listed", [frame(1, {"method": "x"}, seam="http", conn=1), frame(2, {"method": "y"})]),
        story("app_server/test_turns/short", [frame(1, {"method": "x"})], truncated=True),
    ]
    shown = {"case": "app_server/test_turns/red"}
    more = {
        "coverage": {"client method": {"initialize": shown, "fuzzy": {"case": None, "reason": "needs an account"}}},
        "strength": {
            "strength": {
                "variants": 2,
                "killed": 1,
                "kills": {"drops-a-field": ["check-red"]},
                "wrong": {"drops-a-field": "it drops a field", "adds-one": "it adds one"},
                "reasons": {"adds-one": "no check saw it"},
            }
        },
        "drift": drift(
            drifted(
                "sendUserTurn", rule="method-gone", sentence="The server no longer knows the method and answers with an error."
            ),
            drifted("turn/start", cls="additive", rule="property-new", path="$.params.effort", what="effort"),
            drifted("turn/completed", sender="server", path="$.params.turn.error", before="string", after="string or null"),
        ),
    }
    return report(cases, **more), stories


def drifted(method: str, *, cls: str = "breaking", sender: str = "client", **more: Any) -> dict[str, Any]:
    """One finding of a drift of schemas, as `drift --json` writes it."""
    kind = "client-request" if sender == "client" else "server-notification"
    path = more.get("path", "$")
    return {
        "class": cls,
        "rule": "type-changed",
        "kind": kind,
        "method": method,
        "path": path,
        "what": "",
        "before": "",
        "after": "",
        "sends": sender,
        "reads": "server" if sender == "client" else "client",
        "hits": "nobody" if cls == "additive" else "senders" if sender == "client" else "readers",
        "sentence": "The server refuses the old type.",
        "type": "",
        "places": [{"kind": kind, "method": method, "path": path}],
        **more,
    }


def drift(*findings: Any, **more: Any) -> dict[str, Any]:
    """A drift of schemas with these findings, counted."""
    counts = {
        cls: sum(isinstance(each, dict) and each.get("class") == cls for each in findings) for cls in ("breaking", "additive")
    }
    return {
        "drift": 1,
        "from": "0.92.0",
        "to": "0.105.0",
        "counts": {"from": {"client_methods": 55, "events": 64}, "to": {"client_methods": 56, "events": 64}, **counts},
        "findings": list(findings),
        "uncompared": [],
        "cassettes": None,
        **more,
    }


def behaviour(*findings: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A drift of behaviour with these findings, each seen in two cases."""
    return {
        "behaviour": 1,
        "from": "0.92.0",
        "to": "0.105.0",
        "totals": {"cases": 2, "compared": 2, "changed": 1, "unchanged": 1, "not_compared": 0, "findings": len(findings)},
        "findings": list(findings),
        "single": [],
        "racy": [],
        "ended_early": [],
        "not_compared": [],
        "noise": [],
        "cases": ["app_server/test_turns/red", "app_server/test_turns/elsewhere"],
        **more,
    }


def changed(rule: str, method: str, **more: Any) -> dict[str, Any]:
    """One finding of a drift of behaviour, as `drift --behaviour --json` writes it."""
    examples = [{"before": '"yes"', "after": '"no"', "case": "app_server/test_turns/red"}]
    told = {"rule": rule, "what": f"it is {rule}", "method": method, "path": "$.params.x", "examples": examples}
    return {**told, "variants": 1, "count": 2, "cases": [0, 1], **more}


def hostile(text: str = HOSTILE) -> tuple[Report, list[Trace]]:
    """A report in which every text that comes from outside is `text`."""
    bad = frame(
        1,
        started(text),
        what=text,
        mark="different",
        expected=json.dumps(started(text + "x")),
        paths=[f"$.{text}"],
        bound=[f"{text} = {text}"],
        masked=[f"$.params[{json.dumps(text)}]"],
        conn=text,
    )
    raw = frame(2, text, what=text, mark="unexpected", kind=text)
    key = f"{text}/{text}/{text}"
    one = case(
        text,
        suite=text,
        module=text,
        title=text,
        outcome="failed",
        message=text,
        details=text * 3,
        expected=text,
        actual=text + "y",
        again=text,
        nodeid=text,
        recorded=[text],
        story=key,
        spec={"check": text, "document": text, "section": text, "line": 1, "text": text},
    )
    told = story(key, [bad, raw], cassette=text)
    nested = {text: {text: [text, {text: text}]}, "strength": {"variants": 1, "killed": 0, "wrong": {text: text}, "kills": {}}}
    whole = report(
        [one, case("calm")],
        subject={"app-server": text},
        codex=text,
        profile=text,
        profiles=[text, "b"],
        record=text,
        command=text,
        started=text,
        coverage={text: {text: {"case": one["id"], "reason": text}}},
        strength=nested,
        drift=drift_of(text),
        stale=[text],
        verdict=text,
    )
    return whole, [told]


def drift_of(text: str) -> dict[str, Any]:
    """A drift in which every text is `text`, save what the page must know to show it as one."""
    more = dict.fromkeys(("rule", "path", "what", "before", "after", "sentence", "type", "kind", "hits", "sends", "reads"), text)
    places = [{"kind": text, "method": f"{text}{i}", "path": text} for i in range(3)]
    rest = {"from": text, "to": text, "uncompared": [text], "cassettes": {"folder": text, "cases": text, "hit": text}}
    first = drifted(text, **more, places=places, cases=[text])
    found = drift(first, {**first, "class": text}, {text: text}, text, **rest)
    found["counts"] |= {"from": {text: 1, "additive": text}, "to": {text: 2}, "additive": 7}
    return found


def behaviour_of(text: str) -> dict[str, Any]:
    """A drift of behaviour in which every text is `text`."""
    one = changed(text, text, what=text, path=text, note=text, methods=[text], cases=[0, text])
    one["examples"] = [{"before": text, "after": text, "case": text}] * 2
    more = {name: [{"case": text, text: text}] for name in ("ended_early", "not_compared", "noise")}
    return behaviour(one, {text: text}, **more, cases=[text], **{"from": text, "to": text})
