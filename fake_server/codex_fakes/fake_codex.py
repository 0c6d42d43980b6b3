"""fake-codex: a drop-in `codex` that replays recordings of the real Codex, or answers from a script.

A fast start is a feature: a client's first answer must come sooner than from the real binary. The start-up path therefore imports
no asyncio, argparse, json, re, dataclasses or third-party package; rarely needed modules are imported where they are used.

    argv                      what the real `codex` takes: `app-server` with its options, `exec`, `--version`; with `--listen`
                              at a WebSocket, one recording for each connection, or one script for all
    FAKE_CODEX_CASSETTE       a cassette, or a directory of cassettes (the client's frames choose among them)
    FAKE_CODEX_MATCH          method or exact: what a client frame must have in common with the recorded frame; default: the
                              method, and differences in content are reported at the end
    FAKE_CODEX_CAPTURE        a file that gets the client's frames, as a cassette; `{pid}` is replaced by the process id
    FAKE_CODEX_ENDING         with a cassette: a file that gets a line of JSON at the end: which recorded frames never came, which
                              came with other content, and which frames matched nothing
    FAKE_CODEX_PACE           fast (default), recorded, burst, or Nx (N times as fast as recorded); without a cassette race:SEED
    FAKE_CODEX_SCRIPT         without a cassette (never with one): the script of the model; fake-codex then runs the turns itself
    FAKE_CODEX_LEDGER         without a cassette: a file that gets a line of JSON for each request that the model would get
    FAKE_CODEX_VERSION        without a cassette: the Codex that is imitated, 0.92.0 (default) or 0.169.0
    FAKE_CODEX_STATE          without a cassette: a folder that keeps threads and the position in the script between processes
    FAKE_CODEX_LENIENT        1: accept --listen and unknown features with a script, which 0.92.0 refuses
    FAKE_CODEX_FAULT          NAME or NAME:SEED: a fault of the server; `list` prints all faults

Exit status: 0 if all recorded client frames came; 1 if a frame matched nothing or never came (stderr lists both); 2 if it could
not run. A signal (TERM, HUP, INT) ends fake-codex in the same way as the end of stdin; the signal then determines the
exit status.
"""

from __future__ import annotations

import sys

EXIT_CANNOT = 2
# clap's own words, from the real binary.
_USAGE = {
    "codex": "Usage: codex [OPTIONS] [PROMPT]\n       codex [OPTIONS] <COMMAND> [ARGS]",
    "app-server": "Usage: codex app-server [OPTIONS] [COMMAND]",
}
_WITH_VALUE = ("-c", "--config", "--enable", "--disable")


class Usage(Exception):
    """Invalid arguments or settings; the text is printed on stderr."""


def main(argv: list[str]) -> int:
    """Run `codex` with these arguments; return the exit status."""
    try:
        overrides: list[tuple[str, str]] = []
        rest: list[str] = []
        refusable: list[tuple[str, str]] = []
        command = _parse(argv, overrides, rest, refusable)
        if command == "--version":
            sys.stdout.write(f"codex-cli {_version()}\n")
            return 0
        if command == "--help":
            sys.stdout.write(_help())
            return 0
        if command == "app-server":
            return _app_server(overrides, refusable)
        if command == "exec":
            from codex_fakes.exec.command import run

            return run(rest, overrides)
        return _generate_json_schema(command)
    except Usage as error:
        _write_out(f"{error}\n")
        return EXIT_CANNOT
    except KeyboardInterrupt:
        from codex_fakes.stdio.loop import die

        die(2)  # SIGINT
        raise


