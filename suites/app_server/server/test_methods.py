"""The methods that have no separate module: models, modes, skills, apps, feedback, commands, files, git, reviews.

Source: the bundle's params and responses of each method; docs/contract/real-0.92.md, section 4 names them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_replay.plugin import AppServer, Server
from suites.app_server.dialect import V1, has_events, in_events, these
from suites.app_server.expected import all_of, text
from suites.app_server.server.work_folders import COMMIT, with_files, with_repository, with_skills
from suites.app_server.turns import ended, items_of, last_words, msgs, open_thread, run

REFUSED, FAILED = -32600, -32603
FREE = {"sandboxPolicy": {"type": "dangerFullAccess"}}


def started(server: Server) -> Server:
    """Do the handshake."""
    server.initialize()
    return server


# -- models and modes ----------------------------------------------------------------------------------------------------


#: The default model, and another one.
MODELS = {"0.0.0": ("gpt-5.2-codex", "gpt-5.2"), "0.169.0": ("gpt-6.1-sol", "gpt-5.5")}


def test_model_list(app_server: AppServer) -> None:
    """model/list marks one model as the default; each model lists its efforts and its default effort."""
    server = started(app_server())
    found = server.request("model/list", {})
    assert found["nextCursor"] is None
    models = {model["id"]: model for model in found["data"]}
    default, other = server.by_version(MODELS)
    assert {default, other} <= models.keys()
    assert [name for name, model in models.items() if model["isDefault"]] == [default]
    for name, model in models.items():
        assert model["model"] == name
        efforts = [each["reasoningEffort"] for each in model["supportedReasoningEfforts"]]
        assert model["defaultReasoningEffort"] in efforts


def test_model_list_in_pages(app_server: AppServer) -> None:
    """In model/list, `limit` and `cursor` select a page; the server refuses an invalid cursor."""
    server = started(app_server())
    everything = server.request("model/list", {})["data"]
    seen: list[Any] = []
    cursor = None
    while True:
        page = server.request("model/list", {"limit": 2, "cursor": cursor})
        assert 1 <= len(page["data"]) <= 2
        seen += page["data"]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == everything
    assert server.request_error("model/list", {"cursor": "x"}) == {"code": REFUSED, "message": "invalid cursor: x"}


def test_collaboration_modes(app_server: AppServer) -> None:
    """collaborationMode/list returns the modes that a client may offer; until 0.107 each mode has its instructions."""
    server = app_server()
    server.initialize(experimental=True)
    modes = server.request("collaborationMode/list", {})["data"]
    assert "plan" in [mode["mode"] for mode in modes]
    plan = next(mode for mode in modes if mode["mode"] == "plan")
    assert (plan["name"], plan["model"], plan["reasoning_effort"]) == ("Plan", None, "medium")
    if has_events(server):
        assert plan["developer_instructions"].startswith("# Plan Mode")


@V1
def test_user_agent(app_server: AppServer) -> None:
    """In v1, getUserAgent returns the same user agent as initialize."""
    server = app_server()
    agent = server.initialize()
    assert server.request("getUserAgent") == agent


# -- skills, apps, feedback ------------------------------------------------------------------------------------------------


def test_skills_list(app_server: AppServer) -> None:
    """skills/list returns the skills of the user and of the system for a directory, and reports a broken skill as an error."""
    server = started(app_server(prepare=with_skills))
    (entry,) = server.request("skills/list", {"cwds": [server.work], "forceReload": True})["data"]
    assert entry["cwd"] == server.work
    skills = {skill["name"]: skill for skill in entry["skills"]}
    assert skills["whistle"]["description"] == "Whistles a tune."
    assert (skills["whistle"]["scope"], skills["whistle"]["enabled"]) == ("user", True)
    assert {skill["scope"] for skill in skills.values()} == {"user", "system"}
    (error,) = entry["errors"]
    assert error["path"].endswith("/skills/broken/SKILL.md")
    assert error["message"] == "missing YAML frontmatter delimited by ---"


def test_skills_config(app_server: AppServer) -> None:
    """skills/config/write disables a skill, and skills/list then shows it as disabled."""
    server = started(app_server(prepare=with_skills))
    skills = server.request("skills/list", {"cwds": [server.work]})["data"][0]["skills"]
    path = next(skill["path"] for skill in skills if skill["name"] == "whistle")
    assert server.request("skills/config/write", {"path": path, "enabled": False}) == {"effectiveEnabled": False}
    skills = server.request("skills/list", {"cwds": [server.work], "forceReload": True})["data"][0]["skills"]
    assert [skill["enabled"] for skill in skills if skill["name"] == "whistle"] == [False]


def test_skill_as_input(app_server: AppServer) -> None:
    """If the user's input names a skill, the model gets the text of the skill."""
    server = app_server([{"items": [text("Done")], "expect": {"prompt": "Whistle.\n"}}], prepare=with_skills)
    thread = open_thread(server)
    skills = server.request("skills/list", {"cwds": [server.work]})["data"][0]["skills"]
    path = next(skill["path"] for skill in skills if skill["name"] == "whistle")
    given = [{"type": "skill", "name": "whistle", "path": path}, {"type": "text", "text": "Please.", "text_elements": []}]
    server.request("turn/start", {"threadId": thread, "input": given})
    assert ended(server, thread)["status"] == "completed"
    assert items_of(server, "userMessage")[0]["content"] == given


