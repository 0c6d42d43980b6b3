"""A broken fake-codex: it replays in the order of the log, so that a server frame waits for whatever stood before it."""

import sys

from fake_server.fake_codex import main
from harness.core import causality


class LogOrder(causality.Causality):
    """Everything waits for the client frame that was logged last."""

    def client(self, frame):
        self.last = frame.n
        super().client(frame)

    def server(self, frame):
        _, waits = super().server(frame)
        return ("thread", "all"), (*waits, getattr(self, "last", 0) or waits[0])


import harness.core.replay  # noqa: E402

harness.core.replay.Causality = LogOrder

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
