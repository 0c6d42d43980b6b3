# The types of the public names of `__init__.py`, for mypy and pyright; tests/project/test_public_api.py compares the two.
from codex_replay.core.cassette.frames import Footer as Footer
from codex_replay.core.cassette.frames import Frame as Frame
from codex_replay.core.cassette.frames import Header as Header
from codex_replay.core.redact.redactor import Redactor as Redactor
from codex_replay.core.replay.match import LEVELS as MATCH_LEVELS
from codex_replay.plugin.app_server.server import Server as Server
from codex_replay.plugin.app_server.start import AppServer as AppServer
from codex_replay.plugin.base.ledger import Request as Request
from codex_replay.plugin.user_fixtures.codex_backend import CodexBackend as CodexBackend
from codex_replay.plugin.user_fixtures.fake_codex import FakeCodex as FakeCodex
from codex_replay.plugin.user_fixtures.fake_codex import ModelCall as ModelCall
from codex_replay.protocol.recordings.compare import Comparison as Comparison
from codex_replay.protocol.recordings.compare import Difference as Difference
from codex_replay.protocol.recordings.compare import NormalEvent as NormalEvent
from codex_replay.protocol.recordings.conversation import Conversation as Conversation
from codex_replay.protocol.schema.bundle import BundleError as BundleError
from codex_replay.protocol.script.build import ScriptBuilder as ScriptBuilder
from codex_replay.protocol.script.build import TurnBuilder as TurnBuilder
from codex_replay.protocol.script.script import BadScript as BadScript
from codex_replay.protocol.script.script import Script as Script
from codex_replay.protocol.script.script import parse as parse_script
from codex_replay.shell.cassettes.api import diff as diff
from codex_replay.shell.cassettes.api import lint as lint
from codex_replay.shell.cassettes.api import normalise as normalise
from codex_replay.shell.cassettes.api import open_cassette as open_cassette
from codex_replay.shell.cassettes.file import CassetteError as CassetteError
from codex_replay.shell.cassettes.file import CassetteReader as CassetteReader
from codex_replay.shell.cassettes.lint import LintFinding as LintFinding
from codex_replay.shell.cassettes.lint import Report as LintReport
from codex_replay.shell.cassettes.vcr import NdjsonPersister as NdjsonPersister
from codex_replay.shell.codex.cache import find_installed as find_codex
from codex_replay.shell.codex.errors import CodexInstallError as CodexInstallError
from codex_replay.shell.codex.home import ApiKey as ApiKey
from codex_replay.shell.codex.home import ChatGpt as ChatGpt
from codex_replay.shell.codex.home import HermeticHome as HermeticHome
from codex_replay.shell.codex.home import make_id_token as make_id_token
from codex_replay.shell.codex.install import ensure as ensure_codex
from codex_replay.shell.http.backend_process import BackendError as BackendError
from codex_replay.shell.http.backend_process import BackendProcess as BackendProcess
from codex_replay.shell.http.backend_process import BackendSession as BackendSession
from codex_replay.shell.rpc.client import ErrorReply as ErrorReply
from codex_replay.shell.rpc.client import SubjectFailure as SubjectFailure

def _data_reader() -> object: ...

__all__ = [
    "MATCH_LEVELS",
    "ApiKey",
    "AppServer",
    "BackendError",
    "BackendProcess",
    "BackendSession",
    "BadScript",
    "BundleError",
    "CassetteError",
    "CassetteReader",
    "ChatGpt",
    "CodexBackend",
    "CodexInstallError",
    "Comparison",
    "Conversation",
    "Difference",
    "ErrorReply",
    "FakeCodex",
    "Footer",
    "Frame",
    "Header",
    "HermeticHome",
    "LintFinding",
    "LintReport",
    "ModelCall",
    "NdjsonPersister",
    "NormalEvent",
    "Redactor",
    "Request",
    "Script",
    "ScriptBuilder",
    "Server",
    "SubjectFailure",
    "TurnBuilder",
    "diff",
    "ensure_codex",
    "find_codex",
    "lint",
    "make_id_token",
    "normalise",
    "open_cassette",
    "parse_script",
]
