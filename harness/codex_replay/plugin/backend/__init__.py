"""Test a Responses backend: the fixture `backend` and its helpers."""