def _parse(argv: list[str], overrides: list[tuple[str, str]], rest: list[str], refusable: list[tuple[str, str]]) -> str:
    """Return `--version`, `--help`, `app-server`, `exec`, or the output directory after `schema:`; raises `Usage`.

    `-c key=value` is stored in `overrides`: a fake with a script uses it, and a fake with a recording follows the recording. The
    text after `exec` is stored in `rest`. Options that 0.92.0 may refuse are stored in `refusable`.
    """
    level, words = "codex", iter(argv)
    out: str | None = None
    for word in words:
        name, equals, value = word.partition("=")
        if name in _WITH_VALUE or (name in ("--listen", "--out", "-o") and level != "codex"):
            taken = value if equals else next(words, None)
            if taken is None or (not taken and name != "--listen"):
                raise Usage(
                    f"error: a value is required for '{name}' but none was supplied\n\nFor more information, try '--help'."
                )
            value = taken
            if name in ("--listen", "--enable", "--disable"):
                refusable.append((name, value))
            if name in ("--enable", "--disable"):
                overrides.append((f"features.{value}", "true" if name == "--enable" else "false"))
            if name in ("--out", "-o"):
                out = value
            if name in ("-c", "--config"):
                key, _, given = value.partition("=")
                overrides.append((key.strip(), given.strip()))
                refusable.append(("-c", value))
        elif word in ("--version", "-V") and level == "codex":
            return "--version"
        elif word in ("--help", "-h"):
            return "--help"
        elif word == "--stdio" and level == "app-server":
            refusable.append((word, "stdio://"))
        elif word in ("exec", "e") and level == "codex":
            rest += words
            return "exec"
        elif word == "app-server" and level == "codex":
            level = "app-server"
        elif word == "generate-json-schema" and level == "app-server":
            level = "schema"
        elif not (word == "--analytics-default-enabled" and level == "app-server"):
            what = "argument" if word.startswith("-") or level != "codex" else "command (fake-codex has only app-server and exec)"
            usage = _USAGE.get(level, _USAGE["app-server"])
            raise Usage(f"error: unexpected {what} '{word}' found\n\n{usage}\n\nFor more information, try '--help'.")
    if level == "codex":
        raise Usage("error: fake-codex has no terminal interface: start it as `fake-codex app-server`")
    if level == "schema":
        if out is None:
            raise Usage(
                "error: the following required arguments were not provided:\n  --out <DIR>\n\nFor more information, try '--help'."
            )
        return f"schema:{out}"
    return level


def _help() -> str:
    """Return the help text: the docstring of this module, because the help of the real Codex does not apply to the fake."""
    about, settings = (__doc__ or "").split("A fast start is a feature", 1)
    return f"{about}Usage: fake-codex app-server [OPTIONS]\n\n    argv{settings.partition('    argv')[2]}"


def _version() -> str:
    """Return the recorded Codex version, so that a client that asks for it gets the version whose frames it will get."""
    from codex_replay.protocol.data_tables import no_version
    from codex_replay.protocol.versions import DEFAULT, is_version

    recorded = _recorded_version()
    if recorded is None:
        import os

        given = os.environ.get("FAKE_CODEX_VERSION", "")
        return given if is_version(given) else DEFAULT
    if is_version(recorded):
        return recorded
    _write_out(f"fake-codex: {no_version(recorded)}; --version prints {DEFAULT}, which may differ from the recorded version.\n")
    return DEFAULT


def _recorded_version() -> str | None:
    """Return the version in the header of the cassette (in a folder: of its first cassette), or None without a cassette."""
    import os

    path = os.environ.get("FAKE_CODEX_CASSETTE", "")
    if not path:
        return None
    from codex_fakes.replaying.app_server import cassettes
    from codex_replay.shell.cassettes.file import CassetteError, CassetteReader

    try:
        with CassetteReader(cassettes(path)[0]) as reader:
            return reader.header.codex
    except (CassetteError, ValueError) as error:
        raise Usage(f"fake-codex: {error}") from None


