"""Read YAML that a user has written."""

from __future__ import annotations

from typing import Any


def load_yaml(text: str, loader: Any = None) -> object:
    """Return the value of a YAML text.

    Raises `ValueError` with the reason if the text is invalid. PyYAML raises other errors for scalars with a wrong tag or
    an impossible date (`!!bool x`, `9999-99-99`), which are converted to `ValueError`.
    """
    import yaml  # most commands read no YAML

    try:
        return yaml.load(text, loader or yaml.SafeLoader)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except yaml.YAMLError as error:
        raise ValueError(str(error).replace("\n", " ")) from error
    except (ValueError, KeyError, AttributeError, TypeError, OverflowError) as error:
        raise ValueError(f"a value does not have the form of its tag ({type(error).__name__}: {error})") from None
