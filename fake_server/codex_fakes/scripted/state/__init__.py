"""What the scripted fake keeps: settings, threads, ids, waits."""
