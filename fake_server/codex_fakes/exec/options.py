"""Parse the arguments of `fake-codex exec`. The messages for wrong arguments are those of `codex exec` 0.92.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codex_fakes.exec import review
from codex_fakes.scripted.options import refused
from codex_replay.protocol.versions import DEFAULT

VALUES = {
    "-c": "config", "--config": "config", "--enable": "feature", "--disable": "feature", "-i": "image", "--image": "image",
    "-m": "model", "--model": "model", "--local-provider": "provider", "-s": "sandbox", "--sandbox": "sandbox", "-p": "profile",
    "--profile": "profile", "-C": "cd", "--cd": "cd", "--add-dir": "dir", "--output-schema": "schema", "--color": "color",
    "-o": "last", "--output-last-message": "last",
}  # fmt: skip
FLAGS = {
    "--json": "json", "--experimental-json": "json", "--skip-git-repo-check": "anywhere", "--full-auto": "full-auto",
    "--oss": "oss", "--yolo": "yolo", "--dangerously-bypass-approvals-and-sandbox": "yolo",
}  # fmt: skip
_RESUME_FLAGS = {"--last": "latest", "--all": "all"}
_MANY = ("config", "dir", "image")  # may be repeated
_POSSIBLE = {
    "sandbox": ("read-only", "workspace-write", "danger-full-access"),
    "color": ("always", "never", "auto"),
}
#: How messages name an option; others have the name that the user wrote.
_SHOWN = {
    "config": "--config <key=value>", "image": "--image <FILE>...", "model": "--model <MODEL>",
    "provider": "--local-provider <OSS_PROVIDER>", "sandbox": "--sandbox <SANDBOX_MODE>", "profile": "--profile <CONFIG_PROFILE>",
    "cd": "--cd <DIR>", "dir": "--add-dir <DIR>", "schema": "--output-schema <FILE>", "color": "--color <COLOR>",
    "last": "--output-last-message <FILE>", "base": "--base <BRANCH>", "commit": "--commit <SHA>", "title": "--title <TITLE>",
    "json": "--json", "yolo": "--dangerously-bypass-approvals-and-sandbox",
}  # fmt: skip
#: The positional arguments of `exec` and of its commands, and the end of a usage without arguments.
_PLAIN = {"": ["PROMPT"], "review": ["PROMPT"], "resume": ["SESSION_ID", "PROMPT"]}
#: Each of the two takes the place of the other.
_ACCESS = {"full-auto": "yolo", "yolo": "full-auto"}
_HELP = "\n\nFor more information, try '--help'.\n"


class Wrong(Exception):
    """`codex exec` cannot run, for example because of a wrong argument.

    `Wrong` has the text for stderr and the exit status.
    """

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def parse(words: list[str]) -> dict[str, Any]:
    """Return the options by name, with `config` as a list of pairs, the prompt, and the thread to resume.

    Raises `Wrong` for a wrong argument.
    """
    return _Arguments().read(words)


def _tip(word: str, left: list[str]) -> str:
    """Return the tip of the error message for an unknown option.

    If a later subcommand on the command line has the option, the tip names the subcommand. If no later subcommand has the
    option, the tip explains how to pass the unknown option as a value.
    """
    others = {"resume": _RESUME_FLAGS, "review": {**review.VALUES, **review.FLAGS}}
    command = next((word for word in left if word in others), None)
    tip = (
        f"'{command} {word}' exists" if word in others.get(command or "", ()) else f"to pass '{word}' as a value, use '-- {word}'"
    )
    return f"\n\n  tip: {tip}"


class _Arguments:
    """The parsed command line of `codex exec`.

    `command` is the subcommand of `exec`. `used` are the options so far, in the form in which the usage line shows them.
    """

    def __init__(self) -> None:
        self.options: dict[str, Any] = {name: [] for name in (*_MANY, "features")}
        self.plain: list[str] = []
        self.used: list[str] = []
        self.command = ""
        self.values, self.flags = VALUES, FLAGS

    def read(self, words: list[str]) -> dict[str, Any]:
        left, options = list(words), self.options
        while left:
            word = left.pop(0)
            name, equals, value = word.partition("=")
            if word[:1] == "-" and word[1:2] not in ("", "-") and word[2:3] not in ("", "="):
                name, equals, value = word[:2], "=", word[2:]  # a short option with its value
                word = word if name in self.values else name
            if word == "--":
                for word in left:
                    self._place(word)
                left = []
            elif word in ("-V", "--version"):
                return {"version": True}
            elif name in self.values:
                self._value(name, value if equals else None, left)
            elif word in self.flags:
                options[self.flags[word]] = True
                self._use(self.flags[word], _SHOWN.get(self.flags[word], word))
            elif word.startswith("-") and word != "-":
                word = name if word[:2] == "--" else word
                raise self._unexpected(word, _tip(word, [] if self.command else left), word[:2] == "--" and bool(self.used))
            elif word in ("resume", "review") and not self.command:
                self._begin(word)
            else:
                self._place(word)
        return self._whole()

    def _begin(self, command: str) -> None:
        """Begin the arguments of a subcommand. A prompt before the subcommand has no effect."""
        self.command, self.plain, self.used = command, [], []
        self.options[command] = True
        if command == "resume":
            self.flags = {**FLAGS, **_RESUME_FLAGS}
        if command == "review":
            self.values = {**{word: name for word, name in VALUES.items() if name in review.SHARED}, **review.VALUES}
            self.flags = {**{word: name for word, name in FLAGS.items() if name in review.SHARED}, **review.FLAGS}

    def _place(self, word: str) -> None:
        """Take a positional argument."""
        self.plain.append(word)
        self.used.append(review.PROMPT)

    def _value(self, word: str, given: str | None, left: list[str]) -> None:
        name = self.values[word]
        shown = _SHOWN.get(name, f"{word} <FEATURE>")
        if given is None and not left:
            raise Wrong(f"error: a value is required for '{shown}' but none was supplied{_HELP}", 2)
        attached = given is not None
        given = given if given is not None else left.pop(0)
        self._take(name, given)
        self._use(name, shown)
        if name == "feature":
            self.options["config"].append((f"features.{given}", "true" if word == "--enable" else "false"))
        while name == "image" and not attached and not self.command and left and (left[0] == "-" or left[0][:1] != "-"):
            self._take("image", left.pop(0))

    def _use(self, name: str, shown: str) -> None:
        """Record that an option was used. Raises `Wrong` if the option was used before and must not be repeated."""
        if shown in self.used and name not in (*_MANY, "feature"):
            message = f"error: the argument '{shown}' cannot be used multiple times\n\n{self._usage()}{_HELP}"
            raise Wrong(message, 2)
        self.used.append(shown)
        if name in _ACCESS:
            self.options.pop(_ACCESS[name], None)  # that of a command counts

    def _take(self, name: str, given: str) -> None:
        """Store the value of an option. Raises `Wrong` for an invalid value."""
        possible = _POSSIBLE.get(name, (given,))
        if given not in possible:
            values = f"[possible values: {', '.join(possible)}]"
            raise Wrong(f"error: invalid value '{given}' for '{_SHOWN[name]}'\n  {values}{_HELP}", 2)
        if name == "config":
            key, equals, text = given.partition("=")
            if not equals or not key.strip():
                why = "Empty key in override" if equals else "Invalid override (missing '=')"
                self.options.setdefault("wrong", f"Error parsing -c overrides: {why}: {given}\n")
            self.options[name].append((key.strip(), text.strip()))
        elif name == "feature":
            self.options["features"].append(given)
        elif name in _MANY:
            self.options[name] += given.split(",") if name == "image" else [given]
        else:
            self.options[name] = given

    def _whole(self) -> dict[str, Any]:
        options, plain = self.options, self.plain
        if len(plain) > len(_PLAIN[self.command]):
            raise self._unexpected(plain[len(_PLAIN[self.command])])
        if self.command == "resume" and len(plain) > ("latest" in options):
            options["resume"] = plain.pop(0)  # with --last it is ignored
        options["prompt"] = plain[0] if plain else None
        self._check(["--full-auto", _SHOWN["yolo"]])
        if self.command == "review":
            self._check(review.TARGETS)
            if _SHOWN["title"] in self.used and not set(self.used) & set(review.TARGETS):
                raise Wrong(review.NO_COMMIT + _HELP, 2)
        if message := refused([("--enable", name) for name in options.pop("features")], DEFAULT)[0]:
            raise Wrong(message, 1)
        if "wrong" in options:
            raise Wrong(options["wrong"], 1)
        return options

    def _check(self, exclusive: Sequence[str]) -> None:
        """Raise `Wrong` if the command line has more than one of the arguments `exclusive`."""
        given = list(dict.fromkeys(shown for shown in self.used if shown in exclusive))
        if len(given) > 1:
            first, *others = given
            rest = f" '{others[0]}'" if len(others) == 1 else ":" + "".join(f"\n  {other}" for other in others)
            self.used = [shown for shown in self.used if shown not in others]
            self.plain = self.plain if review.PROMPT in self.used else []
            raise Wrong(f"error: the argument '{first}' cannot be used with{rest}\n\n{self._usage(True)}{_HELP}", 2)

    def _unexpected(self, word: str, tip: str = "", shows_used: bool = False) -> Wrong:
        return Wrong(f"error: unexpected argument '{word}' found{tip}\n\n{self._usage(shows_used)}{_HELP}", 2)

    def _usage(self, shows_used: bool = False) -> str:
        """Return the usage line of the command, with the options that were used, or with `[OPTIONS]` for all options."""
        names = _PLAIN[self.command]
        places = [f"<{name}>" if shows_used and n < len(self.plain) else f"[{name}]" for n, name in enumerate(names)]
        before = [shown for shown in dict.fromkeys(self.used) if shown != review.PROMPT] if shows_used else ["[OPTIONS]"]
        after = [] if shows_used or self.command else ["[COMMAND]"]
        return " ".join(["Usage: codex exec", *([self.command] if self.command else []), *before, *places, *after])