def test_app_list(app_server: AppServer) -> None:
    """Without connectors the list of apps is empty."""
    server = started(app_server())
    assert server.request("app/list", {}) == {"data": [], "nextCursor": None}


def test_feedback(app_server: AppServer) -> None:
    """If the configuration forbids feedback, the server refuses to upload it."""
    server = started(app_server())
    error = server.request_error("feedback/upload", {"classification": "bug", "includeLogs": False})
    assert error == {"code": REFUSED, "message": "sending feedback is disabled by configuration"}


# -- commands --------------------------------------------------------------------------------------------------------------


def test_command_exec(app_server: AppServer) -> None:
    """command/exec runs in the server's working directory or in `cwd`, and returns the exit code, stdout and stderr."""
    server = started(app_server())
    result = server.request("command/exec", {"command": ["sh", "-c", "echo out; echo err >&2; exit 3"], **FREE})
    assert result == {"exitCode": 3, "stdout": "out\n", "stderr": "err\n"}
    assert server.request("command/exec", {"command": ["pwd"], "cwd": "/", **FREE})["stdout"] == "/\n"


#: name -> (params of command/exec, code, message)
EXEC_FAILURES: dict[str, tuple[dict[str, Any], int, str]] = {
    "empty": ({"command": []}, REFUSED, "command must not be empty"),
    "no-program": ({"command": ["no-such-program"]}, FAILED, "exec failed: No such file or directory (os error 2)"),
    "timeout": ({"command": ["sleep", "60"], "timeoutMs": 50}, FAILED, "exec failed: sandbox error: command timed out"),
    "killed": (
        {"command": ["sh", "-c", "kill -9 $$"]},
        FAILED,
        "exec failed: sandbox error: command was killed by a signal",
    ),
    "sandbox": (
        {"command": ["printf", "hi"], "sandboxPolicy": {"type": "readOnly"}},
        FAILED,
        "exec failed: codex-linux-sandbox was required but not provided",
    ),
}


#: The words of an error before those of the system.
SPAWN = {"0.0.0": "exec failed", "0.169.0": "failed to spawn command"}
#: The results of a version that has no error for a command that it stops, or that brings its sandbox along: a command that is
#: stopped has the exit status that a shell would show.
EXEC_RESULTS: dict[str, dict[str, dict[str, Any]]] = {
    "0.0.0": {},
    "0.169.0": {
        "timeout": {"exitCode": 124, "stdout": "", "stderr": ""},
        "killed": {"exitCode": 137, "stdout": "", "stderr": ""},
        "sandbox": {"exitCode": 0, "stdout": "hi", "stderr": ""},
    },
}


@pytest.mark.parametrize("row", EXEC_FAILURES)
def test_command_exec_fails(app_server: AppServer, row: str) -> None:
    """A command that cannot start or is stopped gets an error: -32600 for invalid params, -32603 otherwise.

    Since 0.169.0 only a command that cannot start gets an error.
    """
    params, code, message = EXEC_FAILURES[row]
    server = started(app_server())
    if (result := server.by_version(EXEC_RESULTS).get(row)) is not None:
        assert server.request("command/exec", {**FREE, **params}) == result
        return
    message = message.replace("exec failed: No", f"{server.by_version(SPAWN)}: No")
    assert server.request_error("command/exec", {**FREE, **params}) == {"code": code, "message": message}


