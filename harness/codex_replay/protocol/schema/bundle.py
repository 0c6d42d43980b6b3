"""The JSON-schema bundle of a Codex version: which methods there are and what type each of their payloads has.

Strategy: Codex writes its schemas twice, as one primary file with every definition and as one self-contained file a
type. We read the single files wherever they exist, because the primary file of 0.92.0 is wrong where two types share a
name: seven references of its ``EventMsg`` lead to camelCase v2 types (``CodexErrorInfo``, ``RateLimitSnapshot``, ...),
while the binary writes, and the single files say, the snake_case ones. A lone primary file (a user's own) is read too,
those references turned to the types that they mean.

Everything is lazy: a document is parsed when a payload of it is first asked for. Which result type answers which
method follows from the names (``ThreadStartParams`` -> ``ThreadStartResponse``) and, where it does not, from
``data/<version>/results.json``.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

from harness.core.reason import reason
from harness.protocol import schema_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Who sends, and whether an answer is expected.
Direction = Literal["client-request", "client-notification", "server-request", "server-notification"]
DIRECTIONS: tuple[Direction, ...] = ("client-request", "client-notification", "server-request", "server-notification")
#: ``codex/event/<type>`` notifications carry an EventMsg and are not listed in ServerNotification
#: (spec/real-codex-0.92.md, section 4).
EVENT_PREFIX = "codex/event/"
DEFAULT_VERSION = "0.92.0"

_UNION: dict[Direction, str] = {
    "client-request": "ClientRequest",
    "client-notification": "ClientNotification",
    "server-request": "ServerRequest",
    "server-notification": "ServerNotification",
}


class BundleError(ValueError):
    """A bundle cannot be read or is not one; the message is a sentence that says which and why."""


@dataclass(frozen=True, slots=True)
class Schema:
    """One schema and the document in which its references resolve."""

    node: Any
    document: Mapping[str, Any]

    def follow(self) -> Schema:
        """Return the schema that `node` stands for: references and single ``allOf`` wrappers are followed."""
        schema = self
        while isinstance(schema.node, dict):
            if "$ref" in schema.node:
                schema = Schema(lookup(schema.document, schema.node["$ref"]), self.document)
            elif len(schema.node.get("allOf", ())) == 1 and "properties" not in schema.node:
                schema = Schema(schema.node["allOf"][0], self.document)
            else:
                break
        return schema


def lookup(document: Mapping[str, Any], reference: str) -> Any:
    """Return what the local `reference` (``#/definitions/X``) names in `document`; raises `BundleError`."""
    found: Any = document
    for step in reference.removeprefix("#").split("/")[1:]:
        try:
            found = found[step.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError):
            raise BundleError(f"The reference {reference} leads nowhere in its schema document.") from None
    return found


def branches(node: Any) -> list[Any]:
    """Return the members of the union `node` (``oneOf`` or ``anyOf``), or an empty list."""
    if not isinstance(node, dict):
        return []
    return list(node.get("oneOf") or node.get("anyOf") or [])


def constant(node: Any) -> str | None:
    """Return the one string that `node` allows (an ``enum`` of one, or ``const``), or None."""
    if not isinstance(node, dict):
        return None
    values = node.get("enum", [node["const"]] if "const" in node else [])
    return values[0] if len(values) == 1 and isinstance(values[0], str) else None


def _turn(node: Any, references: Mapping[str, str]) -> Any:
    """Return a copy of `node` with each of its `references` replaced."""
    if isinstance(node, dict):
        return {key: references.get(each, each) if key == "$ref" else _turn(each, references) for key, each in node.items()}
    if isinstance(node, list):
        return [_turn(each, references) for each in node]
    return node


class Bundle:
    """All schemas of one Codex version.

    `version` is the Codex version, or the name of a user's file. `root` is the folder of the generated files; when it
    is None, `primary` (the bytes of a primary file) is all there is.
    """

    def __init__(self, version: str, root: str | None, primary: bytes | None = None) -> None:
        self.version = version
        self._root = root
        self._bytes = primary
        self._documents: dict[str, Mapping[str, Any] | None] = {}
        self._methods: dict[Direction, dict[str, dict[str, Any]]] = {}

    @cached_property
    def sha256(self) -> str:
        """``sha256:<hex>`` of the primary file's bytes: the identity that a cassette's header names."""
        return "sha256:" + hashlib.sha256(self._primary_bytes()).hexdigest()

    def _primary_bytes(self) -> bytes:
        if self._bytes is None:
            assert self._root is not None
            self._bytes = schema_files.read(self._root, schema_files.PRIMARY)
        return self._bytes

    @cached_property
    def primary(self) -> Mapping[str, Any]:
        """The decoded primary file; raises `BundleError` when it is not a bundle."""
        try:
            found = json.loads(self._primary_bytes())
        except (OSError, ValueError) as error:
            raise BundleError(f"The primary file of bundle {self.version} cannot be read: {reason(error)}.") from None
        if not isinstance(found, dict) or not isinstance(found.get("definitions"), dict):
            raise BundleError(f"Bundle {self.version} is not a schema bundle: it has no `definitions` object.")
        return found

    @cached_property
    def _mended(self) -> dict[str, Any]:
        """The definitions of a lone primary file, references from outside v2 turned away from types v2 only shares."""
        definitions: dict[str, Any] = self.primary["definitions"]
        shared = {f"#/definitions/v2/{name}": f"#/definitions/{name}" for name in definitions.get("v2", {})}
        shared = {there: here for there, here in shared.items() if here.rsplit("/", 1)[-1] in definitions}
        return {
            name: node if name == "v2" or name in _UNION.values() else _turn(node, shared) for name, node in definitions.items()
        }

    @cached_property
    def _files(self) -> dict[str, str]:
        if self._root is None:
            return {}
        every = [name for name in schema_files.names(self._root) if name.endswith(".json")]
        return {name.rsplit("/", 1)[-1][: -len(".json")]: name for name in every if ".schemas." not in name}

    def type_names(self) -> list[str]:
        """Return the names of the types that stand on their own: one a single file, or each definition."""
        return sorted(self._files) or sorted({*self.primary["definitions"], *self.primary["definitions"].get("v2", {})})

    def type(self, name: str) -> Schema | None:
        """Return the schema of the type `name` (``ThreadStartParams``), or None when the bundle has no such type."""
        document = self._document(name)
        return None if document is None else Schema(document, document)

    def _document(self, name: str) -> Mapping[str, Any] | None:
        if name not in self._documents:
            self._documents[name] = self._read(name)
        return self._documents[name]

    def _read(self, name: str) -> Mapping[str, Any] | None:
        if self._root is not None and name in self._files:
            found = json.loads(schema_files.read(self._root, self._files[name]))
            return found if isinstance(found, dict) else None
        if self._files:
            return None
        definitions = self._mended
        found = definitions.get("v2", {}).get(name) or definitions.get(name)
        return {**found, "definitions": definitions} if isinstance(found, dict) else None

    def methods(self, direction: Direction) -> tuple[str, ...]:
        """Return the method names of `direction`, in the bundle's order (``codex/event/*`` not among them)."""
        return tuple(self._entries(direction))

    def _entries(self, direction: Direction) -> dict[str, dict[str, Any]]:
        if direction not in self._methods:
            document = self._document(_UNION[direction])
            entries = {}
            for branch in branches(document):
                name = constant(branch.get("properties", {}).get("method"))
                if name is not None:
                    entries[name] = branch
            self._methods[direction] = entries
        return self._methods[direction]

    def params(self, direction: Direction, method: str) -> Schema | None:
        """Return the schema of the params of `method`, or None when it takes none or is unknown."""
        node = self._entries(direction).get(method, {}).get("properties", {}).get("params")
        document = self._document(_UNION[direction])
        return None if node is None or document is None else Schema(node, document)

    def params_required(self, direction: Direction, method: str) -> bool:
        """Tell whether a frame of `method` must have a ``params`` key."""
        return "params" in self._entries(direction).get(method, {}).get("required", ())

    def describe(self, direction: Direction, method: str) -> str:
        """Return the bundle's own description of `method`, or an empty string."""
        return str(self._entries(direction).get(method, {}).get("description", ""))

    def events(self) -> tuple[str, ...]:
        """Return the types of EventMsg, in the bundle's order: the ``<type>`` of ``codex/event/<type>``."""
        return tuple(self._events)

    def event(self, name: str) -> Schema | None:
        """Return the schema of the EventMsg whose ``type`` is `name`, or None."""
        node, document = self._events.get(name), self._document("EventMsg")
        return None if node is None or document is None else Schema(node, document)

    @cached_property
    def _events(self) -> dict[str, Any]:
        named = ((constant(b.get("properties", {}).get("type")), b) for b in branches(self._document("EventMsg")))
        return {name: branch for name, branch in named if name is not None}

    def result_type(self, direction: Direction, method: str) -> str | None:
        """Return the name of the type that answers the request `method`, or None when that is not known.

        By the names where they are regular (``XParams`` -> ``XResponse``), else by the table ``results.json``.
        """
        listed = _results(self.version).get(method)
        if listed is not None and self.type(listed) is not None:
            return listed
        params = self.params(direction, method)
        if params is None or not isinstance(params.node, dict) or "$ref" not in params.node:
            return None
        name = params.node["$ref"].rsplit("/", 1)[-1].removesuffix("Params") + "Response"
        return name if self.type(name) is not None else None

    def result(self, direction: Direction, method: str) -> Schema | None:
        """Return the schema of the result of the request `method`, or None when it is not known."""
        name = self.result_type(direction, method)
        return None if name is None else self.type(name)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield ``(relative name, bytes)`` of each file of the bundle."""
        if self._root is None:
            yield schema_files.PRIMARY, self._primary_bytes()
            return
        for name in schema_files.names(self._root):
            yield name, schema_files.read(self._root, name)


@cache
def _results(version: str) -> dict[str, str]:
    """Return the table method -> result type of `version`, or that of the default version."""
    path = schema_files.table(version, "results.json")
    if not os.path.exists(path):
        path = schema_files.table(DEFAULT_VERSION, "results.json")
    with open(path, "rb") as file:
        return dict(json.load(file)["results"])


@cache
def load(version: str = DEFAULT_VERSION) -> Bundle:
    """Return the vendored bundle of `version` (the same object each time); raises `BundleError` if there is none."""
    root = schema_files.folder(version)
    if not os.path.isdir(root):
        known = ", ".join(schema_files.versions())
        raise BundleError(
            f"No bundle of Codex {version} is vendored (there are: {known}). Generate it with "
            f"`codex-replay schema regen {version} --out DIR` and name that directory."
        )
    return Bundle(version, root)


def load_file(path: str | os.PathLike[str], version: str | None = None) -> Bundle:
    """Return a user's own bundle: a generated directory, or a primary file alone.

    A primary file inside a generated directory stands for the whole directory. `version` defaults to the name of the
    directory or file. Raises `BundleError` when `path` cannot be read or holds no bundle.
    """
    path = os.fspath(path)
    root = path if os.path.isdir(path) else os.path.dirname(path) or "."
    if os.path.isdir(path) or (
        os.path.basename(path) == schema_files.PRIMARY and os.path.exists(os.path.join(root, "ClientRequest.json"))
    ):
        bundle = Bundle(version or os.path.basename(os.path.abspath(root)), root)
    else:
        try:
            with open(path, "rb") as file:
                bundle = Bundle(version or os.path.basename(path), None, file.read())
        except OSError as error:
            raise BundleError(f"The bundle {path} cannot be read: {error.strerror}.") from None
    if "ClientRequest" not in bundle.primary["definitions"]:
        raise BundleError(f"{path} is not a bundle of the app-server protocol: it defines no ClientRequest.")
    return bundle
