"""The JSON-schema bundle of a Codex version: the methods, and the payload type of each method.

Codex writes its schemas in two forms: one primary file with all definitions, and one self-contained file for each type. The
files for single types are preferred, because the primary file of Codex 0.92.0 is wrong where two types have the same name.
In the primary file, seven references of ``EventMsg`` lead to camelCase v2 types (``CodexErrorInfo``, ``RateLimitSnapshot``,
...). The Codex binary sends the snake_case types, as in the files for single types. If a user gives only a primary file,
its wrong references are corrected.

A schema file is parsed only when a payload of its type is first needed. The name of a result type is derived from the name
of the method's params type (``ThreadStartParams`` -> ``ThreadStartResponse``). For irregular names,
``data/any/results.json`` lists the result type of the method.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

from codex_replay.core.text.error_text import error_text
from codex_replay.protocol import data_tables
from codex_replay.protocol.versions import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Who sends, and whether an answer is expected.
Direction = Literal["client-request", "client-notification", "server-request", "server-notification"]
DIRECTIONS: tuple[Direction, ...] = ("client-request", "client-notification", "server-request", "server-notification")
#: ``codex/event/<type>`` notifications carry an EventMsg and are not listed in ServerNotification
#: (REAL-35).
EVENT_PREFIX = "codex/event/"

#: The type in a bundle with all messages of a direction.
UNIONS: dict[Direction, str] = {
    "client-request": "ClientRequest",
    "client-notification": "ClientNotification",
    "server-request": "ServerRequest",
    "server-notification": "ServerNotification",
}


class BundleError(ValueError):
    """A schema bundle cannot be read, or the file is not a bundle; the message is a sentence with the name and the reason."""


@dataclass(frozen=True, slots=True)
class Schema:
    """One schema, and the document that its references refer to."""

    node: Any
    document: Mapping[str, Any]

    def follow(self) -> Schema:
        """Return the schema that `node` refers to, through references and ``allOf`` with one member."""
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
    """Return the target of the local `reference` (``#/definitions/X``) in `document`.

    Raises `BundleError` if there is no target.
    """
    found: Any = document
    for step in reference.removeprefix("#").split("/")[1:]:
        try:
            found = found[step.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError):
            raise BundleError(f"The reference {reference} has no target in its schema document.") from None
    return found


def branches(node: Any) -> list[Any]:
    """Return the members of a union (``oneOf`` or ``anyOf``); return an empty list if `node` is not a union."""
    if not isinstance(node, dict):
        return []
    return list(node.get("oneOf") or node.get("anyOf") or [])


def constant(node: Any) -> str | None:
    """Return the string if `node` allows only one string (by ``enum`` or ``const``), otherwise None."""
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

    `version` is the Codex version, or the name of a user's file. `files` are the generated schema files by relative name;
    they are read when they are needed. A bundle may consist of the primary file only.
    """

    def __init__(self, version: str, files: Mapping[str, bytes]) -> None:
        self.version = version
        self.files = files
        self._documents: dict[str, Mapping[str, Any] | None] = {}
        self._methods: dict[Direction, dict[str, dict[str, Any]]] = {}

    @cached_property
    def sha256(self) -> str:
        """The identity of the bundle, ``sha256:<hex>`` of its primary file; the header of a cassette contains it."""
        return "sha256:" + hashlib.sha256(self.files[data_tables.PRIMARY]).hexdigest()

    @cached_property
    def primary(self) -> Mapping[str, Any]:
        """The decoded primary file; raises `BundleError` if the file is not a schema bundle."""
        try:
            found = json.loads(self.files[data_tables.PRIMARY])
        except (OSError, ValueError) as error:
            raise BundleError(f"The primary file of bundle {self.version} cannot be read: {error_text(error)}.") from None
        if not isinstance(found, dict) or not isinstance(found.get("definitions"), dict):
            raise BundleError(f"Bundle {self.version} is not a schema bundle: it has no `definitions` object.")
        return found

    @cached_property
    def _corrected(self) -> dict[str, Any]:
        """Return the definitions of a bundle that consists of the primary file only.

        A reference from outside v2 that wrongly leads to a v2 type of the same name is corrected.
        """
        definitions: dict[str, Any] = self.primary["definitions"]
        shared = {f"#/definitions/v2/{name}": f"#/definitions/{name}" for name in definitions.get("v2", {})}
        shared = {there: here for there, here in shared.items() if here.rsplit("/", 1)[-1] in definitions}
        return {
            name: node if name == "v2" or name in UNIONS.values() else _turn(node, shared) for name, node in definitions.items()
        }

    @cached_property
    def _single(self) -> dict[str, str]:
        """The file of each type that has a file of its own."""
        every = [name for name in self.files if name.endswith(".json")]
        return {name.rsplit("/", 1)[-1][: -len(".json")]: name for name in every if ".schemas." not in name}

    def type_names(self) -> list[str]:
        """Return the names of the types that have their own file.

        If the bundle has no files for single types, return the names of all definitions.
        """
        return sorted(self._single) or sorted({*self.primary["definitions"], *self.primary["definitions"].get("v2", {})})

    def type(self, name: str) -> Schema | None:
        """Return the schema of the type `name` (such as ``ThreadStartParams``), or None if the bundle has no such type."""
        document = self._document(name)
        return None if document is None else Schema(document, document)

    def _document(self, name: str) -> Mapping[str, Any] | None:
        if name not in self._documents:
            self._documents[name] = self._read(name)
        return self._documents[name]

    def _read(self, name: str) -> Mapping[str, Any] | None:
        if name in self._single:
            found = json.loads(self.files[self._single[name]])
            return found if isinstance(found, dict) else None
        if self._single:
            return None
        definitions = self._corrected
        found = definitions.get("v2", {}).get(name) or definitions.get(name)
        return {**found, "definitions": definitions} if isinstance(found, dict) else None

    def methods(self, direction: Direction) -> tuple[str, ...]:
        """Return the names of the methods in one direction, in the bundle's order, without ``codex/event/*``."""
        return tuple(self._entries(direction))

    def _entries(self, direction: Direction) -> dict[str, dict[str, Any]]:
        if direction not in self._methods:
            document = self._document(UNIONS[direction])
            entries = {}
            for branch in branches(document):
                name = constant(branch.get("properties", {}).get("method"))
                if name is not None:
                    entries[name] = branch
            self._methods[direction] = entries
        return self._methods[direction]

    def params(self, direction: Direction, method: str) -> Schema | None:
        """Return the schema of the params of `method`; None if the method has no params or is unknown."""
        node = self._entries(direction).get(method, {}).get("properties", {}).get("params")
        document = self._document(UNIONS[direction])
        return None if node is None or document is None else Schema(node, document)

    def unlisted(self, method: str) -> Schema | None:
        """Return the schema of the params of a server notification that the bundle does not list as a method.

        The name of the type is derived from the method.

        Codex may send notifications that it calls internal, such as ``rawResponse/completed`` (clients request it with
        ``experimentalRawEvents``). The bundle has the type of an internal notification
        (``RawResponseCompletedNotification``), but does not list its method.
        """
        name = "".join(part[:1].upper() + part[1:] for part in method.split("/")) + "Notification"
        return self.type(name) if "/" in method else None

    def envelope(self, direction: Direction) -> dict[str, Schema]:
        """Return the keys that every frame from the side `direction` may have in addition to method and params, such as
        ``emittedAtMs``, each with its schema.
        """
        document = self._document(UNIONS[direction]) or {}
        return {key: Schema(node, document) for key, node in document.get("properties", {}).items()}

    def params_required(self, direction: Direction, method: str) -> bool:
        """Return True if a frame of `method` must have a ``params`` key."""
        return "params" in self._entries(direction).get(method, {}).get("required", ())

    def describe(self, direction: Direction, method: str) -> str:
        """Return the description of `method` in the bundle, or an empty string."""
        return str(self._entries(direction).get(method, {}).get("description", ""))

    def events(self) -> tuple[str, ...]:
        """Return the types of EventMsg (each is the ``<type>`` of a ``codex/event/<type>``), in the bundle's order."""
        return tuple(self._events)

    def event(self, name: str) -> Schema | None:
        """Return the schema of the EventMsg with the ``type`` `name`, or None."""
        node, document = self._events.get(name), self._document("EventMsg")
        return None if node is None or document is None else Schema(node, document)

    @cached_property
    def _events(self) -> dict[str, Any]:
        named = ((constant(b.get("properties", {}).get("type")), b) for b in branches(self._document("EventMsg")))
        return {name: branch for name, branch in named if name is not None}

    def result_type(self, direction: Direction, method: str) -> str | None:
        """Return the name of the result type of the request `method`, or None if it is unknown.

        The name of the result type is derived from a regular name (``XParams`` -> ``XResponse``); otherwise the table
        ``results.json`` has the name.
        """
        listed: str | None = data_tables.load("results", "any")["results"].get(method)
        if listed is not None and self.type(listed) is not None:
            return listed
        params = self.params(direction, method)
        if params is None or not isinstance(params.node, dict) or "$ref" not in params.node:
            return None
        name = params.node["$ref"].rsplit("/", 1)[-1].removesuffix("Params") + "Response"
        return name if self.type(name) is not None else None

    def result(self, direction: Direction, method: str) -> Schema | None:
        """Return the schema of the result of the request `method`, or None if it is unknown."""
        name = self.result_type(direction, method)
        return None if name is None else self.type(name)


@cache
def load(version: str = DEFAULT) -> Bundle:
    """Return the packaged bundle of `version`; each call returns the same object.

    Raises `BundleError` if codex-replay does not contain a bundle of the version.
    """
    try:
        return Bundle(version, data_tables.schema(version))
    except data_tables.MissingTable:
        raise BundleError(
            f"No bundle of Codex {version} is packaged (packaged: {', '.join(data_tables.versions())}). Generate it with "
            f"`codex-replay schema regen {version} --out DIR` and name that directory."
        ) from None


@cache
def load_experimental(version: str) -> Bundle | None:
    """Return the experimental bundle of `version`, packaged or added by the user; None if it does not exist."""
    try:
        return Bundle(version, data_tables.schema(version, experimental=True))
    except data_tables.MissingTable:
        return None


def alone(version: str, primary: bytes) -> Bundle:
    """Return a bundle that is made only from the bytes of the primary file."""
    return Bundle(version, {data_tables.PRIMARY: primary})
