"""The fakes: fake-codex (app-server over stdio) and the fake Responses backend, started as programs like the real ones."""
