"""A call of the model's, taken apart as Codex takes it apart: the shell command, its approval, the arguments.

Nothing is executed here or anywhere: what a call gives comes from the script's `result`. What is computed is what the frames
show next to it: the argv, its one-line form, whether the policy asks for an approval and which rule is proposed (recordings of
the real binary; REAL-65 to REAL-67). On fake-codex's start-up path.
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import NotJson, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-./:@]_")
_IN_DOUBLE = '$`"\\'


class BadArguments(ValueError):
    """A call's arguments cannot be used; the text is the real binary's output for the model after "failed to parse ...: "."""


def value_of(call: Mapping[str, Any]) -> Any:
    """Return a function call's decoded arguments, which may be any JSON; raises `BadArguments`, in serde's words if known."""
    text = call.get("arguments") or ""
    try:
        return loads(text.encode("utf-8", "surrogatepass"))
    except NotJson as error:
        if text[:1] == "{" and text[1:2] not in ('"', "}", ""):
            raise BadArguments("key must be a string at line 1 column 2") from None
        if text == "{":
            raise BadArguments("EOF while parsing an object at line 1 column 1") from None
        if not text.strip():
            raise BadArguments(f"EOF while parsing a value at line 1 column {len(text)}") from None
        raise BadArguments(str(error)) from None


def arguments_of(call: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    """Return a function call's decoded arguments; raises `BadArguments`, in serde's words where they are known."""
    text, value = call.get("arguments") or "", value_of(call)
    if type(value) is not dict:
        raise BadArguments(f"invalid type, expected an object at line 1 column {len(text)}")
    for name in required:
        if name not in value:
            raise BadArguments(f"missing field `{name}` at line 1 column {len(text)}")
    return value


def join(argv: Sequence[str]) -> str:
    """Return a command and its arguments as one shell line, quoted as the real binary quotes it."""
    return " ".join(_quoted(word) for word in argv)


def _quoted(word: str) -> str:
    if not word:
        return "''"
    pieces: list[str] = []
    while word:
        size, how = _chunk(word)
        chunk, word = word[:size], word[size:]
        if how == "single":
            chunk = f"'{chunk}'"
        elif how == "double":
            chunk = '"' + "".join("\\" + c if c in _IN_DOUBLE else c for c in chunk) + '"'
        pieces.append(chunk)
    return "".join(pieces)


def _chunk(word: str) -> tuple[int, str]:
    """Return how many characters can be quoted in one way, and the plainest such way."""
    ways = {"bare", "single", "double"}
    for i, c in enumerate(word):
        allowed = {"bare", "single", "double"} if c in _WORD else {"single", "double"}
        if c in "'\\":
            allowed = {"double"}
        elif c in "`$!^":
            allowed = {"single"}
        if not ways & allowed:
            return i, _plainest(ways)
        ways &= allowed
    return len(word), _plainest(ways)


def _plainest(ways: set[str]) -> str:
    return next(way for way in ("bare", "single", "double") if way in ways)


def plain_commands(line: str) -> list[list[str]] | None:
    """Return the commands of a shell line made of nothing but words joined by && || ; |, or None for any other line."""
    commands: list[list[str]] = [[]]
    i, size = 0, len(line)
    while i < size:
        c = line[i]
        if c in " \t":
            i += 1
        elif c in ";|&":
            operator = line[i : i + 2] if line[i : i + 2] in ("&&", "||") else c
            if operator == "&" or not commands[-1]:
                return None
            commands.append([])
            i += len(operator)
        else:
            read = _word(line, i)
            if read is None:
                return None
            word, i = read
            if not commands[-1] and "=" in word:
                return None
            commands[-1].append(word)
    if not commands[-1]:
        return None
    return commands


def _word(line: str, i: int) -> tuple[str, int] | None:
    """Read one word from `i`: bare characters and quoted strings without expansions; None for anything else."""
    word, start = [], i
    while i < len(line) and line[i] not in " \t;|&":
        c = line[i]
        if c in "'\"":
            end = line.find(c, i + 1)
            inner = line[i + 1 : end]
            if end < 0 or (c == '"' and any(x in inner for x in "$`\\")):
                return None
            word.append(inner)
            i = end + 1
        elif c in "<>()$`\\*?[]{}~!#\n" and not (c == "#" and i > start):
            return None
        else:
            word.append(c)
            i += 1
    return "".join(word), i


def known_safe(argv: Sequence[str], settings: Mapping[str, Any]) -> bool:
    """Return True if the real binary runs this command without asking even when nothing is trusted."""
    program = argv[0].rpartition("/")[2]
    if program in settings["knownSafe"]:
        return True
    if program == "git":
        return len(argv) > 1 and argv[1] in settings["knownSafeGit"]
    if program == "find":
        return not any(word in ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0") for word in argv)
    if program == "rg":
        return not any(word.startswith(("--pre", "--hostname-bin", "--search-zip", "-z")) for word in argv)
    if program == "sed":
        return len(argv) in (3, 4) and argv[1] == "-n" and argv[2][-1:] == "p" and argv[2][:-1].replace(",", "").isdigit()
    return False


def dangerous(argv: Sequence[str], settings: Mapping[str, Any]) -> bool:
    """Return True if the real binary asks before this command (unless its policy forbids questions)."""
    words = list(argv[1:]) if argv[0] == "sudo" else list(argv)
    return any(words[: len(prefix)] == prefix for prefix in settings["dangerous"])


class ShellCall:
    """A shell call as the frames show it: `command` (argv), `line`, `cwd`, `commands` (None if not plain commands)."""

    def __init__(self, call: Mapping[str, Any], cwd: str) -> None:
        if call["call"] == "local_shell":
            given = call.get("action") or {}
        else:
            given = arguments_of(call, ("command",))
        command = given["command"]
        self.escalated = given.get("sandbox_permissions") == "require_escalated"
        self.justification: str | None = given.get("justification")
        workdir = given.get("workdir") or given.get("working_directory")
        self.cwd = resolve(cwd, workdir) if workdir else cwd
        if type(command) is str:
            self.command = ["/bin/bash", "-c" if given.get("login") is False else "-lc", command]
            self.commands = plain_commands(command)
            self.shown = command
        else:
            self.command = [str(word) for word in command]
            self.commands = [self.command]
            self.shown = join(self.command)
        self.line = join(self.command)

    def asks(self, policy: str, sandbox: str, settings: Mapping[str, Any], allowed: Sequence[Sequence[str]] = ()) -> bool:
        """Return True if the policy requires an approval before the command runs; `allowed` are the prefixes granted so far."""
        return any(self._asks(argv, policy, sandbox, settings, allowed) for argv in self.commands or [self.command])

    def _asks(
        self, argv: Sequence[str], policy: str, sandbox: str, settings: Mapping[str, Any], allowed: Sequence[Sequence[str]]
    ) -> bool:
        if any(list(argv[: len(prefix)]) == list(prefix) for prefix in allowed) or known_safe(argv, settings):
            return False
        if policy == "never":
            return False
        if dangerous(argv, settings) or policy == "untrusted":
            return True
        return policy == "on-request" and sandbox != "dangerFullAccess" and self.escalated

    def blocked(self, policy: str, settings: Mapping[str, Any]) -> bool:
        """Return True if a dangerous command must not run because the policy forbids asking the user."""
        return policy == "never" and any(dangerous(argv, settings) for argv in self.commands or [self.command])

    def amendment(self, settings: Mapping[str, Any]) -> list[str]:
        """Return the rule that is proposed with the request for approval: the first command that needs one."""
        for argv in self.commands or []:
            if not known_safe(argv, settings):
                return list(argv)
        return list(self.command)


def resolve(cwd: str, path: str) -> str:
    """Return `path` as seen from `cwd`, without looking at any disk."""
    if path.startswith("/"):
        return path
    return f"{cwd.rstrip('/')}/{path.removeprefix('./')}"


def actions_v2(actions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a command's parsed actions (read, list_files, search, unknown) as v2 names them."""
    names = {"list_files": "listFiles"}
    return [
        {"type": names.get(action["type"], action["type"]), "command": action["cmd"]}
        | {key: value for key, value in action.items() if key not in ("type", "cmd")}
        for action in actions
    ]


def plan_of(given: Mapping[str, Any], text: str = "") -> list[dict[str, str]]:
    """Return the steps of an update_plan call of which `text` is the arguments as they came.

    Raises `BadArguments` for a status that there is not.
    """
    steps = []
    for step in given["plan"]:
        if step.get("status") not in ("pending", "in_progress", "completed"):
            status = step.get("status")
            # serde reports where the word ends: at its first place in the arguments, which is close enough.
            column = text.find(f'"{status}"') + len(f'"{status}"')
            words = f"unknown variant `{status}`, expected one of `pending`, `in_progress`, `completed`"
            raise BadArguments(f"{words} at line 1 column {column}" if column > len(f'"{status}"') else words)
        steps.append({"step": step["step"], "status": step["status"]})
    return steps