def _generate_json_schema(command: str) -> int:
    import os

    from codex_replay.protocol.data_tables import MissingTable, no_version, schema
    from codex_replay.protocol.versions import DEFAULT, is_version

    target = command.removeprefix("schema:")
    version = _recorded_version() or DEFAULT
    if not is_version(version):
        raise Usage(f"fake-codex: {no_version(version)}, so no schemas are written. Name the version with `record --codex V`.")
    try:
        files = schema(version)
    except MissingTable:
        raise Usage(
            f"fake-codex: The schema bundle of Codex {version} is missing; `codex-replay codex install {version}` and then "
            f"`codex-replay schema regen {version} --out DIR` write it."
        ) from None
    try:
        for name, data in files.items():
            path = os.path.join(target, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
    except OSError as error:
        raise Usage(f"fake-codex: the schemas cannot be written to {target} ({error.strerror}); choose another --out.") from None
    return 0


def _app_server(overrides: list[tuple[str, str]], refusable: list[tuple[str, str]]) -> int:
    from posix import environ  # `os` alone would cost a tenth of the start-up

    settings = {name.decode(errors="surrogateescape"): value.decode(errors="surrogateescape") for name, value in environ.items()}
    try:
        if settings.get("FAKE_CODEX_CASSETTE"):
            _refuse_both(settings)
            return _listen(settings, overrides, refusable) if _listens(refusable) else _replay(settings)
        _say_empty(settings)
        if refusable:
            from codex_fakes.scripted.options import refused

            message, status = refused(refusable, _version())
            if message and settings.get("FAKE_CODEX_LENIENT") != "1":
                _write_out(message)
                return status
            if message:
                _write_out(f"fake-codex: FAKE_CODEX_LENIENT accepts what Codex refuses: {message.partition(chr(10))[0]}\n")
        return _listen(settings, overrides, refusable) if _listens(refusable) else _improvise(settings, overrides)
    except Exception as error:
        from codex_replay.core.text.error_text import error_text
        from codex_replay.shell.cassettes.file import CassetteError  # without a cassette or a capture it is not loaded otherwise

        if not isinstance(error, (ValueError, OSError, CassetteError)):
            raise
        raise Usage(f"fake-codex: {error_text(error)}") from None


def _listens(refusable: list[tuple[str, str]]) -> bool:
    return any(name == "--listen" and value != "stdio://" for name, value in refusable)


def _listen(settings: dict[str, str], overrides: list[tuple[str, str]], refusable: list[tuple[str, str]]) -> int:
    """Serve WebSocket connections at the address of --listen, which versions without WebSocket refuse."""
    from codex_fakes.listening.address import BadAddress, parse
    from codex_fakes.scripted.options import unlistening

    message = unlistening(refusable, _version())
    if message and settings.get("FAKE_CODEX_LENIENT") != "1":
        _write_out(message)
        return EXIT_CANNOT
    value = next(value for name, value in refusable if name == "--listen")
    try:
        address = parse(value, settings.get("CODEX_HOME") or settings.get("HOME", "") + "/.codex")
        from codex_fakes.listening.listener import run

        return run(address, settings, overrides)
    except BadAddress as error:
        _write_out(f"{error}\n")
        return error.status


def _say_empty(settings: dict[str, str]) -> None:
    """Report an empty setting.

    An empty setting counts as unset, so a script answers, and a user who wanted a recording must learn that.
    """
    if "FAKE_CODEX_CASSETTE" in settings and not settings.get("FAKE_CODEX_SCRIPT"):
        _write_out(
            "fake-codex: FAKE_CODEX_CASSETTE is empty, so no recording is replayed and each turn gets the short default reply\n"
        )


def _refuse_both(settings: dict[str, str]) -> None:
    """Raise `ValueError` if a recording and a script are both set, because a user might mistake one for the other."""
    if settings.get("FAKE_CODEX_SCRIPT"):
        raise ValueError("FAKE_CODEX_CASSETTE and FAKE_CODEX_SCRIPT are both set; unset one of them.")


def _replay(settings: dict[str, str]) -> int:
    from codex_fakes.replaying.app_server import AppServer

    server = AppServer(settings)
    server.install_signal_handlers()
    server.run()
    return server.close()


def _improvise(settings: dict[str, str], overrides: list[tuple[str, str]]) -> int:
    from codex_fakes.scripted.server import ScriptedServer

    server = ScriptedServer(settings, overrides)
    server.install_signal_handlers()
    server.run()
    return server.close()


def _write_out(text: str) -> None:
    """Write to stderr, without secrets and control characters; a closed stderr is ignored."""
    from codex_replay.core.redact.sentence import sentence

    try:
        sys.stderr.write(sentence(text))
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
