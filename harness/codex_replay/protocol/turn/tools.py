"""Parse a tool call of the model like Codex: its arguments, its shell command, and whether the command needs an approval.

No command is executed: the output of a call comes from the `result` in the script. Other values in the frames are computed
from the call: the argv, its one-line form, the need of an approval, and the proposed rule (recordings of the real Codex;
REAL-65 to REAL-67). The program fake-codex loads this module at start-up.
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import NotJson, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-./:@]_")
UNCONFINED = ("dangerFullAccess", "externalSandbox")  # the sandboxes in which Codex itself confines nothing
_IN_DOUBLE = '$`"\\'


class BadArguments(ValueError):
    """The arguments of a tool call are invalid.

    The message of the exception is the text after "failed to parse ...: " in the real Codex's output to the model.
    """


def value_of(call: Mapping[str, Any]) -> Any:
    """Return the decoded arguments of a function call, which may be any JSON value.

    Raises `BadArguments` with serde's error message.
    """
    text = call.get("arguments") or ""
    try:
        return loads(text.encode("utf-8", "surrogatepass"))
    except NotJson:
        from codex_replay.protocol.turn.serde import Mismatch, read_any

        try:
            return read_any(text)
        except Mismatch as error:
            raise BadArguments(str(error)) from None


def arguments_of(call: Mapping[str, Any], required: Sequence[str] = (), forms: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the decoded arguments of a function call; raises `BadArguments` with serde's error message.

    `forms` is the table forms.json of the Codex version. If the table has no row for the tool, only the members in `required` are
    checked.
    """
    text = call.get("arguments") or ""
    form = forms["tools"].get(call["name"]) if forms is not None else None
    if form is not None:
        return _in_form(call, text, form, forms)
    value = value_of(call)
    if type(value) is not dict:
        raise BadArguments(f"invalid type, expected an object at line 1 column {len(text)}")
    for name in required:
        if name not in value:
            raise BadArguments(f"missing field `{name}` at line 1 column {len(text)}")
    return value


def _in_form(call: Mapping[str, Any], text: str, form: str, forms: Any) -> dict[str, Any]:
    from codex_replay.protocol.turn.serde import Mismatch, read

    if call["name"] not in forms["in two steps"]:
        try:
            found: dict[str, Any] = read(text, form, forms)
        except Mismatch as error:
            raise BadArguments(str(error)) from None
        return found
    value = value_of(call)
    try:
        return read(text, form, forms) or {}
    except Mismatch as error:
        words = str(error).rpartition(" at line ")[0]
        if words == "trailing characters":
            words = f"invalid length {len(value)}, expected fewer elements in array"
        raise BadArguments(words) from None


def join(argv: Sequence[str]) -> str:
    """Return a command and its arguments as one shell line, with the same quoting as the real Codex."""
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
    """Return the length of the longest beginning of a word that one kind of quotes can contain, and the simplest such kind."""
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


#: First words that begin something else than a plain command.
_NO_COMMAND = frozenset(
    ("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function", "coproc",
     "{", "}", "!", "[", "[[", "declare", "export", "local", "readonly", "typeset", "unset", "unsetenv")
)  # fmt: skip


def plain_commands(line: str) -> list[list[str]] | None:
    """Return the commands of a shell script that consists only of words joined by && || ; | and line ends.

    Return None if the script contains anything else.
    """
    commands: list[list[str]] = [[]]
    operator = ""
    i, size = 0, len(line)
    while i < size:
        c = line[i]
        if c in " \t" or (c == "\n" and not commands[-1]):
            i += 1
        elif line.startswith("\\\n", i):
            i += 2  # the command goes on in the next line
        elif c in ";|&\n":
            operator = line[i : i + 2] if line[i : i + 2] in ("&&", "||") else c
            if operator == "&" or not commands[-1]:
                return None
            commands.append([])
            i += len(operator)
        else:
            read = _word(line, i)
            if read is None:
                return None
            begin, (word, i) = i, read
            quoted = any(quote in line[begin:i] for quote in "'\"")
            if not commands[-1] and ("=" in word or quoted or word in _NO_COMMAND):
                return None
            commands[-1].append(word)
    if not commands[-1] and operator in (";", "\n"):
        del commands[-1]  # the last one joins nothing
    return commands if commands and commands[-1] else None


def _word(line: str, i: int) -> tuple[str, int] | None:
    """Read one word of a shell script that begins at `i`: bare characters, and quoted strings without shell expansions.

    Return None if the word contains anything else.

    An escape sequence keeps its backslash, as in the real Codex.
    """
    word, start = [], i
    while i < len(line) and line[i] not in " \t;|&\n":
        c = line[i]
        if c in "'\"":
            end = _closing(line, i)
            if end is None:
                return None
            word.append(line[i + 1 : end])
            i = end + 1
        elif c == "\\":
            escaped = line[i + 1 : i + 2]
            if not escaped or escaped in "\t\n" or (escaped == " " and i == start):
                return None
            word.append(c + escaped)
            i += 2
        elif c in "<>()$`#" and not (c == "#" and i > start):
            return None
        else:
            word.append(c)
            i += 1
    return "".join(word), i


