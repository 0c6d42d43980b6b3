"""codex-replay: record real Codex traffic, replay it byte for byte, and check that clients still speak the protocol.

The names in `__all__` are the public API; docs/api.md describes them. All other names in the package `codex_replay` are private.
A name is imported when it is first used, so that `import codex_replay` costs little; `__init__.pyi` has the types.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODULES = {
    "core.cassette.frames": ("Footer", "Frame", "Header"),
    "core.redact.redactor": ("Redactor",),
    "core.replay.match": ("LEVELS",),
    "plugin.app_server.server": ("Server",),
    "plugin.app_server.start": ("AppServer",),
    "plugin.base.ledger": ("Request",),
    "plugin.user_fixtures.codex_backend": ("CodexBackend",),
    "plugin.user_fixtures.fake_codex": ("FakeCodex", "ModelCall"),
    "protocol.recordings.compare": ("Comparison", "Difference", "NormalEvent"),
    "protocol.recordings.conversation": ("Conversation",),
    "protocol.schema.bundle": ("BundleError",),
    "protocol.script.build": ("ScriptBuilder", "TurnBuilder"),
    "protocol.script.script": ("BadScript", "Script", "parse"),
    "shell.cassettes.api": ("diff", "lint", "normalise", "open_cassette"),
    "shell.cassettes.file": ("CassetteError", "CassetteReader"),
    "shell.cassettes.lint": ("LintFinding", "Report"),
    "shell.cassettes.vcr": ("NdjsonPersister",),
    "shell.codex.cache": ("find_installed",),
    "shell.codex.errors": ("CodexInstallError",),
    "shell.codex.home": ("ApiKey", "ChatGpt", "HermeticHome", "make_id_token"),
    "shell.codex.install": ("ensure",),
    "shell.http.backend_process": ("BackendError", "BackendProcess", "BackendSession"),
    "shell.rpc.client": ("ErrorReply", "SubjectFailure"),
}
#: Names that are longer here, where no module's name is before them.
_PUBLIC = {
    "LEVELS": "MATCH_LEVELS",
    "Report": "LintReport",
    "ensure": "ensure_codex",
    "find_installed": "find_codex",
    "parse": "parse_script",
}
_PLACES = {_PUBLIC.get(name, name): (module, name) for module, names in _MODULES.items() for name in names}

__all__ = sorted(_PLACES)


def _data_reader() -> "Any":
    """Return the function that reads the data files of the package; modules of `core` do not open files."""
    from codex_replay.shell.files import version_data

    return version_data


def __getattr__(name: str) -> "Any":
    """Import a public name when it is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PLACES[name]
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), attribute)
    return value


def __dir__() -> list[str]:
    """List only the public names."""
    return [*__all__]
