"""Find the actions that Codex shows next to a shell command: files that the command reads, lists or searches, or "unknown".

The rules here were derived from about two hundred commands that the real Codex was given. Only scripts of plain words,
joined by && || ; |, are analysed; any other script has the single action "unknown". Commands that only format the output of
other commands are omitted.
"""

from __future__ import annotations

from itertools import groupby, pairwise

from codex_replay.protocol.turn.tools import is_line_range, join, plain_commands

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
_LISTED_BY_GIT = ("--exclude", "--exclude-from", "--pathspec-from-file")
_RG = ("-g", "--glob", "--iglob", "-t", "--type", "--type-add", "--type-not", "-m", "--max-count", "-A", "-B", "-C", "--context",
       "--max-depth")  # fmt: skip
_AG = ("-G", "-g", "--file-search-regex", "--ignore-dir", "--ignore-file", "--path-to-ignore")
_GREP = ("-m", "--max-count", "-A", "--after-context", "-B", "--before-context", "-C", "--context")
_GIVEN_PATTERN = ("-e", "--regexp", "-f", "--file")  # the options of grep that replace its first operand
#: Commands that search, and their options that take a value.
_SEARCHING = {
    **dict.fromkeys(("rg", "rga", "ripgrep-all"), _RG),
    **dict.fromkeys(("ag", "ack", "pt"), _AG),
    "fd": ("-t", "--type", "-e", "--extension", "-E", "--exclude", "--search-path"),
}
#: Commands that read one file, and their options that take a value.
_READING = {
    "cat": (),
    "more": (),
    "less": ("-p", "-P", "-x", "-y", "-z", "-j", "--pattern", "--prompt", "--tabs", "--shift", "--jump-target"),
    **dict.fromkeys(("bat", "batcat"), ("--theme", "--language", "--style", "--terminal-width", "--tabs", "--line-range",
                                        "--map-syntax")),
}  # fmt: skip
#: What makes a script of `python -c` one that lists files.
_WALKS = ("os.walk", "os.listdir", "os.scandir", "glob.glob", "glob.iglob", "pathlib.Path", ".rglob(")


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
    is_range = any(list(argv[:2]) == ["sed", "-n"] for argv in commands)
    if len(found) == 1 and found[0]["type"] == "read" and "|" in script and is_range:
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


def _formats(argv: Sequence[str]) -> bool:
    """Return True if a command only formats the output of other commands."""
    if argv[0] in ("head", "tail") and len(argv) > 2:
        sign = "+" if argv[0] == "tail" else ""
        return len(argv) == 3 and argv[1] in ("-n", "-c") and argv[2].removeprefix(sign).isdecimal()
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


def _tokens(args: Sequence[str], valued: Sequence[str] = ()) -> list[str]:
    """Return the operands that do not look like options, even after `--`."""
    return [word for word in _operands(args, valued) if not word.startswith("-")]


def _summary(argv: list[str]) -> Action:
    program, args, line = argv[0], argv[1:], join(argv)
    if program in _LISTING or argv[:2] == ["git", "ls-files"]:
        places = _operands(args, _LISTING[program]) if program != "git" else _operands(args[1:], _LISTED_BY_GIT)
        return _listing(line, places)
    if program in ("grep", "egrep", "fgrep") or argv[:2] == ["git", "grep"]:
        return _grep(args if program != "git" else args[1:], line)
    if program in _SEARCHING:
        return _search(program, args, line)
    if program == "find":
        return _find(args, line)
    if program.startswith(("python2.", "python3.")) or program in ("python", "python2", "python3"):
        script = args[args.index("-c") + 1 :][:1] if "-c" in args else []
        return _listing(line, []) if script and any(sign in script[0] for sign in _WALKS) else _unknown(line)
    path = _file_of(argv)
    return _unknown(line) if path is None else {"type": "read", "cmd": line, "name": _short(path), "path": path}


def _listing(line: str, places: Sequence[str]) -> Action:
    return {"type": "list_files", "cmd": line, "path": _short(places[0]) if places else None}


def _searching(line: str, query: str | None, places: Sequence[str]) -> Action:
    return {"type": "search", "cmd": line, "query": query, "path": _short(places[0]) if places else None}


def _grep(args: list[str], line: str) -> Action:
    words = _operands(args, (*_GREP, *_GIVEN_PATTERN))
    before = args[: args.index("--")] if "--" in args else args
    given = [value for option, value in pairwise(before) if option in _GIVEN_PATTERN]
    return _searching(line, given[0], words) if given else _searching(line, words[0] if words else None, words[1:])


def _search(program: str, args: list[str], line: str) -> Action:
    words = _tokens(args, _SEARCHING[program])
    if _SEARCHING[program] is _RG and "--files" in args:
        return _listing(line, words)
    if program == "fd" and len(words) < 2 and all(word in (".", "..") or {"/", "\\"}.intersection(word) for word in words):
        return _listing(line, words)
    return _searching(line, words[0] if words else None, words[1:])


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
        words = _operands(args, _READING[program])
        return words[0] if len(words) == 1 else None
    reader = _READERS.get(program)
    return None if reader is None else reader(args)


def _head(args: list[str]) -> str | None:
    return _first_lines(args, "")


def _tail(args: list[str]) -> str | None:
    return _first_lines(args, "+")


def _first_lines(args: list[str], sign: str) -> str | None:
    """Return the file argument of `head` or `tail`, even after a number of lines; the number may begin with `sign`."""
    if len(args) == 1 and not args[0].startswith("-"):
        return args[0]
    if args[:1] == ["-n"]:
        args = ["-n" + "".join(args[1:2]), *args[2:]]
    if not args or not args[0].startswith("-n") or not args[0][2:].removeprefix(sign).isdecimal():
        return None
    return next((word for word in args[1:] if not word.startswith("-")), None)


def _lines(args: list[str]) -> str | None:
    """Return the file of `sed -n RANGEp FILE`."""
    scripts = [value for option, value in pairwise(args) if option in ("-e", "--expression")]
    words = _tokens(args, ("-e", "--expression", "-f", "--file"))
    if "-n" not in args or not any(map(is_line_range, [*scripts, *words])):
        return None
    words = words[1:] if words and is_line_range(words[0]) else words
    return words[0] if words else None


def _numbered(args: list[str]) -> str | None:
    words = _tokens(args, ("-s", "-w", "-v", "-i", "-b"))
    return words[0] if words else None


def _awk(args: list[str]) -> str | None:
    words = _tokens(args, ("-F", "-v", "-f", "--field-separator", "--assign", "--file"))
    words = words if {"-f", "--file"}.intersection(args) else words[1:]
    return words[0] if words else None


_READERS: dict[str, Callable[[list[str]], str | None]] = {
    "head": _head,
    "tail": _tail,
    "sed": _lines,
    "nl": _numbered,
    "awk": _awk,
}
