"""The agent of agent.py, tested in three ways: with a script, with a function as the model, and with a recording."""

from pathlib import Path

from agent import run

from codex_replay import ScriptBuilder, TurnBuilder


def test_with_a_builder(codex_backend):
    script = ScriptBuilder()
    script.turn().call("add", a=1, b=2)
    script.turn().when(tool="3").text("It is 3.")
    codex_backend.script(script)
    assert run(codex_backend.url, "1 + 2?") == "It is 3."


def test_with_a_function(codex_backend):
    def model(request):
        if request.turn == 1:
            return TurnBuilder().call("add", a=1, b=2, call_id="c1")
        return f"It is {request.outputs['c1']}."

    codex_backend.script(model)
    assert run(codex_backend.url, "1 + 2?") == "It is 3."


def test_with_a_recording(codex_backend):
    codex_backend.cassette(Path(__file__).with_name("agent.ndjson"))
    assert run(codex_backend.url, "1 + 2?") == "It is 3."
