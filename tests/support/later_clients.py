"""The clients that play a scenario of a later version on the real server and on the scripted fake."""

from __future__ import annotations

import time
from base64 import b64decode
from typing import Any

from tests.fakes.scripted.conversing import Conversation, is_started


class Later(Conversation):
    """Plays one description to the server of a later version: without v1, and without codex/event."""

    def open_thread(self) -> None:
        """Start a thread and wait for its notification."""
        settings = {"cwd": self.work, **self.told.get("settings", {}), **self.raw}
        opened = self.client.request("thread/start", settings)["thread"]["id"]
        self.client.wait("thread/started", lambda m: is_started(m, opened))
        self.threads.append(opened)

    def load(self, step: dict[str, Any], thread: str) -> None:
        """Load a thread again, or a fork of it."""
        reply = self.client.call(step["load"], {"threadId": thread, **step.get("params", {})})
        if "error" in reply:
            return
        opened = reply["result"]["thread"]["id"]
        ends = "thread/started" if step["load"] == "thread/fork" else "thread/goal/cleared"
        self.client.wait(ends, lambda m: isinstance(m, dict) and m.get("method") == ends)
        if opened not in self.threads:
            self.threads.append(opened)

    def call(self, step: dict[str, Any], thread: str) -> Any:
        """Ask something, and wait for the notification that follows, if one does (`then`) and nothing is refused."""
        reply = super().call(step, thread)
        if "then" in step and "error" not in reply:
            self.client.wait(step["then"], lambda m: isinstance(m, dict) and m.get("method") == step["then"])
        return reply

    def counted(self, thread: str) -> None:
        """Nothing has to be waited for: usage comes behind the calls."""

    def reply(self, step: dict[str, Any], thread: str, request: Any) -> None:
        """Answer a request of the server; with an error, if the step has one (`error`), and after input that steers (`first`)."""
        for method, text in step.pop("first", ()):
            given = {"threadId": thread, "input": [{"type": "text", "text": text}]}
            self.client.request(method, {**given, **({"expectedTurnId": step["turn"]} if method == "turn/steer" else {})})
        if "error" in step:
            self.client.send({"id": request["id"], "error": step["error"]})
        else:
            super().reply(step, thread, request)


class AtOnce(Later):
    """A client whose tools are asked for at once: it replies in an order of its own, and may interrupt before the last reply."""

    def play(self) -> None:
        """Run the turn, and another."""
        told = self.told["at_once"]
        self.open_thread()
        (thread,) = self.threads
        running = self._turn(thread)
        asked = [self._heard("item/tool/call", "callId", call) for call in told["calls"]]
        for number in told["order"]:
            self.client.reply(asked[number], {"contentItems": [{"type": "inputText", "text": f"sun {number}"}], "success": True})
            self.client.wait("item/completed", lambda m, n=number: _item(m) == ("item/completed", told["calls"][n]))
        if len(told["order"]) < len(asked):
            self.client.request("turn/interrupt", {"threadId": thread, "turnId": running})
        self._ended(running)
        self._ended(self._turn(thread))

    def _turn(self, thread: str) -> str:
        given = {"threadId": thread, "input": [{"type": "text", "text": "Go."}]}
        return str(self.client.request("turn/start", given)["turn"]["id"])

    def _heard(self, method: str, name: str, value: str) -> Any:
        return self.client.wait(method, lambda m: m.get("method") == method and m["params"][name] == value)

    def _ended(self, turn: str) -> None:
        self.client.wait("turn/completed", lambda m: m.get("method") == "turn/completed" and m["params"]["turn"]["id"] == turn)


def _item(message: Any) -> tuple[Any, Any]:
    return message.get("method"), (message.get("params", {}).get("item") or {}).get("id")


#: The notification that follows the response to a request, if the request is not refused.
_THEN = {
    "thread/start": "thread/started",
    "thread/fork": "thread/started", "thread/revert": "thread/reverted", "thread/goal/set": "thread/goal/updated",
    "thread/name/set": "thread/name/updated", "thread/archive": "thread/archived", "thread/unarchive": "thread/unarchived",
    "thread/resume": "thread/goal/cleared",
}  # fmt: skip
#: What comes in place of one of them.
_OTHER = {"thread/goal/cleared": "thread/goal/updated"}


