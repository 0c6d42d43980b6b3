"""Convert the events of a turn to the frames of one Codex version, by the rules in `data/<version>/turn.json`.

The code finds the rows of the table for an event, omits the rows for other kinds of clients, and inserts the values. The
program fake-codex loads this module at start-up, so this module imports only the core.

    "$name"       the value of that name, whatever its type       {"reason?": "$reason"}   a key that is left out when null
    "${name}"     the value as text within a longer text          {"each": "texts", "as": "one", ...} one frame for each entry
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import NotJson, loads
from codex_replay.protocol.data_tables import read
from codex_replay.protocol.versions import DEFAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def load_table(version: str = DEFAULT) -> dict[str, Any]:
    """Return a new copy of the table turn.json of a version; raises `MissingTable` if the version has no such table."""
    loaded: dict[str, Any] = loads(read("turn.json", version))
    return loaded


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its placeholder names replaced by `values`; raises `KeyError` for a name without a value."""
    if type(template) is str:
        if "$" not in template:
            return template
        if "${" in template:
            return _text(template, values)
        return values[template[1:]] if template[0] == "$" else template
    if type(template) is dict:
        filled = {}
        for key, inner in template.items():
            value = fill(inner, values)
            if key[-1:] == "?":
                if value is None:
                    continue
                key = key[:-1]
            filled[key] = value
        return filled
    if type(template) is list:
        return [fill(inner, values) for inner in template]
    return template


def _text(template: str, values: Mapping[str, Any]) -> str:
    first, *parts = template.split("${")
    text = [first]
    for part in parts:
        name, _, rest = part.partition("}")
        text += (str(values[name]), rest)
    return "".join(text)


