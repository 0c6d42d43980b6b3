"""Check every frame against the schema bundle: is it *valid* (the JSON Schema matches) and *known* (the bundle lists all its
keys)?

There is one frame schema for each method and direction. A frame schema is built from the JSON-RPC envelope and the method's
params or result; unknown keys are forbidden. The package jsonschema-rs compiles a frame schema when the first frame of its
method comes. A frame that matches its frame schema is valid and known, and needs no further check. Any other frame goes to
`codex_replay.protocol.schema.explain`, which names each fault with its path and the failed check. If jsonschema-rs finds a
fault but `explain` finds none, the result of jsonschema-rs is reported.

Each path begins with the method, such as ``sendUserTurn.params.choiceCount`` and ``thread/start.result.thread.id``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from jsonschema_rs import Draft7Validator

from codex_replay.core.wire import jsonrpc
from codex_replay.protocol.schema.bundle import EVENT_PREFIX, Bundle, Direction, Schema
from codex_replay.protocol.schema.explain import Explainer, Fault, meant, show, type_name
from codex_replay.protocol.schema.known import extract

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codex_replay.protocol.schema.explain import Kind, Verdict

Sender = Literal["client", "server"]

_REQUEST: dict[str, Direction] = {"client": "client-request", "server": "server-request"}
_NOTIFICATION: dict[str, Direction] = {"client": "client-notification", "server": "server-notification"}
_OTHER: dict[str, Sender] = {"client": "server", "server": "client"}


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault of a frame.

    `verdict` names the failed check: "valid" or "known". `path` names the place in the frame, `message` is a sentence, and
    `blame` is the side that wrote the frame: "client" or "server".
    """

    kind: Kind
    verdict: Verdict
    path: str
    message: str
    blame: Sender


class FrameSchema:
    """The schema of one kind of frame.

    The function `build(close)` builds the schema; with `close`, the schema forbids unknown keys.
    """

    def __init__(self, name: str, build: Callable[[bool], dict[str, Any]]) -> None:
        self.name = name
        self._build = build
        #: Check in one step whether a frame is valid and known: the schema with every object closed.
        self.holds: Callable[[Any], bool] = Draft7Validator(build(True)).is_valid

    @cached_property
    def closed(self) -> dict[str, Any]:
        """The schema in which objects forbid additional keys unless they explicitly allow them."""
        return self._build(True)

    @cached_property
    def opened(self) -> dict[str, Any]:
        """The unchanged schema of the bundle, which allows additional keys."""
        return self._build(False)

    @cached_property
    def _plain(self) -> Draft7Validator:
        return Draft7Validator(self.opened)

    def is_valid(self, value: Any) -> bool:
        """Return True if `value` matches the bundle's unchanged schema, which allows unknown keys."""
        return self._plain.is_valid(value)

    def faults(self, value: Any) -> list[Fault]:
        """Return the faults of the frame `value`; an empty list means that the frame is valid and all its keys are known."""
        try:
            if self.holds(value):
                return []
            plain = self._plain
        except ValueError:  # a key with a lone surrogate, which jsonschema-rs cannot read: the walk alone decides
            plain = None
        try:
            found = Explainer(self.opened).faults(value, self.name)
        except RecursionError:  # EventMsg may contain EventMsgs
            return [Fault("other", "valid", self.name, f"The frame {self.name} is nested too deeply to be validated.")]
        if plain is None:
            return found
        if not any(fault.verdict == "valid" for fault in found):
            error = next(plain.iter_errors(value), None)
            if error is not None:
                place = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in error.instance_path)
                found.append(Fault("other", "valid", self.name + place, f"{self.name + place}: {error.message}."))
        return found


