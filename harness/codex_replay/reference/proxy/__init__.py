"""A small reference proxy with OpenAI's HTTP API in front of `codex app-server`; `python -m codex_replay.reference.proxy` runs
it.

The proxy exists to be tested: it must pass the suite for proxies, and its broken variants must fail the suite's checks. The proxy
shares no module with that suite. The proxy is written from the statements PAY and HAND (profile `as-specified`), and from
the behaviour of the
real Codex (profile `works-on-0.92`). docs/reference-proxy.md is its manual.

    __main__  app  http                     a request comes in, an answer goes out
    chat  responses  sse                    the two shapes of an answer
    normalise  tools  models  intercept     what was asked
    instructions  parameters  examples  payloads   messages to the app-server
    exchange  events  appserver  pool       the conversation with the app-server
    toolcalls  pieces  textjson             the output of the model
    settings  errors  json_text              beneath all of them
"""