@V1
def test_v1_exec(app_server: AppServer) -> None:
    """In v1, execOneOffCommand takes the sandbox policy in kebab-case."""
    server = started(app_server())
    policy = {"sandboxPolicy": {"type": "danger-full-access"}}
    result = server.request("execOneOffCommand", {"command": ["printf", "hi"], **policy})
    assert result == {"exitCode": 0, "stdout": "hi", "stderr": ""}


# -- files and git -----------------------------------------------------------------------------------------------------------


#: The members of a file that was found.
FOUND = {
    "0.0.0": ["file_name", "indices", "path", "root", "score"],
    "0.169.0": ["file_name", "indices", "match_type", "path", "root", "score"],
}


def test_fuzzy_file_search(app_server: AppServer) -> None:
    """fuzzyFileSearch returns the files whose names match, best match first, with the positions of the matching letters."""
    server = started(app_server(prepare=with_files))
    found = server.request("fuzzyFileSearch", {"query": "alp", "roots": [server.work]})["files"]
    assert sorted(found[0]) == server.by_version(FOUND)
    assert [(file["root"], file["path"], file["file_name"], file["indices"]) for file in found] == [
        (server.work, "alpha.txt", "alpha.txt", [0, 1, 2]),
        (server.work, "deep/alphabet.md", "alphabet.md", [5, 6, 7]),
    ]
    assert found[0]["score"] >= found[1]["score"]


@pytest.mark.parametrize("query", ["zzz", ""], ids=["no-match", "empty"])
def test_fuzzy_file_search_finds_nothing(app_server: AppServer, query: str) -> None:
    """fuzzyFileSearch returns no files if the query matches no file or is empty."""
    server = started(app_server(prepare=with_files))
    assert server.request("fuzzyFileSearch", {"query": query, "roots": [server.work]}) == {"files": []}


@V1
def test_git_diff(app_server: AppServer) -> None:
    """In v1, gitDiffToRemote returns the commit of the remote and the local diff against it."""
    server = started(app_server(prepare=with_repository))
    result = server.request("gitDiffToRemote", {"cwd": server.work})
    assert result["sha"] == COMMIT
    assert result["diff"].endswith("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n")


@V1
def test_git_diff_without_a_repository(app_server: AppServer) -> None:
    """In v1, gitDiffToRemote refuses a directory that is not a repository."""
    server = started(app_server())
    error = server.request_error("gitDiffToRemote", {"cwd": server.work})
    assert error == {"code": REFUSED, "message": f'failed to compute git diff to remote for cwd: "{server.work}"'}


#: Whether the server looks into the repository when a thread starts; otherwise it has done so once a turn has ended.
GIT_AT_ONCE = {"0.0.0": True, "0.169.0": False}


def test_git_info(app_server: AppServer) -> None:
    """A thread in a repository has the commit, the branch and the remote in `gitInfo`; since 0.169.0 only after a turn."""
    at_once = app_server.by_version(GIT_AT_ONCE)
    server = app_server(None if at_once else [{"items": [text("Hello")]}], prepare=with_repository)
    thread = open_thread(server)
    info = all_of(server, "thread/started")[0]["thread"]["gitInfo"]
    if not at_once:
        assert info is None
        run(server, thread)
        info = server.request("thread/read", {"threadId": thread})["thread"]["gitInfo"]
    assert (info["sha"], info["branch"]) == (COMMIT, "main")
    assert info["originUrl"].endswith("/remote.git")


# -- reviews -----------------------------------------------------------------------------------------------------------------

#: name -> (the target of the review, its label, the prompt for the model)
TARGETS: dict[str, tuple[dict[str, Any], str, str]] = {
    "custom": ({"type": "custom", "instructions": "Look at a.txt."}, "Look at a.txt.", "Look at a.txt."),
    "uncommitted": ({"type": "uncommittedChanges"}, "current changes", "Review the current code changes"),
    "commit": (
        {"type": "commit", "sha": "abc1234", "title": "A change"},
        "commit abc1234: A change",
        'Review the code changes introduced by commit abc1234 ("A change").',
    ),
    "base-branch": (
        {"type": "baseBranch", "branch": "main"},
        "changes against 'main'",
        "Review the code changes against the base",
    ),
}