def frames(rows: list[dict[str, Any]], api: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the frames of one event for a client that uses `api` ("v1" or "v2").

    In the result, a request of the server has the `id` None; the caller sets the id. The real server uses the integers from
    0 (REAL-36). `values` must have the keys "thread" and "turn".
    """
    made: list[dict[str, Any]] = []
    for row in rows:
        if row.get("only", api) != api or ("if" in row and values[row["if"]] is None):
            continue
        if "each" in row:
            made += [_frame(row, {**values, row["as"]: one}) for one in values[row["each"]]]
        else:
            made.append(_frame(row, values))
    return made


def _frame(row: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    if "event" in row:
        message = {"type": row["event"], **fill(row["msg"], values)}
        params = {"id": values["turn"], "msg": message, "conversationId": values["thread"]}
        return {"method": "codex/event/" + row["event"], "params": params}
    if "request" in row:
        return {"method": row["request"], "id": None, "params": fill(row["params"], values)}
    return {"method": row["method"], "params": fill(row["params"], values)}


def camel(value: Any) -> Any:
    """Convert snake_case names to the camelCase of v2: the keys of objects, and a value that is a name."""
    if type(value) is str:
        first, *rest = value.split("_")
        return first + "".join(part[:1].upper() + part[1:] for part in rest)
    if type(value) is dict:
        return {camel(key): camel(inner) if type(inner) is dict else inner for key, inner in value.items()}
    return value


def _window_v2(window: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if window is None:
        return None
    used = window["used_percent"]
    rounded = int(used + 0.5) if used >= 0 else -int(0.5 - used)  # v2 rounds
    return {"usedPercent": rounded, "windowDurationMins": window["window_minutes"], "resetsAt": window["resets_at"]}


def usage_values(
    total: Mapping[str, int] | None,
    last: Mapping[str, int] | None,
    window: int | None,
    told: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the values for the event "usage": the token counts and the rate limits, in the forms of v1 and v2.

    `told` has the rate limits of the model's answers so far, or is None before the first answer. `names` is for versions
    with other token counts than 0.92: the members of v2's token counts, each with its source.
    """
    info = tokens = None
    if total is not None and last is not None:
        info = {"total_token_usage": dict(total), "last_token_usage": dict(last), "model_context_window": window}
        tokens = {"total": _tokens_v2(total, names), "last": _tokens_v2(last, names), "modelContextWindow": window}
    limits = limits_v2 = None
    windows_v2: dict[str, Any] = {"primaryV2": None, "secondaryV2": None, "creditsV2": None}
    if told is not None:
        windows = {name: told.get(name) for name in ("primary", "secondary")}
        given = told.get("credits")
        limits_v2 = {name: _window_v2(value) for name, value in windows.items()}
        limits_v2 |= {"credits": None if given is None else {camel(k): v for k, v in given.items()}, "planType": None}
        limits = {**windows, "credits": given, "plan_type": None}
        windows_v2 = {f"{name}V2": limits_v2[name] for name in ("primary", "secondary", "credits")}
    return {"info": info, "tokenUsage": tokens, "rateLimits": limits, "rateLimitsV2": limits_v2, **windows_v2}


def _tokens_v2(usage: Mapping[str, int], names: Mapping[str, str] | None) -> dict[str, int]:
    if names is not None:
        return {name: usage.get(count, 0) for name, count in names.items()}
    # The order of v2's members.
    return {
        "totalTokens": usage["total_tokens"],
        "inputTokens": usage["input_tokens"],
        "cachedInputTokens": usage["cached_input_tokens"],
        "outputTokens": usage["output_tokens"],
        "reasoningOutputTokens": usage["reasoning_output_tokens"],
    }


#: The usage before any reply.
NOTHING = dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"), 0)


def add_usage(total: Mapping[str, int] | None, usage: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two usages (in tokens); the first usage may be missing."""
    return {key: (total[key] if total else 0) + count for key, count in usage.items()}


def failure(errors: Mapping[str, Any], cause: Mapping[str, Any]) -> dict[str, Any]:
    """Return the effects that an error of the model's backend has on the turn.

    The effects have the keys message, info, retry (a list of "request" and "stream"), streamStatus and full.

    `cause` has one of these keys: "status" (with reason, body, url), "code" (with text), "break" (with url, reason), or
    "plan" (with again). The table "errors" and REAL-98 describe the keys of `cause`.
    """
    if "plan" in cause:
        row = {"message": errors["plans"].get(cause["plan"]) or errors["plans"]["*"], **errors["codes"]["usage_limit_reached"]}
    elif "status" in cause:
        statuses = errors["statuses"]
        special = (key for key in statuses if key[:4] == f"{cause['status']} " and _shows(key[4:], statuses[key], cause))
        row = statuses.get(next(special, str(cause["status"]))) or statuses["5xx" if cause["status"] >= 500 else "4xx"]
    elif "code" in cause:
        row = errors["codes"].get(cause["code"], {})
        row = row if "message" in row else errors["codes"]["*"]  # a usage limit has its plan's message, and only as a status
    else:
        row = errors["breaks"][cause["break"]]
    filled: dict[str, Any] = fill(row, {"request": "", "shown": _message_in(cause.get("body", "")), **cause})
    return filled


def _message_in(body: str) -> str:
    """Return the message in the body of an error; if there is none, return the body without spaces at both ends.

    A body that has only spaces means an unknown error.
    """
    try:
        message = loads(body.encode("utf-8", "surrogatepass"))["error"]["message"]
    except (NotJson, KeyError, TypeError):
        message = None
    return (message.strip() if type(message) is str else "") or body.strip() or "Unknown error"


def _shows(words: str, row: Mapping[str, Any], cause: Mapping[str, Any]) -> bool:
    body = cause.get("body", "")
    return words in body and row.get("needs", "") in body


def error_v2(table: Mapping[str, Any], message: str, info: Any, details: str | None = None) -> dict[str, Any]:
    """Return the error object for v2's `error` and `turn/completed`, with the further members that turn.json (`table`) has."""
    error = {"message": message, "codexErrorInfo": camel(info), "additionalDetails": details}
    return {**error, **table.get("shapes", {}).get("error", {})}
