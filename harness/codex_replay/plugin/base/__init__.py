"""What every part of the plugin uses: options, names of cases, subjects, folders, programs."""
