"""The fakes: fake-codex (an app-server over stdio) and the fake Responses backend. Both run as programs."""