class Validator:
    """The frame schemas of one bundle; each is built when it is needed. All connections share the frame schemas."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        #: The schemas of requests and notifications built so far, by sender and method.
        self.built: dict[str, dict[str, FrameSchema]] = {"client": {}, "server": {}}
        self._results: dict[tuple[str, str], FrameSchema] = {}
        self._errors: dict[tuple[str, str], FrameSchema] = {}

    def frame_schema(self, sender: Sender, method: str) -> FrameSchema | None:
        """Return the schema of request or notification frames of `method` from `sender`, or None if the method is unknown."""
        found = self.built[sender].get(method)
        if found is None:
            found = self._build_method(sender, method)
            if found is not None:
                self.built[sender][method] = found
        return found

    def _build_method(self, sender: Sender, method: str) -> FrameSchema | None:
        if sender == "server" and method.startswith(EVENT_PREFIX):
            return self._build_event(method)
        for direction, envelope in ((_REQUEST, "JSONRPCRequest"), (_NOTIFICATION, "JSONRPCNotification")):
            if method in self.bundle.methods(direction[sender]):
                params = self.bundle.params(direction[sender], method)
                required = ["params"] if self.bundle.params_required(direction[sender], method) else []
                return self._build_listed(method, sender, envelope, params, required)
        unlisted = self.bundle.unlisted(method) if sender == "server" else None
        return None if unlisted is None else self._build_listed(method, sender, "JSONRPCNotification", unlisted, ["params"])

    def _build_listed(
        self, method: str, sender: Sender, envelope: str, params: Schema | None, required: list[str]
    ) -> FrameSchema | None:
        direction = (_REQUEST if envelope == "JSONRPCRequest" else _NOTIFICATION)[sender]
        parts = {key: (each.node, each.document) for key, each in self.bundle.envelope(direction).items()}
        parts |= {} if params is None else {"params": (params.node, params.document)}
        return self._build(method, sender, envelope, parts, {"method": {"enum": [method]}}, required)

    def _build_event(self, method: str) -> FrameSchema | None:
        # The notification's own shape is in no schema file: REAL-38.
        event = self.bundle.event(method.removeprefix(EVENT_PREFIX))
        if event is None:
            return None
        params = {
            "type": "object",
            "required": ["id", "msg", "conversationId"],
            "properties": {"id": {"type": "string"}, "msg": event.node, "conversationId": {"type": "string"}},
        }
        parts = {"params": (params, event.document)}
        return self._build(method, "server", "JSONRPCNotification", parts, {"method": {"enum": [method]}}, ["params"])

    def result_schema(self, asker: Sender, method: str) -> FrameSchema:
        """Return the schema of a result frame for the request `method` from `asker`."""
        key = (asker, method)
        if key not in self._results:
            result = self.bundle.result(_REQUEST[asker], method)
            parts = {} if result is None else {"result": (result.node, result.document)}
            self._results[key] = self._build(method, _OTHER[asker], "JSONRPCResponse", parts, {}, [])
        return self._results[key]

    def error_schema(self, asker: Sender, method: str) -> FrameSchema:
        """Return the schema of an error frame for the request `method` from `asker`."""
        key = (asker, method)
        if key not in self._errors:
            self._errors[key] = self._build(method, _OTHER[asker], "JSONRPCError", {}, {}, [])
        return self._errors[key]

    def _build(
        self,
        name: str,
        sender: Sender,
        envelope: str,
        parts: Mapping[str, tuple[Any, Mapping[str, Any]]],
        fixed: Mapping[str, Any],
        required: list[str],
    ) -> FrameSchema:
        """Build a frame schema from the envelope's keys, `parts` (key -> schema and document) and `fixed` properties."""
        shape = self.bundle.type(envelope)
        frame: dict[str, Any] = {"type": "object", "required": [], "properties": {}}
        document: Mapping[str, Any] = {}
        if shape is not None:
            frame, document = {key: shape.node[key] for key in ("type", "required", "properties")}, shape.document

        def build(close: bool) -> dict[str, Any]:
            schema = extract(frame, document, self.bundle.version, close=close)
            properties = {**schema["properties"], **fixed}
            if sender == "client":
                properties["jsonrpc"] = True  # clients may write any (REAL-37)
            for key, (node, source) in parts.items():
                part = extract(node, source, self.bundle.version, close=close)
                merge(schema.setdefault("definitions", {}), part.pop("definitions", {}))
                properties[key] = part
            schema.update(properties=properties, required=[*schema["required"], *required])
            return schema

        return FrameSchema(name, build)

    def unknown_method(self, sender: Sender, method: str) -> Fault:
        """Return the fault of a frame from `sender` with a `method` that the bundle does not have."""
        names = [*self.bundle.methods(_REQUEST[sender]), *self.bundle.methods(_NOTIFICATION[sender])]
        if sender == "server" and method.startswith(EVENT_PREFIX):
            names = [EVENT_PREFIX + each for each in self.bundle.events()]
        foreign = [*self.bundle.methods(_REQUEST[_OTHER[sender]]), *self.bundle.methods(_NOTIFICATION[_OTHER[sender]])]
        hint = f" Only the {_OTHER[sender]} may send this method." if method in foreign else meant(method, names)
        text = f"Codex {self.bundle.version} has no method `{show(method)}` that a {sender} may send.{hint}"
        return Fault("unknown-method", "valid", show(method), text)

    def elsewhere(self, fault: Fault, sender: Sender, method: str) -> Fault:
        """Return `fault`. If `fault` is about an unknown key of the params, add the names of the methods that know the key."""
        prefix = f"{method}.params."
        key = fault.path.removeprefix(prefix)
        if fault.kind != "unknown-key" or not fault.path.startswith(prefix) or "." in key or "Did you" in fault.message:
            return fault
        places = [name for name in self.bundle.methods(_REQUEST[sender]) if key in self._keys(sender, name)]
        if not places:
            return fault
        listed = ", ".join(places[:4])
        return Fault(fault.kind, fault.verdict, fault.path, f"{fault.message} The key is known on {listed}.")

    def _keys(self, sender: Sender, method: str) -> Mapping[str, Any]:
        params = self.bundle.params(_REQUEST[sender], method)
        node = None if params is None else params.follow().node
        return node.get("properties", {}) if isinstance(node, dict) else {}


def merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add the definitions `more` to `into`, folder by folder.

    Definitions with the same name are equal, because both come from one bundle.
    """
    for key, value in more.items():
        if key in into and isinstance(into[key], dict) and "type" not in into[key] and key == "v2":
            merge(into[key], value)
        else:
            into[key] = value


class RpcChecker:
    """A checker for one JSON-RPC connection.

    The checker remembers the requests of client and server, and checks each reply against the method of its request.

    The client and the server may use equal request ids independently. If an id is used twice before it is answered, the
    next reply may answer either request. Client and server have separate validators, because one side may need the plain
    bundle and the other side the experimental bundle.
    """

    def __init__(self, bundle: Bundle, validator: Validator | None = None, of_server: Validator | None = None) -> None:
        validator = validator or Validator(bundle)
        self._validators: dict[str, Validator] = {"client": validator, "server": of_server or validator}
        self._open: dict[str, dict[int | str, list[str]]] = {"client": {}, "server": {}}

    def judge_by(self, sender: Sender, validator: Validator) -> None:
        """Check the frames of `sender` with another validator from now on."""
        self._validators[sender] = validator

    def check(self, sender: Sender, value: Any) -> list[Violation]:
        """Return the faults of one decoded frame from `sender`.

        If the list is empty, the frame is valid, and all its keys are known.
        """
        if type(value) is dict:
            method = value.get("method")
            if method.__class__ is str:
                schema = self._validators[sender].built[sender].get(method)
                try:
                    if schema is not None and schema.holds(value):
                        if "id" in value:
                            self._remember(sender, value["id"], method)
                        return []
                except ValueError:
                    pass
        return [Violation(f.kind, f.verdict, f.path, f.message, sender) for f in self._judge(sender, value)]

    def _remember(self, sender: Sender, request_id: Any, method: str) -> None:
        if type(request_id) is int or type(request_id) is str:
            self._open[sender].setdefault(request_id, []).append(method)

    def _judge(self, sender: Sender, value: Any) -> list[Fault]:
        sort = jsonrpc.kind(value)
        if sort in ("request", "notification"):
            return self._call(sender, value)
        if sort in ("response", "error"):
            return self._reply(sender, value, sort)
        message = "an object without a method, a result or an error" if type(value) is dict else f"a JSON {type_name(value)}"
        return [Fault("not-json-rpc", "valid", "(frame)", f"The frame is not a JSON-RPC message but {message}.")]

    def _call(self, sender: Sender, value: dict[str, Any]) -> list[Fault]:
        method = value["method"]
        if type(method) is not str:
            text = f"The frame's method is a JSON {type_name(method)}, but must be a string."
            return [Fault("not-json-rpc", "valid", "(frame).method", text)]
        validator = self._validators[sender]
        schema = validator.frame_schema(sender, method)
        if "id" in value:
            self._remember(sender, value["id"], method)
            if schema is None or method in validator.bundle.methods(_NOTIFICATION[sender]):
                fault = validator.unknown_method(sender, method)
                if schema is None:
                    return [fault]
                text = f"`{method}` is a notification of the {sender}, but the frame has an id, so it is a request."
                return [Fault(fault.kind, fault.verdict, method, text)]
        if schema is None:
            return [validator.unknown_method(sender, method)]
        return [validator.elsewhere(fault, sender, method) for fault in schema.faults(value)]

    def _reply(self, sender: Sender, value: dict[str, Any], sort: str) -> list[Fault]:
        asker = _OTHER[sender]
        request_id = value["id"]
        known = type(request_id) is int or type(request_id) is str
        waiting = self._open[asker].get(request_id, []) if known else []
        if not waiting:
            text = f"The {sort} answers the id {show(repr(request_id))}, but no request of the {asker} with that id is open."
            return [Fault("no-such-request", "valid", f"({sort}).id", text)]
        validator = self._validators[sender]
        build = validator.result_schema if sort == "response" else validator.error_schema
        judged = [build(asker, method).faults(value) for method in waiting]
        best = judged.index([]) if [] in judged else 0
        waiting.pop(best)
        if not waiting:
            del self._open[asker][request_id]
        return judged[best]
