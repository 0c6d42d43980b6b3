"""Parts that all fixtures of the plugin share: options, names of cases, programs under test, folders."""
