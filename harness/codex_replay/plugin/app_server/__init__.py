"""Test an app-server: the fixture `app_server` and its helpers."""
