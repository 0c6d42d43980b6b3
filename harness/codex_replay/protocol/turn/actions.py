"""Find the actions that Codex shows next to a shell command: files that the command reads, lists or searches, or "unknown".

The rules here were derived from about two hundred commands that the real Codex was given. Only scripts of plain words,
joined by && || ; |, are analysed; any other script has the single action "unknown". Commands that only format the output of
other commands are omitted.
"""

from __future__ import annotations

from itertools import groupby

from codex_replay.protocol.turn.tools import join, plain_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Action = dict[str, Any]

_SHELLS = ("bash", "sh", "zsh")
#: Commands that only format the output of others.
_FORMATTING = ("wc", "tr", "cut", "sort", "uniq", "tee", "column", "yes", "printf", "xargs")
#: Folders that say too little to be shown as the name of a place.
_VAGUE = ("", "build", "dist", "node_modules", "src")
#: Commands that list files, and their options that take a value.
_LISTING = {
    "ls": ("-I", "-w", "--block-size", "--format", "--time-style", "--color", "--quoting-style"),
    "eza": ("-I", "--ignore-glob", "--color", "--sort", "--time-style", "--time"),
    "exa": ("-I", "--ignore-glob", "--color", "--sort", "--time-style", "--time"),
    "tree": ("-L", "-P", "-I", "--charset", "--filelimit", "--sort"),
    "du": ("-d", "--max-depth", "-B", "--block-size", "--exclude", "--time-style"),
}
_SEARCHING = {
    "rg": ("-g", "--glob", "--iglob", "-t", "--type", "--type-add", "--type-not", "-m", "--max-count", "-A", "-B", "-C",
           "--context", "--max-depth"),
    "grep": ("-m", "--max-count", "-A", "-B", "-C", "--context"),
    "egrep": ("-m", "--max-count", "-A", "-B", "-C", "--context"),
    "fgrep": ("-m", "--max-count", "-A", "-B", "-C", "--context"),
    "ag": ("-G", "-A", "-B", "-C", "-m"),
    "ack": ("-A", "-B", "-C", "-m"),
    "fd": ("-t", "--type", "-e", "--extension", "-E", "--exclude", "-d", "--max-depth"),
}  # fmt: skip
_READING = ("cat", "less", "more", "bat", "batcat")


def actions_of(command: Sequence[str]) -> list[Action]:
    """Return the actions of a command line; each has a `type` (read, list_files, search, unknown) and a `cmd`."""
    if len(command) != 3 or command[0].rpartition("/")[2] not in _SHELLS or command[1] not in ("-c", "-lc"):
        return [_summary(list(command))] if command else [_unknown("")]
    script = command[2]
    commands = plain_commands(script)
    kept = [argv for argv in commands or [] if not _formats(argv)]
    if commands is None or not kept:
        return [_unknown(script)]
    found: list[Action] = []
    place = ""
    for argv in kept:
        if argv[0] == "cd":
            place = _inside(place, argv[-1]) if len(argv) > 1 else place
            continue
        action = _summary(argv)
        if action["type"] == "read" and place:
            action["path"] = _inside(place, action["path"])
        found.append(action)
    found = [action for action, _ in groupby(_simplified(found))]
    rewritten = "\\" in script or script.rstrip()[-1:] == ";"
    if len(found) == len(commands) == 1 and found[0]["type"] != "unknown" and rewritten:
        words = _unescaped(script)
        if not {"|", "&&", "||", ";"}.intersection(words):  # a word that looks like an operator counts as one
            found[0]["cmd"] = join(words)
    if len(found) == 1 and found[0]["type"] == "read" and "|" in script and any(_is_range(argv) for argv in commands):
        found[0]["cmd"] = script
    return found


def _unescaped(script: str) -> list[str]:
    """Return the words of a script as a shell reads them: escapes and quotes are removed."""
    words: list[str] = []
    word, quote, i = None, "", 0
    while i < len(script):
        c, after = script[i], script[i + 1 : i + 2]
        i += 1
        if c == "\\" and quote != "'" and (not quote or after in '$`"\\\n'):
            word = (word or "") + after.strip("\n")
            i += 1
        elif quote or c in "'\"":
            word = (word or "") + ("" if c == quote or not quote else c)
            quote = "" if c == quote else quote or c
        elif c not in " \t\n":
            word = (word or "") + c
        elif word is not None:
            words.append(word)
            word = None
    return words if word is None else [*words, word]


def _simplified(found: list[Action]) -> list[Action]:
    """Leave out actions that add no information to the other actions."""
    if len(found) > 1:
        kept = [action for action in found if action != _unknown("true")]
        found = [one for one in kept if not (one["type"] == "unknown" and one["cmd"].split()[0] == "nl")]
    while len(found) > 1 and found[0]["type"] == "unknown" and found[0]["cmd"].split()[0] == "echo":
        found = found[1:]
    return found