class Calls(Later):
    """A client that asks for what it has got: a text of a request that begins with `$` stands for an earlier answer.

    `$turn N` is the N-th turn of the client, `$thread N` the N-th thread, `$next`, `$back` and `$item` the cursors and the
    first item of the latest list, `$login` the latest login, `$process CALL` the process of a command. `$work` at the beginning
    of a text is the working directory.
    """

    def play(self) -> None:
        """Play the calls in their order."""
        self.known: dict[str, Any] = {"$next": None, "$back": None, "$item": ""}
        self.turns = 0
        for step in self.told["calls"]:
            if "open" in step:
                self.told["settings"] = step["open"]
                self.open_thread()
                self.known[f"$thread {len(self.threads) - 1}"] = self.threads[-1]
            elif "turn" in step:
                self._turn(step)
            elif "ended" in step:
                self.client.wait("item/completed", lambda m, call=step["ended"]: _item(m) == ("item/completed", call))
                time.sleep(step.get("pause", 0))
            elif "pause" in step:
                time.sleep(step["pause"])
            else:
                self._ask(step["ask"], self._meant(step["params"]))

    def _turn(self, step: dict[str, Any]) -> None:
        given = {"threadId": self.threads[step.get("thread", 0)], "input": [{"type": "text", "text": step["turn"]}]}
        reply = self.client.call("turn/start", {**given, **step.get("params", {})})
        if "error" in reply:
            return
        turn = reply["result"]["turn"]["id"]
        if "cut" in step:  # in the call, once it has begun
            self.client.wait("item/started", lambda m: _item(m) == ("item/started", step["cut"]))
            time.sleep(0.2)
            self.client.call("turn/interrupt", {"threadId": given["threadId"], "turnId": turn})
        self.client.wait("turn/completed", lambda m: m.get("method") == "turn/completed" and m["params"]["turn"]["id"] == turn)
        self.known[f"$turn {self.turns}"] = turn
        items = [(message.get("params") or {}).get("item") or {} for message in self.client.messages()]
        self.known |= {f"$process {item['id']}": item["processId"] for item in items if item.get("processId")}
        self.turns += 1

    def _ask(self, method: str, params: dict[str, Any]) -> None:
        result = self.client.call(method, params).get("result")
        if result is None:
            return
        then = _THEN.get(method) or ("thread/goal/cleared" if result.get("cleared") else None)
        if then is not None:
            self.client.wait(then, lambda m: m.get("method") in (then, _OTHER.get(then)))
        if method == "thread/fork":
            self.threads.append(result["thread"]["id"])
            self.known[f"$thread {len(self.threads) - 1}"] = self.threads[-1]
        self.known |= {"$login": result["loginId"]} if "loginId" in result else {}
        if "nextCursor" in result:
            self.known |= {"$next": result["nextCursor"], "$back": result.get("backwardsCursor")}
            items = [entry["item"]["id"] for entry in result["data"] if "item" in entry]
            self.known |= {"$item": items[0]} if items else {}

    def _meant(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._meant(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._meant(inner) for inner in value]
        if isinstance(value, str) and value.startswith("$work"):
            return self.work + value.removeprefix("$work")
        return self.known.get(value, value) if isinstance(value, str) and value.startswith("$") else value


class Commands(Calls):
    """A client that runs commands of its own (`run`), and waits for their output (`printed`: bytes) and for their end (`end`)."""

    def play(self) -> None:
        """Play the steps in their order."""
        self.running: dict[str, Any] = {}
        self.read: dict[str, int] = {}
        for step in self.told["commands"]:
            if "run" in step:
                self.running[step["run"].get("processId", "")] = self.client.post("command/exec", step["run"])
            elif "printed" in step:
                self._read(*step["printed"])
            elif "pause" in step:
                time.sleep(step["pause"])
            elif "end" in step:
                self.client.reply_to(self.running.pop(step["end"]))
            else:
                self.client.call(step["ask"], step["params"])

    def _read(self, name: str, size: int) -> None:
        method = "command/exec/outputDelta"
        while self.read.get(name, 0) < size:
            delta = self.client.notification(method, processId=name)["deltaBase64"]
            self.read[name] = self.read.get(name, 0) + len(b64decode(delta))
        self.read[name] -= size