@pytest.mark.parametrize("row", TARGETS)
def test_review(app_server: AppServer, row: str) -> None:
    """A review is a turn: the server enters review mode, asks the model, and leaves review mode with the model's answer."""
    target, hint, prompt = TARGETS[row]
    server = app_server([{"items": [text("It is fine.")], "expect": {"prompt": prompt}}], prepare=with_repository)
    thread = open_thread(server)
    result = server.request("review/start", {"threadId": thread, "target": target})
    content = [{"type": "text", "text": hint, "text_elements": []}]
    turn = "0" if has_events(server) else result["turn"]["id"]
    item = {"type": "userMessage", "id": turn, "content": content}
    begun = {"id": turn, "items": [item], "status": "inProgress", "error": None}
    assert result == these(server, {"turn": begun, "reviewThreadId": thread})
    done = ended(server, thread)
    assert (done["id"], done["status"]) == (turn, "completed")
    assert msgs(server, "entered_review_mode") == in_events(server, [{"target": target, "user_facing_hint": hint}])
    (entered,) = items_of(server, "enteredReviewMode")
    (left,) = items_of(server, "exitedReviewMode")
    assert (entered["review"], left["review"]) == (hint, "It is fine.")
    output = {
        "findings": [],
        "overall_correctness": "",
        "overall_explanation": "It is fine.",
        "overall_confidence_score": 0.0,
    }
    assert msgs(server, "exited_review_mode") == in_events(server, [{"review_output": output}])
    assert last_words(server) == ([None] if has_events(server) else ["It is fine."])


def test_review_findings(app_server: AppServer) -> None:
    """The server sends the findings of a review twice: as the model's JSON, unchanged, and as text."""
    location = {"absolute_file_path": "/x/a.txt", "line_range": {"start": 1, "end": 2}}
    finding = {
        "title": "[P1] Wrong sum",
        "body": "It is 3.",
        "confidence_score": 0.5,
        "priority": 1,
        "code_location": location,
    }
    message = {
        "findings": [finding],
        "overall_correctness": "patch is incorrect",
        "overall_explanation": "There is a bug.",
        "overall_confidence_score": 0.75,
    }
    server = app_server([{"items": [text(json.dumps(message))]}])
    thread = open_thread(server)
    server.request("review/start", {"threadId": thread, "target": {"type": "custom", "instructions": "Look."}})
    ended(server, thread)
    assert msgs(server, "exited_review_mode") == in_events(server, [{"review_output": message}])
    words = "There is a bug.\n\nReview comment:\n\n- [P1] Wrong sum \N{EM DASH} /x/a.txt:1-2\n  It is 3."
    assert items_of(server, "exitedReviewMode")[0]["review"] == words
    assert items_of(server, "agentMessage")[-1]["text"] == words


#: Whether a review may be detached.
DETACHED = {"0.0.0": True, "0.169.0": False}


def test_detached_review(app_server: AppServer) -> None:
    """A detached review runs in a new thread; the first thread gets no notifications of the review.

    Since 0.169.0 the server refuses a detached review.
    """
    detached = app_server.by_version(DETACHED)
    server = app_server([{"items": [text("It is fine.")]}]) if detached else app_server(bad_input=True)
    thread = open_thread(server)
    asked = {"threadId": thread, "target": {"type": "custom", "instructions": "Look."}, "delivery": "detached"}
    if not detached:
        message = "Invalid request: unknown variant `detached`, expected `inline`"
        assert server.request_error("review/start", asked) == {"code": REFUSED, "message": message}
        return
    review = server.request("review/start", asked)["reviewThreadId"]
    assert review != thread
    assert ended(server, review)["status"] == "completed"
    assert {params["threadId"] for params in all_of(server, "item/completed")} == {review}
    assert [params["thread"]["id"] for params in all_of(server, "thread/started")] == [thread, review]


def test_review_without_instructions(app_server: AppServer) -> None:
    """The server refuses a review with blank instructions."""
    server = app_server()
    thread = open_thread(server)
    error = server.request_error("review/start", {"threadId": thread, "target": {"type": "custom", "instructions": " "}})
    assert error == {"code": REFUSED, "message": "instructions must not be empty"}


def test_review_against_a_branch_of_nothing(app_server: AppServer) -> None:
    """Outside a git repository, a review against a branch starts and fails with an error, and its turn never completes."""
    server = app_server()
    thread = open_thread(server)
    target = {"type": "baseBranch", "branch": "main"}
    assert server.request("review/start", {"threadId": thread, "target": target})["turn"]["status"] == "inProgress"
    error = server.notification("error")
    assert error["error"]["message"] == f'"{server.work}" is not a git repository'
    assert (error["error"]["codexErrorInfo"], error["willRetry"]) == ("other", False)
    server.request("account/read", {})
    assert all_of(server, "turn/completed") == []
