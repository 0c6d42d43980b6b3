"""The fakes: fake-codex (app-server over stdio) and the fake Responses backend, both started as programs."""
