"""The user's configuration at the start of a session.

If the configuration is invalid, the session uses the defaults. After the handshake, the real server warns its client about an
invalid configuration (`configWarning`), and refuses requests that need the configuration.
"""

from __future__ import annotations

from codex_fakes.scripted.state.config_forms import wrong_setting
from codex_fakes.scripted.state.settings import TOO_DEEP, BrokenConfig, Settings, merged, read_config
from codex_replay.protocol.data_tables import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ConfigFile:
    """The configuration of a session, and the errors in its file.

    `config` is the effective configuration: the `user` file and the `flags` of the command line, merged. `refusal` is the error
    for a request that starts a thread, `read_error` is the error of config/read, and `warning` is the notification. `refusal`,
    `read_error` and `warning` are None if the file is valid.
    """

    def __init__(self, home: str, overrides: list[tuple[str, str]], version: str) -> None:
        self.config: dict[str, Any] = {}
        self.user: dict[str, Any] = {}
        self.flags: dict[str, Any] = {}
        self.refusal: str | None = None
        self.read_error: str | None = None
        self.load_error: str | None = None  # of getUserSavedConfig
        self.edit_error: str | None = None  # of what edits a file that is not TOML
        self.warning: dict[str, Any] | None = None
        path = f"{home}/config.toml"
        try:
            user, flags = read_config(home, overrides)
        except BrokenConfig as error:
            if str(error) == TOO_DEEP:
                self._refuse(path, (TOO_DEEP, (1, 1, 1)))
                self.too_deep(path)
                return
            from codex_fakes.scripted.state.toml_report import broken, shown_in

            fault = broken(error.text) or (str(error), (1, 1, 1))
            self._refuse(path, fault)
            self.read_error = f"failed to read configuration layers: {self.refusal}"
            self.edit_error = shown_in(error.text, *fault)
            self.load_error = f"failed to load configuration: {self.refusal}"
            return
        config = merged(user, flags)
        wrong = wrong_setting(config, load("forms", version)["settings"])
        if wrong is None:
            self.config, self.user, self.flags = config, user, flags
            return
        from codex_fakes.scripted.state.toml_report import place_of

        with open(path, "rb") as file:
            text = file.read().decode("utf-8", "replace")
        self.user, self.flags = user, flags
        place = place_of(text, wrong.place)
        by_flags = place is None and wrong_setting(flags, load("forms", version)["settings"]) is not None
        self._refuse(path, (wrong.text if by_flags else wrong.in_file, place))
        self.load_error = f"failed to parse config.toml: {wrong.text}"
        self.read_error = f"invalid configuration: {wrong.text}"

    def _refuse(self, path: str, fault: tuple[str, Any]) -> None:
        from codex_fakes.scripted.state.toml_report import warning

        message, place = fault
        self.refusal = message if place is None else f"{path}:{place[0]}:{place[1]}: {message}"
        self.warning = warning(self.refusal, path, place)

    def too_deep(self, path: str) -> None:
        """Refuse the file, because its tables are deeper than the real server reads."""
        self.edit_error = f"{TOO_DEEP}\n"
        self.refusal = f"{path}:1:1: {TOO_DEEP}"
        self.read_error = f"failed to read configuration layers: {self.refusal}"
        self.load_error = f"failed to load configuration: {self.refusal}"

    def corrected(self) -> None:
        """Forget the errors of the file, because the client has written a valid configuration."""
        self.refusal = self.read_error = self.load_error = None

    def look(self, settings: Settings) -> None:
        """Return a warning for settings that have the right type but an invalid value, such as an unknown provider."""
        if self.refusal is None and (wrong := settings.wrong()) is not None:
            from codex_fakes.scripted.state.toml_report import warning

            self.warning = warning(wrong)
