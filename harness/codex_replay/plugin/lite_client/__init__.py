"""Test a lite client: the fixture `lite_client` and its helpers."""