def _unknown(text: str) -> Action:
    return {"type": "unknown", "cmd": text}


def _inside(place: str, path: str) -> str:
    return path if path.startswith("/") or not place else f"{place.rstrip('/')}/{path}"


def _is_range(argv: Sequence[str]) -> bool:
    return list(argv[:2]) == ["sed", "-n"]


def _formats(argv: Sequence[str]) -> bool:
    """Return True if a command only formats the output of other commands."""
    if argv[0] in ("head", "tail") and len(argv) > 3:
        return False
    if argv[0] in ("head", "tail", "sed", "awk"):
        return _file_of(argv) is None
    return argv[0] in _FORMATTING


def _short(path: str) -> str:
    """Return the last part of a path that is not in `_VAGUE`; if all parts are in `_VAGUE`, return the path."""
    path = path.rstrip("/") or path
    return next((part for part in reversed(path.replace("\\", "/").split("/")) if part not in _VAGUE), path)


def _operands(args: Sequence[str], valued: Sequence[str] = ()) -> list[str]:
    """Return the arguments that are neither options nor values of options; `valued` are the options that take a value."""
    found: list[str] = []
    skip = False
    for number, arg in enumerate(args):
        if skip:
            skip = False
        elif arg == "--":
            return found + list(args[number + 1 :])
        elif arg.startswith("-"):
            skip = arg in valued
        else:
            found.append(arg)
    return found


def _summary(argv: list[str]) -> Action:
    program, args, line = argv[0], argv[1:], join(argv)
    if program == "git" and args[:1] in (["ls-files"], ["grep"]):
        program, args = ("ls" if args[0] == "ls-files" else "grep"), args[1:]
    if program in _LISTING:
        places = _operands(args, _LISTING[program])
        return {"type": "list_files", "cmd": line, "path": _short(places[0]) if places else None}
    if program in _SEARCHING:
        return _search(program, args, line)
    if program == "find":
        return _find(args, line)
    path = _file_of(argv)
    return _unknown(line) if path is None else {"type": "read", "cmd": line, "name": _short(path), "path": path}


def _search(program: str, args: list[str], line: str) -> Action:
    words = _operands(args, _SEARCHING[program])
    place = words[1] if len(words) > 1 else None
    if program == "rg" and "--files" in args:
        return {"type": "list_files", "cmd": line, "path": _short(words[0]) if words else None}
    if program == "fd" and len(words) < 2 and all("/" in word for word in words):
        return {"type": "list_files", "cmd": line, "path": _short(words[0]) if words else None}
    return {"type": "search", "cmd": line, "query": words[0] if words else None, "path": _short(place) if place else None}


def _find(args: list[str], line: str) -> Action:
    place = next((_short(arg) for arg in args if not arg.startswith(("-", "!", "("))), None)
    for number, name in enumerate(args[:-1]):
        if name in ("-name", "-iname", "-path", "-regex"):
            return {"type": "search", "cmd": line, "query": args[number + 1], "path": place}
    return {"type": "list_files", "cmd": line, "path": place}


def _file_of(argv: Sequence[str]) -> str | None:
    """Return the file that a command reads, or None."""
    program, args = argv[0], list(argv[1:])
    if program in _READING:
        words = _operands(args)
        return words[0] if len(words) == 1 else None
    reader = _READERS.get(program)
    return None if reader is None else reader(args)


def _first_lines(args: list[str]) -> str | None:
    """Return the file argument of `head` or `tail`, even after a number of lines."""
    if len(args) == 1 and not args[0].startswith("-"):
        return args[0]
    if args[:1] == ["-n"]:
        args = ["-n" + "".join(args[1:2]), *args[2:]]
    counted = len(args) == 2 and args[0].startswith("-n") and args[0][2:].removeprefix("+").isdecimal()
    return args[1] if counted else None


def _lines(args: list[str]) -> str | None:
    """Return the file of `sed -n RANGEp FILE`."""
    fits = len(args) == 3 and args[0] == "-n" and args[1][-1:] == "p" and args[1][:-1].replace(",", "", 1).isdecimal()
    return args[2] if fits else None


def _numbered(args: list[str]) -> str | None:
    words = _operands(args, ("-s", "-w", "-v", "-i", "-b"))
    return words[0] if words else None


def _awk(args: list[str]) -> str | None:
    words = _operands(args, ("-F", "-v", "-f"))
    return words[1] if len(words) > 1 else None


_READERS: dict[str, Callable[[list[str]], str | None]] = {
    "head": _first_lines,
    "tail": _first_lines,
    "sed": _lines,
    "nl": _numbered,
    "awk": _awk,
}
