"""A small reference proxy with OpenAI's HTTP API in front of `codex app-server`.

The command `python -m codex_replay.reference.proxy` runs the proxy. The proxy exists to be tested: it must pass the suite
for proxies, and its broken variants must fail the suite's checks. The proxy shares no module with the suite. In the profile
`as-specified`, the proxy follows the statements PAY-nn and HAND-nn in docs/contract. In the profile `works-on-0.92`, the
proxy sends the requests that the real Codex 0.92.0 supports. docs/reference-proxy.md is the manual of the proxy.

    __main__  app  wire/http                receive a request, send an answer
    answering/chat  responses  wire/sse     the two forms of an answer
    asking/normalise  tools  models  intercept     parse the request
    asking/instructions  parameters  examples  payloads   messages to the app-server
    exchange  answering/events  wire/app_server  pool     the conversation with the app-server
    answering/tool_calls  chunks  wire/text_json   the output of the model
    settings  errors  wire/json_text        used by all other modules
"""
