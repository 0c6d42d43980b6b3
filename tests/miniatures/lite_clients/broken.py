"""Lite clients that are wrong in one small way each: `python broken.py NAME PROMPT` is the reference with NAME done to it.

Every variant is a function whose docstring says what it does wrong; it patches the reference by name. matrix.py tells which
checks of the suite see it.
"""

from __future__ import annotations

import itertools
import json
import sys
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from harness.reference.lite_client import __main__ as program
from harness.reference.lite_client import auth, client, refresh, reply, settings, sse, tools, transport
from harness.reference.lite_client.errors import Problem

Client, Auth, Reply, Tools = client.Client, auth.Auth, reply.Reply, tools.Tools
VARIANTS: dict[str, Callable[[], None]] = {}


def variant(patch: Callable[[], None]) -> Callable[[], None]:
    VARIANTS[patch.__name__.replace("_", "-")] = patch
    return patch


def after(owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Let `change(result, *arguments)` replace what a function returns."""
    old = getattr(owner, name)
    setattr(owner, name, lambda *given: change(old(*given), *given))


def in_body(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    after(Client, "body", lambda body, *_: change(body))


def in_headers(change: Callable[[dict[str, str], Any], dict[str, str]]) -> None:
    after(Client, "headers", lambda headers, self: change(headers, self))


def without(mapping: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


# -- endpoint, prompt, text ----------------------------------------------------------------------------------------------


@variant
def chat_completions() -> None:
    """Posts to /chat/completions."""
    Client.url = lambda self: self.settings.base_url + "/chat/completions"  # type: ignore[method-assign]


@variant
def chatgpt_path_always() -> None:
    """Appends ChatGPT's path to every base URL that does not end in it."""
    path = "/backend-api/codex"
    Client.url = lambda self: self.settings.base_url.removesuffix(path) + path + "/responses"  # type: ignore[method-assign]


@variant
def asks_twice() -> None:
    """Sends every request twice and uses the second answer."""
    old = Client.ask
    Client.ask = lambda self, given: (old(self, given), old(self, given))[1]  # type: ignore[method-assign]


@variant
def prompt_on_one_line() -> None:
    """Collapses the white space of the prompt."""
    old = client.user_message
    client.user_message = lambda prompt: old(" ".join(prompt.split()))


@variant
def prompt_ascii_only() -> None:
    """Drops the characters of the prompt that are not ASCII."""
    old = client.user_message
    client.user_message = lambda prompt: old(prompt.encode("ascii", "ignore").decode())


@variant
def says_more() -> None:
    """Prints a line of its own before the text."""
    after(program, "answer", lambda text, *_: "Assistant:\n" + text)


@variant
def strips_the_text() -> None:
    """Prints the text with its lines stripped."""
    after(program, "answer", lambda text, *_: "\n".join(line.strip() for line in text.split("\n")))


@variant
def prints_every_text() -> None:
    """Prints the texts of all responses, not of the last one alone."""
    said: list[str] = []
    after(Client, "ask", lambda answer, *_: (said.append(answer.text), answer)[1])
    after(program, "answer", lambda *_: "\n".join(filter(None, said)))


# -- auth ------------------------------------------------------------------------------------------------------------------


@variant
def ignores_auth_mode() -> None:
    """Takes the API key whenever there is one, whatever auth_mode says."""
    auth.uses_chatgpt = lambda document: not document.get("OPENAI_API_KEY")


@variant
def tokens_first() -> None:
    """Takes the tokens whenever there are some, whatever auth_mode says."""
    auth.uses_chatgpt = lambda document: bool(document.get("tokens"))


@variant
def auth_mode_needed() -> None:
    """Refuses a login without auth_mode."""

    def strict(document: dict[str, Any]) -> bool:
        if "auth_mode" not in document:
            raise Problem("The login has no auth_mode.")
        return bool(document["auth_mode"] == "chatgpt")

    auth.uses_chatgpt = strict


@variant
def bearer_without_scheme() -> None:
    """Sends the token without the word Bearer."""
    in_headers(lambda headers, _: {**headers, "Authorization": headers["Authorization"].removeprefix("Bearer ")})


@variant
def no_account() -> None:
    """Sends no chatgpt-account-id."""
    in_headers(lambda headers, _: without(headers, "chatgpt-account-id"))


@variant
def account_under_api_key() -> None:
    """Sends the account under an API key too."""

    def add(headers: dict[str, str], self: Any) -> dict[str, str]:
        account = self.auth.tokens.get("account_id")
        return {**headers, "chatgpt-account-id": account} if account else headers

    in_headers(add)


@variant
def account_from_tokens_alone() -> None:
    """Does not look into the id token for the account."""
    auth.account_of = lambda id_token: None


@variant
def account_from_id_token_alone() -> None:
    """Does not look at tokens.account_id."""
    Auth.account_id = lambda self: auth.account_of(self.tokens.get("id_token"))  # type: ignore[method-assign]


@variant
def id_token_is_an_object() -> None:
    """Falls over when the id token is a string."""
    auth.account_of = lambda id_token: id_token.get("chatgpt_account_id")  # type: ignore[attr-defined]


@variant
def plain_base64() -> None:
    """Decodes the JWT with the plain alphabet of base64, and without padding."""
    import base64

    def claims(token: str) -> dict[str, Any]:
        try:
            return dict(json.loads(base64.b64decode(token.split(".")[1], validate=True)))
        except ValueError:
            return {}

    auth.jwt_claims = claims


@variant
def touches_the_login() -> None:
    """Writes auth.json anew at every start."""
    old = Auth.__init__

    def start(self: Any, path: Any) -> None:
        old(self, path)
        auth.write(path, self.document)

    Auth.__init__ = start  # type: ignore[method-assign]


@variant
def anonymous() -> None:
    """Sends an empty bearer when the login has none."""
    old = settings.read_json

    def read(path: Any, what: str) -> Any:
        try:
            found = old(path, what)
        except Problem:
            found = {}
        found = found if isinstance(found, dict) else {}
        return {
            **found,
            "tokens": {"access_token": " ", **(found.get("tokens") or {})},
            "OPENAI_API_KEY": found.get("OPENAI_API_KEY") or " ",
        }

    auth.read_json = read  # type: ignore[attr-defined]


# -- headers -----------------------------------------------------------------------------------------------------------------


@variant
def no_originator() -> None:
    """Sends no originator."""
    in_headers(lambda headers, _: without(headers, "originator"))


@variant
def library_user_agent() -> None:
    """Sends the user agent of its HTTP library."""
    in_headers(lambda headers, _: {**headers, "User-Agent": "Python-urllib/3.11"})


@variant
def user_agent_without_version() -> None:
    """Sends a user agent without a version."""
    in_headers(lambda headers, _: {**headers, "User-Agent": "codex_cli_rs"})


@variant
def session_id_no_uuid() -> None:
    """Sends a session id that is no uuid."""
    in_headers(lambda headers, self: {**headers, "session_id": self.conversation.replace("-", "")[:12]})


@variant
def session_id_in_hex() -> None:
    """Sends the uuid without its dashes, as header and as cache key."""
    old = Client.__init__

    def start(self: Any, *given: Any) -> None:
        old(self, *given)
        self.conversation = self.conversation.replace("-", "")

    Client.__init__ = start  # type: ignore[method-assign]


@variant
def session_id_per_request() -> None:
    """Makes a new session id for each request."""
    in_headers(lambda headers, _: {**headers, "session_id": str(uuid.uuid4())})


@variant
def session_id_fixed() -> None:
    """Has one session id for all conversations."""
    client.uuid.uuid4 = lambda: uuid.UUID(int=7)  # type: ignore[attr-defined]


@variant
def first_headers_only() -> None:
    """Leaves the originator out of every request but the first."""
    count = itertools.count()
    in_headers(lambda headers, _: headers if next(count) == 0 else {**headers, "originator": "else"})


# -- body --------------------------------------------------------------------------------------------------------------------


@variant
def model_fixed() -> None:
    """Asks for gpt-5.2-codex whatever it was told."""
    in_body(lambda body: {**body, "model": "gpt-5.2-codex"})


@variant
def model_default_other() -> None:
    """Asks for another model when it is told none."""
    settings.MODEL = "gpt-5.2"


@variant
def system_message() -> None:
    """Sends the instructions as a message of the input."""
    in_body(
        lambda body: {
            **body,
            "instructions": "",
            "input": [{"type": "message", "role": "developer", "content": body["instructions"]}, *body["input"]],
        }
    )


@variant
def input_is_a_string() -> None:
    """Sends the first prompt as a plain string."""

    def plain(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "input": body["input"][0]["content"][0]["text"]} if len(body["input"]) == 1 else body

    in_body(plain)


@variant
def tool_choice_missing() -> None:
    """Leaves tool_choice out."""
    in_body(lambda body: without(body, "tool_choice"))


@variant
def parallel_calls() -> None:
    """Asks for parallel tool calls."""
    in_body(lambda body: {**body, "parallel_tool_calls": True})


@variant
def no_reasoning() -> None:
    """Sends no reasoning settings."""
    in_body(lambda body: without(body, "reasoning"))


@variant
def stores() -> None:
    """Asks the backend to store the response."""
    in_body(lambda body: {**body, "store": True})


@variant
def does_not_stream() -> None:
    """Asks for the response as one JSON document."""
    in_body(lambda body: {**body, "stream": False})


@variant
def no_include() -> None:
    """Does not ask for encrypted reasoning."""
    in_body(lambda body: without(body, "include"))


@variant
def cache_key_per_request() -> None:
    """Makes a new prompt_cache_key for each request."""
    in_body(lambda body: {**body, "prompt_cache_key": str(uuid.uuid4())})


@variant
def more_fields() -> None:
    """Sends fields of another API."""
    in_body(lambda body: {**body, "max_output_tokens": 4096, "temperature": 0.2})


@variant
def schema_not_strict() -> None:
    """Sends the output schema without strict."""
    in_body(
        lambda body: {
            **body,
            "text": {
                **body["text"],
                **({"format": {**body["text"]["format"], "strict": False}} if "format" in body["text"] else {}),
            },
        }
    )


@variant
def low_verbosity() -> None:
    """Asks for low verbosity."""
    in_body(lambda body: {**body, "text": {**body["text"], "verbosity": "low"}})


@variant
def json_always() -> None:
    """Asks for JSON though no schema is given."""
    in_body(lambda body: {**body, "text": {"format": {"type": "json_object"}, **body["text"]}})


# -- tools -------------------------------------------------------------------------------------------------------------------


def in_tools(change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    in_body(lambda body: {**body, "tools": [tool for tool in map(change, body["tools"]) if tool is not None]})


@variant
def nested_functions() -> None:
    """Declares functions as the chat completions API has them."""
    in_tools(lambda t: {"type": "function", "function": without(t, "type")} if t["type"] == "function" else t)


@variant
def strict_functions() -> None:
    """Declares every function as strict."""
    in_tools(lambda tool: {**tool, "strict": True} if tool["type"] == "function" else tool)


@variant
def search_without_access() -> None:
    """Leaves external_web_access out of the web search tool."""
    in_tools(lambda tool: without(tool, "external_web_access"))


@variant
def custom_as_function() -> None:
    """Declares freeform tools as functions with one string."""
    in_tools(lambda tool: {**without(tool, "format"), "type": "function"} if tool["type"] == "custom" else tool)


@variant
def tools_sorted() -> None:
    """Declares the tools sorted by type."""
    in_body(lambda body: {**body, "tools": sorted(body["tools"], key=lambda tool: str(tool["type"]), reverse=True)})


@variant
def tools_once() -> None:
    """Declares the tools in the first request only."""
    in_body(lambda body: body if len(body["input"]) == 1 else {**body, "tools": []})


@variant
def own_tool() -> None:
    """Declares a tool of its own when it is given none."""
    in_body(lambda body: {**body, "tools": body["tools"] or [{"type": "web_search", "external_web_access": True}]})


@variant
def checks_schemas() -> None:
    """Refuses to send a tool whose schema it takes for invalid."""

    def strict(body: dict[str, Any]) -> dict[str, Any]:
        if any(tool.get("parameters", {}).get("type", "object") != "object" for tool in body["tools"]):
            raise Problem("A tool has an invalid schema.")
        return body

    in_body(strict)


# -- streams -----------------------------------------------------------------------------------------------------------------


@variant
def last_delta_only() -> None:
    """Keeps the last delta of an item instead of joining them."""
    Reply.joined = lambda self, key: self._pieces[key][-1] if key in self._pieces else None  # type: ignore[method-assign]
    trusts_deltas()


def trusts_deltas() -> None:
    def done(self: Any, event: dict[str, Any]) -> None:
        item = dict(event["item"])
        joined = self.joined(str(event.get("item_id") or item.get("id") or event.get("output_index")))
        field = reply.CALLS.get(item["type"])
        if joined is not None and field:
            item[field] = joined
        elif joined is not None:
            item["content"] = [{"type": "output_text", "text": joined}]
        self._items[event["output_index"]] = item

    Reply.done = done  # type: ignore[method-assign]


@variant
def deltas_are_trimmed() -> None:
    """Strips each delta before it joins them."""
    Reply.joined = lambda self, key: "".join(p.strip() for p in self._pieces[key]) if key in self._pieces else None  # type: ignore[method-assign]
    trusts_deltas()


@variant
def deltas_in_one_pot() -> None:
    """Joins the deltas of all open items into one."""
    reply._key = lambda event: "all"
    trusts_deltas()
    one = Reply.done

    def done(self: Any, event: dict[str, Any]) -> None:
        one(self, {**event, "item_id": "all"})
        self._pieces.clear()

    Reply.done = done  # type: ignore[method-assign]


@variant
def deltas_are_believed() -> None:
    """Never compares what it joined with the finished item."""
    trusts_deltas()


@variant
def needs_done_events() -> None:
    """Takes the text from output_text.done, which is not among the key events."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        event = json.loads(data)
        if event.get("type") in ("response.output_text.done", "response.function_call_arguments.done"):
            self.whole = {**getattr(self, "whole", {}), event["item_id"]: True}
        finished = event.get("type") == "response.output_item.done" and event["item"].get("type") in ("message", "function_call")
        if not finished or event["item"].get("id") in getattr(self, "whole", {}):
            old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]


@variant
def rewrites_arguments() -> None:
    """Parses the arguments and sends them back written anew."""

    def compact(item: Any, *_: Any) -> Any:
        if item and item["type"] == "function_call":
            try:
                return {**item, "arguments": json.dumps(json.loads(item["arguments"]))}
            except ValueError:
                return {**item, "arguments": "{}"}
        return item

    after(client, "sent_back", compact)


@variant
def decodes_chunks() -> None:
    """Decodes each chunk by itself, so that a character cut in two is lost."""
    old = sse.lines
    sse.lines = lambda chunks: old(chunk.decode("utf-8", "replace").encode() for chunk in chunks)


@variant
def lf_only() -> None:
    """Knows lines that end in LF only."""

    def lines(chunks: Any) -> Any:
        rest = b""
        for chunk in chunks:
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (line.decode() for line in whole)

    sse.lines = lines


@variant
def comments_are_data() -> None:
    """Takes every line that is not empty for data."""

    def events(chunks: Any) -> Any:
        for line in sse.lines(chunks):
            if line and not line.startswith("event:"):
                yield "", line.removeprefix("data:").strip()

    sse.events = events


@variant
def known_events_only() -> None:
    """Fails on an event that it does not know."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        if "codex_replay" in name:
            raise Problem(f"Unknown event {name}.")
        old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]


@variant
def an_event_per_chunk() -> None:
    """Takes each chunk for whole events."""

    def events(chunks: Any) -> Any:
        for chunk in chunks:
            for block in chunk.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n"):
                data = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
                if data:
                    yield "", data[0]

    sse.events = events


@variant
def reasoning_is_text() -> None:
    """Prints the summary of the reasoning before the text."""
    old = reply.words
    reply.words = lambda item: old(item) + "".join(part["text"] for part in item.get("summary", []))


@variant
def needs_usage() -> None:
    """Falls over when a response does not say what it cost."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        event = json.loads(data)
        if event.get("type") == "response.completed":
            event["response"]["usage"]["total_tokens"]
        old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]


@variant
def goes_on() -> None:
    """Asks once more after the answer."""

    def again(text: str, self: Any, prompt: str) -> str:
        self.ask([client.user_message(prompt)])
        return text

    after(Client, "run", again)


# -- follow-ups --------------------------------------------------------------------------------------------------------------


def in_follow_up(change: Callable[[list[Any]], list[Any]]) -> None:
    after(Client, "follow_up", lambda items, *_: change(items))


def is_output(item: dict[str, Any]) -> bool:
    return str(item.get("type")).endswith("_output")


@variant
def output_without_call() -> None:
    """Sends the outputs without their calls."""
    in_follow_up(lambda items: [item for item in items if not str(item.get("type")).endswith("_call")])


@variant
def call_without_output() -> None:
    """Sends the calls without their outputs."""
    in_follow_up(lambda items: [item for item in items if not is_output(item)])


@variant
def output_before_call() -> None:
    """Sends the outputs before their calls."""
    in_follow_up(lambda items: sorted(items, key=lambda item: str(item.get("type")).endswith("_call")))


@variant
def forgets_the_prompt() -> None:
    """Sends only the last call and its output."""
    in_follow_up(lambda items: [item for item in items if item.get("type") != "message"])


@variant
def forgets_earlier_calls() -> None:
    """Sends only the prompt and what came of the last response."""
    old = Client.follow_up
    Client.follow_up = lambda self, given, answer: old(self, given[:1], answer)  # type: ignore[method-assign]


@variant
def previous_response() -> None:
    """Refers to the previous response instead of sending the conversation."""

    def refer(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "previous_response_id": "resp_1"} if len(body["input"]) > 1 else body

    in_body(refer)


@variant
def stops_at_calls() -> None:
    """Takes the first response for the answer, calls or not."""
    Reply.calls = property(lambda self: [])  # type: ignore[assignment]


@variant
def one_round() -> None:
    """Does not answer the calls of a follow-up."""
    old = Client.ask

    def ask(self: Any, given: list[Any]) -> Any:
        answer = old(self, given)
        if len(given) > 1:
            answer._items = {k: v for k, v in answer._items.items() if v["type"] not in reply.CALLS}
        return answer

    Client.ask = ask  # type: ignore[method-assign]


@variant
def error_as_json() -> None:
    """Sends a failed call's output as a JSON object."""
    tools.failure = lambda what: json.dumps({"error": what})


@variant
def unknown_function_ends_it() -> None:
    """Gives up when a function is called that it does not have."""
    old = Tools.find

    def find(self: Any, name: str, given: object) -> Any:
        found = old(self, name, given)
        if found is None:
            raise Problem(f"There is no function {name}.")
        return found

    Tools.find = find  # type: ignore[method-assign]


@variant
def bad_arguments_end_it() -> None:
    """Gives up when the arguments of a call are not JSON."""
    old = Tools.call

    def call(self: Any, item: Any) -> Any:
        if item["type"] == "function_call":
            try:
                json.loads(item["arguments"])
            except ValueError:
                raise Problem("The arguments are not JSON.") from None
        return old(self, item)

    Tools.call = call  # type: ignore[method-assign]


@variant
def bad_arguments_are_empty() -> None:
    """Calls the function without arguments when they are not JSON."""
    old = Tools.call

    def call(self: Any, item: Any) -> Any:
        try:
            json.loads(item.get("arguments", "{}"))
        except ValueError:
            return "5"
        return old(self, item)

    Tools.call = call  # type: ignore[method-assign]


@variant
def truncates_output() -> None:
    """Cuts an output after 10,000 characters."""
    after(Tools, "call", lambda output, *_: output[:10_000])


@variant
def empty_output_is_none() -> None:
    """Does not answer a call that puts out nothing."""
    after(Tools, "outputs", lambda items, *_: [item for item in items if item["output"]])


@variant
def outputs_by_position() -> None:
    """Gives the calls their outputs in the order in which they finish."""

    def shuffle(items: list[Any], _: Any, calls: list[Any]) -> list[Any]:
        return [{**item, "call_id": call["call_id"]} for item, call in zip(items, calls, strict=True)]

    after(Tools, "outputs", shuffle)


@variant
def first_call_only() -> None:
    """Answers only the first of parallel calls, and forgets the others."""

    def first(items: list[Any]) -> list[Any]:
        calls = [item for item in items if str(item.get("type")).endswith("_call")]
        kept = calls[0]["call_id"] if calls else None
        return [item for item in items if item.get("call_id", kept) == kept]

    in_follow_up(first)


@variant
def ignores_arguments() -> None:
    """Gives the first result of the function, whatever it is called with."""
    Tools.find = lambda self, name, given: next((r for r in self.results if r["name"] == name), None)  # type: ignore[method-assign]


@variant
def custom_output_as_function() -> None:
    """Answers a freeform call with a function_call_output."""
    tools.OUTPUTS = dict.fromkeys(tools.OUTPUTS, "function_call_output")


@variant
def custom_calls_are_ignored() -> None:
    """Does not see freeform calls."""
    reply.CALLS = {"function_call": "arguments"}


@variant
def answers_web_search() -> None:
    """Answers a web search as if it were a call of its own."""

    def add(items: list[Any], _: Any, __: Any, answer: Any) -> list[Any]:
        searches = [item for item in answer.items if item["type"] == "web_search_call"]
        return [*items, *({"type": "function_call_output", "call_id": item["id"], "output": "ok"} for item in searches)]

    after(Client, "follow_up", add)


@variant
def searches_are_calls() -> None:
    """Goes on asking after a response with a web search."""
    Reply.calls = property(lambda self: [i for i in self.items if str(i["type"]).endswith("_call")])  # type: ignore[assignment]
    after(Tools, "outputs", lambda items, *_: items)
    tools.OUTPUTS["web_search_call"] = "function_call_output"


@variant
def search_needs_a_query() -> None:
    """Falls over when the action of a web search is not a search."""
    old = Reply.done

    def done(self: Any, event: dict[str, Any]) -> None:
        if event["item"]["type"] == "web_search_call":
            event["item"]["action"]["query"]
        old(self, event)

    Reply.done = done  # type: ignore[method-assign]


@variant
def a_failed_search_is_the_end() -> None:
    """Gives up when a web search fails."""
    old = Reply.done

    def done(self: Any, event: dict[str, Any]) -> None:
        if event["item"].get("status") == "failed":
            raise Problem("The web search failed.")
        old(self, event)

    Reply.done = done  # type: ignore[method-assign]


# -- refresh -----------------------------------------------------------------------------------------------------------------


@variant
def no_refresh() -> None:
    """Gives up at the first 401."""
    Client.may_refresh = lambda self: False  # type: ignore[method-assign]


@variant
def refreshes_twice() -> None:
    """Refreshes a second time when the new token is not accepted."""
    old = Client.ask

    def ask(self: Any, given: list[Any]) -> Any:
        try:
            return old(self, given)
        except client.Unauthorized:
            if not self.may_refresh():
                raise
            self.refresh()
            return self.send(self.body(given))

    Client.ask = ask  # type: ignore[method-assign]


@variant
def refreshes_always() -> None:
    """Refreshes at every start, good token or not."""
    old = Client.run

    def run(self: Any, prompt: str) -> str:
        if self.may_refresh():
            self.refresh()
        return old(self, prompt)

    Client.run = run  # type: ignore[method-assign]


@variant
def refreshes_under_api_key() -> None:
    """Refreshes under an API key too."""
    Client.may_refresh = lambda self: True  # type: ignore[method-assign]


@variant
def refreshes_on_any_error() -> None:
    """Takes every error for a token that is no longer good."""

    def any_error(status: int, reason: str, body: bytes) -> Problem:
        return client.Unauthorized(f"The backend answered {status}: {body.decode()}")

    client.refusal = any_error


@variant
def does_not_ask_again() -> None:
    """Refreshes, and then gives up all the same."""
    old = Client.refresh

    def give_up(self: Any) -> None:
        old(self)
        raise Problem("The token was refreshed. Try again.")

    Client.refresh = give_up  # type: ignore[method-assign]


@variant
def keeps_the_old_token() -> None:
    """Asks again with the token that was refused."""
    old = Client.refresh

    def keep(self: Any) -> None:
        before = self.auth.bearer()
        old(self)
        self.auth.bearer = lambda: before

    Client.refresh = keep  # type: ignore[method-assign]


@variant
def refresh_by_form() -> None:
    """Sends the refresh as a form."""
    old = refresh.request_body
    refresh.request_body = lambda token: urlencode(json.loads(old(token))).encode()
    refresh.request_headers = lambda: {"Content-Type": "application/x-www-form-urlencoded"}


@variant
def refresh_without_type() -> None:
    """Sends the refresh as text/plain."""
    refresh.request_headers = lambda: {"Content-Type": "text/plain"}


@variant
def refresh_at_the_backend() -> None:
    """Sends the refresh to a path of its own."""
    old = refresh.refresh
    client.tokens.refresh = lambda url, *rest: old(url + "/", *rest)  # type: ignore[attr-defined]


def in_refresh(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    after(refresh, "request_body", lambda body, *_: json.dumps(change(json.loads(body))).encode())


@variant
def wrong_scope() -> None:
    """Asks for another scope."""
    in_refresh(lambda body: {**body, "scope": "openid profile email offline_access"})


@variant
def wrong_client_id() -> None:
    """Names another client."""
    in_refresh(lambda body: {**body, "client_id": "app_mine"})


@variant
def spent_refresh_token() -> None:
    """Stores the new access token, but not the new refresh token."""
    old = Auth.store
    Auth.store = lambda self, answer: old(self, without(answer, "refresh_token"))  # type: ignore[method-assign]


@variant
def old_id_token() -> None:
    """Stores the new tokens, but not the new id token."""
    old = Auth.store
    Auth.store = lambda self, answer: old(self, without(answer, "id_token"))  # type: ignore[method-assign]


@variant
def does_not_store() -> None:
    """Keeps the new tokens in memory only."""
    auth.write = lambda path, document: None


@variant
def stores_too_late() -> None:
    """Stores the new tokens only when the request has succeeded."""
    write = auth.write
    waiting: list[Any] = []
    auth.write = lambda path, document: waiting.append((path, document))
    after(Client, "run", lambda text, *_: ([write(*given) for given in waiting], text)[1])


@variant
def drops_other_fields() -> None:
    """Writes only what it knows into auth.json."""
    write = auth.write
    known = ("access_token", "refresh_token", "id_token")
    auth.write = lambda path, document: write(
        path, {"auth_mode": "chatgpt", "tokens": {key: document["tokens"].get(key) for key in known}}
    )


@variant
def loses_the_body() -> None:
    """Asks again in a new conversation, with the prompt alone."""
    old = Client.refresh

    def renew(self: Any) -> None:
        old(self)
        self.conversation = str(uuid.uuid4())
        send = self.send
        self.send = lambda body: send({**body, "input": body["input"][:1], "prompt_cache_key": self.conversation})

    Client.refresh = renew  # type: ignore[method-assign]


@variant
def id_token_object_only() -> None:
    """Falls over when it stores an id token beside one that is a JWT."""
    auth._in_form_of = lambda old, jwt: {**old, "raw_jwt": jwt}  # type: ignore[dict-item]


@variant
def one_sentence() -> None:
    """Has one sentence for every refresh that is refused."""
    refresh.REASONS = {}


@variant
def code_in_one_place() -> None:
    """Looks for the code of a refused refresh in error.code only."""
    refresh.code_of = lambda fields: fields["error"].get("code") if isinstance(fields.get("error"), dict) else ""


@variant
def raw_refresh_error() -> None:
    """Shows the answer of the token URL instead of a sentence."""
    refresh.complaint = lambda status, reason, body: f"Token refresh failed: {status} {body.decode()}"


@variant
def no_log_in() -> None:
    """Does not ask for a new login when the refresh fails."""
    refresh.log_in = lambda: ""
    auth.LOG_IN = ""
    refresh.complaint = lambda status, reason, body: f"{status} {body.decode()}"


@variant
def silent_about_the_token_url() -> None:
    """Does not say what the token URL answered."""
    old = refresh.complaint
    refresh.complaint = lambda status, reason, body: old(status, "", b"") if status == 401 else "Failed to refresh token."


@variant
def logs_out() -> None:
    """Empties auth.json when a refresh fails."""
    old = Client.refresh

    def leave(self: Any) -> None:
        try:
            old(self)
        except Problem:
            auth.write(self.auth.path, {"auth_mode": "chatgpt", "tokens": None})
            raise

    Client.refresh = leave  # type: ignore[method-assign]


@variant
def stores_anything() -> None:
    """Stores whatever a refresh returned with status 200."""
    old = refresh.refresh

    def lenient(url: str, token: str, timeout: float) -> dict[str, Any]:
        try:
            return old(url, token, timeout)
        except Problem as problem:
            if "access_token" not in str(problem):
                raise
            return {"access_token": None}

    client.tokens.refresh = lenient  # type: ignore[attr-defined]


@variant
def asks_again_anyway() -> None:
    """Asks again with the old token when the refresh fails."""
    old = Client.refresh

    def hope(self: Any) -> None:
        try:
            old(self)
        except Problem as problem:
            send, told = self.send, problem
            self.send = lambda body: then(send, body, told)

    def then(send: Any, body: Any, told: Problem) -> Any:
        try:
            return send(body)
        except Problem:
            raise told from None

    Client.refresh = hope  # type: ignore[method-assign]


@variant
def empty_refresh_token() -> None:
    """Asks the token URL with no refresh token."""
    Auth.refresh_token = lambda self: self.tokens.get("refresh_token", "")  # type: ignore[method-assign]


@variant
def refresh_tried_twice() -> None:
    """Tries a refresh that failed a second time."""
    old = refresh.refresh

    def twice(*given: Any) -> dict[str, Any]:
        try:
            return old(*given)
        except Problem:
            return old(*given)

    client.tokens.refresh = twice  # type: ignore[attr-defined]


# -- faults ------------------------------------------------------------------------------------------------------------------


@variant
def exit_0_on_error() -> None:
    """Says what went wrong, and exits with status 0."""
    after(program, "fail", lambda *_: 0)


@variant
def silent_failure() -> None:
    """Exits with status 1 without a word."""
    program.fail = lambda problem: 1


@variant
def errors_on_stdout() -> None:
    """Prints what went wrong on stdout."""

    def fail(problem: Problem) -> int:
        print(problem)
        return 1

    program.fail = fail


@variant
def falls_over() -> None:
    """Lets every error end in a traceback."""

    def fail(problem: Problem) -> int:
        raise problem

    program.fail = fail


@variant
def end_is_completed() -> None:
    """Takes the end of the stream for the end of the response."""

    def read(events: Any) -> Any:
        answer = Reply()
        for name, data in events:
            answer.feed(name, data)
            if answer.completed:
                break
        return answer

    reply.read = read


@variant
def cut_is_completed() -> None:
    """Takes a stream that is cut off for one that is over, and over for completed."""
    old = transport.Answer.chunks

    def chunks(self: Any) -> Any:
        try:
            yield from old(self)
        except Problem:
            return

    transport.Answer.chunks = chunks  # type: ignore[method-assign]
    end_is_completed()


@variant
def waits_for_ever() -> None:
    """Has no timeout."""
    old = settings.from_env
    program.from_env = lambda env: old(env)._replace(timeout=10_000.0)  # type: ignore[attr-defined]


@variant
def falls_over_without_a_connection() -> None:
    """Does not expect that a connection fails."""

    def broken(url: str, error: Exception) -> Problem:
        raise error

    transport.broken = broken


@variant
def falls_over_at_bad_json() -> None:
    """Does not expect an event that is not JSON."""
    reply.decode = lambda data: json.loads(data)


@variant
def a_name_is_enough() -> None:
    """Ends at an event named response.completed without reading it."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        if name == "response.completed":
            self.completed = True
        else:
            old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]
    half_a_text_is_a_text()


def half_a_text_is_a_text() -> None:
    Reply.text = property(lambda self: "".join(map("".join, self._pieces.values())))  # type: ignore[assignment]


@variant
def bad_json_is_the_end() -> None:
    """Takes an event that is not JSON for the end of the response."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        try:
            old(self, name, data)
        except Problem as problem:
            if "not JSON" not in str(problem):
                raise
            self.completed = True

    Reply.feed = feed  # type: ignore[method-assign]
    half_a_text_is_a_text()


@variant
def status_is_ignored() -> None:
    """Reads every answer as a stream, whatever its status."""
    client.refusal = lambda status, reason, body: Problem("The stream ended before response.completed.")


@variant
def error_bodies_are_json() -> None:
    """Falls over when an error answer is not JSON."""

    def refusal(status: int, reason: str, body: bytes) -> Problem:
        kind = client.Unauthorized if status == 401 else Problem
        return kind(f"{status} {json.loads(body)['error']['message']}")

    client.refusal = refusal


@variant
def ignores_failed() -> None:
    """Takes response.failed for the end of the response."""
    Reply.failed = lambda self, event: setattr(self, "completed", True)  # type: ignore[method-assign]
    half_a_text_is_a_text()


@variant
def failed_without_reason() -> None:
    """Does not say why a response failed."""

    def failed(self: Any, event: dict[str, Any]) -> None:
        raise Problem("The response did not succeed.")

    Reply.failed = failed  # type: ignore[method-assign]


@variant
def knows_its_codes() -> None:
    """Falls over at a code of response.failed that it does not know."""
    old = Reply.failed
    codes = dict.fromkeys(
        ("context_length_exceeded", "insufficient_quota", "rate_limit_exceeded", "server_error", "invalid_prompt")
    )

    def failed(self: Any, event: dict[str, Any]) -> None:
        codes[event["response"]["error"]["code"]]
        old(self, event)

    Reply.failed = failed  # type: ignore[method-assign]


@variant
def ignores_incomplete() -> None:
    """Takes response.incomplete for the end of the response."""
    Reply.incomplete = lambda self, event: setattr(self, "completed", True)  # type: ignore[method-assign]
    half_a_text_is_a_text()


@variant
def error_event_is_the_end() -> None:
    """Takes an `error` event for the end of the response."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        if name == "error":
            self.completed = True
        else:
            old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]
    half_a_text_is_a_text()


@variant
def any_text_will_do() -> None:
    """Prints the text of an earlier response when a later one fails."""
    said: list[str] = []
    old = Client.ask

    def ask(self: Any, given: list[Any]) -> Any:
        try:
            answer = old(self, given)
        except Problem:
            if not said:
                raise
            answer = Reply()
            answer._items[0] = {"type": "message", "content": [{"type": "output_text", "text": said[-1]}]}
            return answer
        said.append(answer.text)
        return answer

    Client.ask = ask  # type: ignore[method-assign]


@variant
def needs_a_type() -> None:
    """Drops a text whose item came without a type, and says nothing."""
    old = Reply.feed

    def feed(self: Any, name: str, data: str) -> None:
        event = json.loads(data)
        if "type" not in event:
            self._pieces.clear()
            self._items.clear()
            self.lost = True
        elif not (getattr(self, "lost", False) and event["type"] == "response.output_item.done"):
            old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]


@variant
def order_is_trusted() -> None:
    """Drops the deltas of an item that has not been added, and does not look at the finished item."""
    old = Reply.feed
    known: set[str] = set()

    def feed(self: Any, name: str, data: str) -> None:
        event = json.loads(data)
        if event.get("type") == "response.output_item.added":
            known.add(event["item"]["id"])
        if "delta" in event and event["item_id"] not in known:
            return
        old(self, name, data)

    Reply.feed = feed  # type: ignore[method-assign]
    trusts_deltas()


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in VARIANTS:
        sys.stderr.write(f"Give one of these, and a prompt: {', '.join(VARIANTS)}.\n")
        return 2
    VARIANTS[argv[0]]()
    return program.main(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
