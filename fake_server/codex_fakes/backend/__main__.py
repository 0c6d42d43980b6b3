"""Serve the fake Responses backend: `python -m codex_fakes.backend`."""

from __future__ import annotations

import gc
import sys
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A placeholder for a module that is not imported yet. The module is imported when a program uses one of its names."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        module = __import__(self.__name__)
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


def main(argv: list[str] | None = None) -> int:
    """Run the program; return its exit status."""
    gc.disable()  # imports leave no garbage to look for; the server sets its own threshold
    # The backend serves plain HTTP, and asyncio works without ssl, which takes a tenth of the start. None makes its import fail.
    sys.modules.setdefault("ssl", None)  # type: ignore[arg-type]
    for name in ("inspect", "linecache"):  # asyncio imports both, for error messages; another tenth of the start
        sys.modules.setdefault(name, _Later(name))
    from codex_fakes.backend.server import main as serve

    return serve(argv)


if __name__ == "__main__":
    sys.exit(main())
