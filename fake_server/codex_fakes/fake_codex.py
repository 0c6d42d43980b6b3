"""fake-codex: a program that takes the place of `codex`, and replays recordings of the real Codex or answers from a script.

    Arguments                 Those of the real `codex`: `app-server` with its options, `exec`, `--version`. With `--listen`, the
                              app-server serves WebSocket: a recording for each connection, or one script for all.
    FAKE_CODEX_CASSETTE       A cassette, or a directory of cassettes; the client's frames choose one of them.
    FAKE_CODEX_MATCH          How a client frame must match the recorded frame: method or exact. Default: method, and differences
                              in content are reported at the end.
    FAKE_CODEX_CAPTURE        The file of a cassette with the client's frames; `{pid}` is replaced by the process id.
    FAKE_CODEX_ENDING         With a cassette: a file to which a line of JSON is appended at the end, with the recorded frames
    that the client never sent or sent with other content, and the frames that matched nothing. FAKE_CODEX_PACE           fast
    (default), recorded, burst, or Nx (N times as fast as recorded); race:SEED without a cassette. FAKE_CODEX_SCRIPT         The
    script of the model, only without a cassette. With a script, fake-codex runs the turns itself. FAKE_CODEX_LEDGER
    Without a cassette: a file that gets a line of JSON for each request that the model would get. FAKE_CODEX_VERSION
    Without a cassette: the Codex version to imitate, 0.92.0 (default) or 0.169.0. FAKE_CODEX_STATE          Without a cassette: a
    folder that keeps threads and the script's position between processes. FAKE_CODEX_LENIENT        1: with a script, accept
    --listen and unknown features, which 0.92.0 refuses. FAKE_CODEX_FAULT          NAME or NAME:SEED: a fault of the server. The
    name `list` prints all faults.

Exit status: 0 if the client sent all recorded client frames; 1 if a frame matched nothing or never came (stderr lists such
frames); 2 if fake-codex could not run. A signal (TERM, HUP, INT) ends fake-codex in the same way as the end of stdin; then the
signal determines the exit status.

Start-up must be fast: a client must get its first answer sooner than from the real binary. Therefore the modules that are
loaded at start-up import no asyncio, argparse, json, re, dataclasses or third-party package. Rarely needed modules are
imported inside the functions that need them.
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
    """The arguments or settings of fake-codex are invalid. The message of the exception is printed on stderr."""


def main(argv: list[str]) -> int:
    """Run `codex` with the given arguments. Return the exit status."""
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
    """Return the command in the arguments: `--version`, `--help`, `app-server`, `exec`, or `schema:` and the output directory.

    Raises `Usage` for a wrong argument. `-c key=value` is added to `overrides`. A fake with a script uses the values of `-c`, and
    a fake with a recording ignores them. The arguments after `exec` are added to `rest`. Options that 0.92.0 may refuse are added
    to `refusable`.
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
    """Return the help text of fake-codex, a part of this module's docstring."""
    about, rest = (__doc__ or "").split("    Arguments", 1)
    settings = rest.partition("Start-up must be fast")[0].rstrip()
    return f"{about}Usage: fake-codex app-server [OPTIONS]\n\n    Arguments{settings}\n"


def _version() -> str:
    """Return the Codex version of the cassette.

    A client that asks for the version gets the version of the frames that it will get.
    """
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
    """Return the version in the header of the cassette, or None without a cassette.

    If the setting names a folder, the first cassette in it counts.
    """
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
    """Serve WebSocket connections at the address that the option --listen names.

    A Codex version without WebSocket refuses the option.
    """
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
    """Report a setting that is empty, and that therefore counts as unset.

    The report shows a user who wanted a recording why the fake answers from a script.
    """
    if "FAKE_CODEX_CASSETTE" in settings and not settings.get("FAKE_CODEX_SCRIPT"):
        _write_out(
            "fake-codex: FAKE_CODEX_CASSETTE is empty, so no recording is replayed and each turn gets the short default reply\n"
        )


def _refuse_both(settings: dict[str, str]) -> None:
    """Raise `ValueError` if a recording and a script are both set, because only one of them can be used."""
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
    """Write a text to stderr, without secrets and control characters. Ignore a closed stderr."""
    from codex_replay.core.redact.sentence import sentence

    try:
        sys.stderr.write(sentence(text))
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
