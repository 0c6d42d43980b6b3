"""The settings of threads in Codex versions after 0.92: what a resume and a fork keep, and the notices of changes."""

from __future__ import annotations

from codex_fakes.scripted.methods.both import settings_again
from codex_replay.protocol.turn.frames import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Session
    from codex_fakes.scripted.state.settings import Settings
    from codex_fakes.scripted.state.thread import Thread

# The settings that stay as they were, each with the member of a request that changes it.
KEPT_BY_FORKS = {"cwd": "cwd", "policy": "approvalPolicy", "sandbox": "sandbox"}
KEPT = {**KEPT_BY_FORKS, "model": "model", "effort": "model", "tier": "serviceTier"}


def settings_of_old(session: Session, thread: Thread, params: dict[str, Any], kept: dict[str, str]) -> Settings:
    """Return the settings of a thread that is loaded a second time, or of its fork.

    The keys of `kept` are the settings that stay as they were, and the values are the members of a request that change them.
    """
    settings = settings_again(session, thread, params, "v2")
    config = params.get("config") or {}
    other_model = "model" in config or "model_reasoning_effort" in config  # a new effort drops the model, and a model the effort
    for name, member in kept.items():
        given = "serviceTier" in params if name == "tier" else params.get(member) is not None
        if not given and not (other_model and member == "model"):
            setattr(settings, name, getattr(thread.settings, name))
    return settings


def warn_of_tier(session: Session, thread: Thread) -> None:
    """Send a warning if the client chose a service tier that the model does not have."""
    settings = thread.settings
    if settings.tier is not None and settings.service_tier() is None:
        values = {"tier": settings.tier, "model": settings.model}
        thread.emit("warning", {"message": fill(session.table["sentences"]["no-tier"], values)})


def warn_of_model(session: Session, thread: Thread) -> None:
    """Send a warning if the latest turn of a loaded thread had another model."""
    if thread.model not in (None, thread.settings.model):
        values = {"old": thread.model, "new": thread.settings.model}
        thread.emit("warning", {"message": fill(session.table["sentences"]["other-model"], values)})


def report_settings(session: Session, thread: Thread, before: Settings) -> None:
    """Send the settings of a thread to a client with the capability experimentalApi, if a request has changed them."""
    shown = _shown(session, thread.settings)
    if session.experimental and shown != _shown(session, before):
        session.send({"method": "thread/settings/updated", "params": {"threadId": thread.id, "threadSettings": shown}})


def _shown(session: Session, settings: Settings) -> dict[str, Any]:
    values = {
        "cwd": settings.cwd,
        "policy": settings.policy,
        "sandbox": shown_sandbox(settings),
        "model": settings.model,
        "provider": settings.provider,
        "tier": settings.tier,
        "effort": settings.effort,
        "summary": settings.summary,
        "personality": settings.personality,
    }
    shown: dict[str, Any] = fill(session.table["shapes"]["settings"], values)
    return shown


def shown_sandbox(settings: Settings) -> dict[str, Any]:
    """Return the sandbox in the form of versions after 0.92: a read-only sandbox also has the member `networkAccess`."""
    closed = settings.sandbox["type"] == "readOnly"
    return {**settings.sandbox, "networkAccess": False} if closed else settings.sandbox
