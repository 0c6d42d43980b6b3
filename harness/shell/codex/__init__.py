"""The real Codex: its binary from the npm registry, and a hermetic home to run it in.

`ensure(version)` installs when needed, `find_installed(version)` only looks, `HermeticHome` makes the folder and the
environment in which the binary talks to one upstream on loopback and to nobody else.
"""

from __future__ import annotations

from harness.shell.codex.cache import Installed, cache_folder, find_installed, list_installed
from harness.shell.codex.errors import CodexInstallError
from harness.shell.codex.home import ApiKey, ChatGpt, HermeticHome, make_id_token
from harness.shell.codex.install import ensure

__all__ = [
    "ApiKey",
    "ChatGpt",
    "CodexInstallError",
    "HermeticHome",
    "Installed",
    "cache_folder",
    "ensure",
    "find_installed",
    "list_installed",
    "make_id_token",
]