def _closing(line: str, i: int) -> int | None:
    """Return the end of the quoted string that begins at `i`; None if the string has no end, or contains a shell expansion."""
    quote, i = line[i], i + 1
    while i < len(line) and line[i] != quote:
        if quote == '"' and line[i] in "$`":
            return None
        if quote == '"' and line[i] == "\\":
            i += 1
            if line[i : i + 1] == "\n":
                return None
        i += 1
    return i if i < len(line) else None


def known_safe(argv: Sequence[str], settings: Mapping[str, Any]) -> bool:
    """Return True if the real Codex runs a command without an approval, even with the policy `untrusted`."""
    program = argv[0].rpartition("/")[2] if argv else ""
    if program in settings["knownSafe"]:
        return True
    if within := _in_shell(argv):
        return all(known_safe(inner, settings) and not _in_shell(inner) for inner in within)
    if program == "base64":
        return not any(word.startswith(("-o", "--output=")) or word == "--output" for word in argv[1:])
    if program == "git":
        return len(argv) > 1 and argv[1] in settings["knownSafeGit"]
    if program == "find":
        return not any(word in ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0") for word in argv)
    if program == "rg":
        unsafe = ("--pre", "--hostname-bin", "--search-zip", "-z")
        return not any(word in unsafe or word.startswith(("--pre=", "--hostname-bin=")) for word in argv)
    if program == "sed":
        return len(argv) in (3, 4) and argv[1] == "-n" and is_line_range(argv[2])
    return program == "cargo" and argv[1:2] == ["check"]


def is_line_range(script: str) -> bool:
    """Return True if a script of `sed -n` only prints one line (`5p`) or a range of lines (`1,5p`)."""
    numbers = script.removesuffix("p").split(",")
    return script.endswith("p") and len(numbers) < 3 and all(number.isascii() and number.isdecimal() for number in numbers)


def _in_shell(argv: Sequence[str]) -> list[list[str]]:
    """Return the plain commands in `bash -c LINE`; [] for any other call, or if a command in LINE is not plain (words only)."""
    if len(argv) != 3 or argv[0].rpartition("/")[2] not in ("bash", "sh", "zsh") or argv[1] not in ("-c", "-lc"):
        return []
    return plain_commands(argv[2]) or []


def dangerous(argv: Sequence[str], settings: Mapping[str, Any]) -> bool:
    """Return True if the real Codex considers a command dangerous, and asks the user first unless its policy forbids
    questions.
    """
    if any(dangerous(inner, settings) for inner in _in_shell(argv)):
        return True
    words = list(argv[1:]) if argv[:1] == ["sudo"] else list(argv)
    return any(words[: len(prefix)] == prefix for prefix in settings["dangerous"])


class ShellCall:
    """A shell call in the form for frames: `command` (argv), `line`, `cwd`, and `commands` (None if they are not plain)."""

    def __init__(self, call: Mapping[str, Any], cwd: str, forms: Mapping[str, Any] | None = None) -> None:
        if call["call"] == "local_shell":
            given = call.get("action") or {}
        else:
            given = arguments_of(call, ("command",), forms)
        command = given["command"]
        self.escalated = given.get("sandbox_permissions") == "require_escalated"
        self.justification: str | None = given.get("justification")
        workdir = given.get("workdir", given.get("working_directory"))
        self.cwd = cwd if workdir is None else join_path(cwd, workdir)
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
        """Return True if the approval policy requires an approval before a command runs.

        `allowed` has the command prefixes that the user has approved so far.
        """
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
        return policy == "on-request" and sandbox not in UNCONFINED and self.escalated

    def blocked(self, policy: str, settings: Mapping[str, Any]) -> bool:
        """Return True if the command is dangerous and must not run, because the policy forbids asking the user."""
        return policy == "never" and any(dangerous(argv, settings) for argv in self.commands or [self.command])

    def amendment(self, settings: Mapping[str, Any]) -> list[str]:
        """Return the rule that the request for approval proposes: the first command in the line that needs a rule."""
        for argv in self.commands or []:
            if not known_safe(argv, settings):
                return list(argv)
        return list(self.command)


def resolve(cwd: str, path: str) -> str:
    """Return `path`, joined to `cwd` if it is relative, without access to the disk."""
    return join_path(cwd, path.removeprefix("./"))


def join_path(cwd: str, path: str) -> str:
    """Return `path`, joined to `cwd` if it is relative, with every `.` that it contains."""
    return path if path.startswith("/") else f"{cwd.rstrip('/')}/{path}"


def actions_v2(actions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the actions of a command (read, list_files, search, unknown) with the names of v2."""
    names = {"list_files": "listFiles"}
    return [
        {"type": names.get(action["type"], action["type"]), "command": action["cmd"]}
        | {key: value for key, value in action.items() if key not in ("type", "cmd")}
        for action in actions
    ]
