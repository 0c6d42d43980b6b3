"""The state of the scripted fake: settings, threads, ids, and waits."""
