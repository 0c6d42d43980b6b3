"""Shared parts of the plugin: options, names of cases, subjects, folders, programs."""
