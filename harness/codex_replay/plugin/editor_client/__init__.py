"""Test an editor client: the fixture `editor_client` and its helpers."""
