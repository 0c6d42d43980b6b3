"""A broken fake-codex: it replays in the order of the log, so that a server frame waits for whatever stood before it."""

import sys

from codex_fakes.fake_codex import main
from codex_replay.core.replay import causality


class LogOrder(causality.Causality):
    """Everything waits for the client frame that was logged last."""

    def client(self, frame):
        self.last = frame.n
        super().client(frame)

    def server(self, frame):
        _, waits = super().server(frame)
        return ("thread", "all"), (*waits, getattr(self, "last", 0) or waits[0])


import codex_replay.core.replay.track  # noqa: E402

codex_replay.core.replay.track.Causality = LogOrder

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
