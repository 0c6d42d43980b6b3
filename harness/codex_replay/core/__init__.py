"""Pure core: plain functions and state machines over bytes and values; no sockets, files, processes or clocks."""
