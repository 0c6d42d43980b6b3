"""Clients that send to the wrong place, say who they are wrongly, or print more than the text."""

from __future__ import annotations

import base64
import itertools
import json
import uuid
from typing import Any

from codex_replay.reference.lite_client import __main__ as program
from codex_replay.reference.lite_client import auth, client, settings
from codex_replay.reference.lite_client.errors import Problem
from tests.miniatures.lite_clients.patching import Auth, Client, after, in_headers, variant, without

# -- endpoint, prompt, text -----------------------------------------------------------------------------------------------------


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
def asks_elsewhere() -> None:
    """Posts to an address of its own, whatever the base URL is."""
    Client.url = lambda self: "http://127.0.0.1:9/backend-api/codex/responses"  # type: ignore[method-assign]


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


# -- auth -----------------------------------------------------------------------------------------------------------------------


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


# -- headers --------------------------------------------------------------------------------------------------------------------


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
def body_is_text() -> None:
    """Calls its body text/plain, as fetch does for a string."""
    in_headers(lambda headers, _: {**headers, "Content-Type": "text/plain;charset=UTF-8"})


@variant
def accepts_anything() -> None:
    """Does not say that it takes a stream of events."""
    in_headers(lambda headers, _: {**headers, "Accept": "*/*"})


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
    client.new_id = lambda: str(uuid.UUID(int=7))


@variant
def first_headers_only() -> None:
    """Leaves the originator out of every request but the first."""
    count = itertools.count()
    in_headers(lambda headers, _: headers if next(count) == 0 else {**headers, "originator": "else"})


def _under_a_key(*names: str) -> None:
    """Leave headers out under an API key."""
    in_headers(lambda headers, self: headers if self.auth.chatgpt else without(headers, *names))


@variant
def no_originator_under_a_key() -> None:
    """Sends no originator under an API key."""
    _under_a_key("originator")


@variant
def no_session_under_a_key() -> None:
    """Sends no session_id under an API key."""
    _under_a_key("session_id")


@variant
def library_user_agent_under_a_key() -> None:
    """Sends the User-Agent of its HTTP library under an API key."""
    in_headers(lambda headers, self: headers if self.auth.chatgpt else {**headers, "User-Agent": "python-requests/2.32.0"})


@variant
def login_beside_the_program() -> None:
    """Reads auth.json in the working directory when no file is named."""
    old = settings.Settings.__init__

    def init(self: Any, given: Any) -> None:
        old(self, given)
        if not given.get("LITE_AUTH_FILE"):
            self.auth_file = "auth.json"

    settings.Settings.__init__ = init  # type: ignore[method-assign]


@variant
def login_in_the_config_folder() -> None:
    """Reads ~/.config/codex/auth.json when no file is named."""
    old = settings.Settings.__init__

    def init(self: Any, given: Any) -> None:
        old(self, given)
        self.auth_file = self.auth_file.replace("/.codex/", "/.config/codex/")

    settings.Settings.__init__ = init  # type: ignore[method-assign]
