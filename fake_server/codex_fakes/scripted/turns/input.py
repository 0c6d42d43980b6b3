"""The user's input in three forms: in events, in the history, and for the model."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.state.thread import Thread

_NO_IMAGE = "failed to read image at {path}: No such file or directory (os error 2)"


class Input(list):  # type: ignore[type-arg]  # the module typing would take too long to import
    """The user's input items, and the id that the client gives to the message."""

    def __init__(self, items: list[dict[str, Any]], client_id: str | None) -> None:
        super().__init__(items)
        self.client_id = client_id


def user_values(items: list[dict[str, Any]], later: bool = False) -> dict[str, Any]:
    """Return the values for the template "user-message" from v2 input items (text, image, localImage, skill).

    `kept` is the content that thread/read shows later. `preview` is the preview of the thread, if the input is the first
    one of the thread. With `later`, images have a `detail`, as in versions after 0.92.
    """
    detail = {"detail": None} if later else {}
    content: list[dict[str, Any]] = []
    content_v2: list[dict[str, Any]] = []
    texts, images, local, elements = [], [], [], []
    offset = 0
    for item in items:
        if item["type"] == "text":
            text, given = item["text"], item.get("text_elements") or []
            content.append({"type": "text", "text": text, "text_elements": [_element(one, "byte_range") for one in given]})
            content_v2.append({"type": "text", "text": text, "text_elements": [_element(one, "byteRange") for one in given]})
            data = text.encode("utf-8", "surrogatepass")
            elements += [_resolved(one, data, offset) for one in given]
            offset += len(data)
            texts.append(text)
        elif item["type"] == "image":
            content.append({"type": "image", "image_url": item["url"]})
            content_v2.append({"type": "image", "url": item["url"], **detail})
            images.append(item["url"])
        elif item["type"] == "localImage":
            content.append({"type": "local_image", "path": item["path"]})
            content_v2.append({"type": "localImage", **detail, "path": item["path"]})
            local.append(item["path"])
        elif item["type"] in ("skill", "mention"):
            named = {"type": item["type"], "name": item.get("name"), "path": item.get("path")}
            content.append(named)
            content_v2.append(named)
    message = "".join(texts)
    return {
        "content": content,
        "contentV2": content_v2,
        "message": message,
        "images": images,
        "localImages": local,
        "textElements": elements,
        "kept": _kept(message, elements, images, local),
        "preview": joined_text(user_history(items)["content"]),
        "clientId": items.client_id if isinstance(items, Input) else None,
    }


def _element(element: dict[str, Any], name: str) -> dict[str, Any]:
    span = element["byteRange"]
    return {name: {"start": span["start"], "end": span["end"]}, "placeholder": element.get("placeholder")}


def _resolved(element: dict[str, Any], text: bytes, offset: int) -> dict[str, Any]:
    """Return a text element (a marked part of a text) with byte offsets into the joined texts.

    If the element has no placeholder, the text that it covers becomes its placeholder.
    """
    start, end = element["byteRange"]["start"], element["byteRange"]["end"]
    placeholder = element.get("placeholder")
    if placeholder is None and start <= end <= len(text):
        try:
            text[:start].decode("utf-8", "surrogatepass")
            placeholder = text[start:end].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            placeholder = None
    return {"byte_range": {"start": start + offset, "end": end + offset}, "placeholder": placeholder}


def _kept(message: str, elements: list[dict[str, Any]], images: list[str], local: list[str]) -> list[dict[str, Any]]:
    """Return the content for the history: the joined texts (unless they are blank), and then the images. Skills are omitted."""
    kept: list[dict[str, Any]] = []
    if message.strip():
        shown = [{"byteRange": one["byte_range"], "placeholder": one["placeholder"]} for one in elements]
        kept.append({"type": "text", "text": message, "text_elements": shown})
    kept += [{"type": "image", "url": url} for url in images]
    return kept + [{"type": "localImage", "path": path} for path in local]


def joined_text(content: list[dict[str, Any]]) -> str:
    """Return the joined texts of a message in the model's input, without the tags around its images."""
    images = [i for i, part in enumerate(content) if part["type"] == "input_image"]
    tags = {(i - 1, "<image>") for i in images} | {(i + 1, "</image>") for i in images}
    return "".join(part.get("text", "") for i, part in enumerate(content) if (i, part.get("text")) not in tags)


def later_preview(message: dict[str, Any]) -> str:
    """Return the preview of a thread that begins with this message, in versions after 0.92; it is empty for blank texts."""
    content = message.get("content", [])
    return joined_text(content).strip() or ("[Image]" if any(part.get("type") == "input_image" for part in content) else "")


def preview_of(history: list[dict[str, Any]]) -> str:
    """Return the text of the user's first message that is neither blank nor an environment; an image is `[Image]`."""
    for item in history:
        parts = item.get("content", []) if item.get("role") == "user" else []
        texts = [part.get("text", "") for part in parts]
        plain = [text.strip().lower() for text in texts]
        if any(text.startswith("<environment_context>") and text.endswith("</environment_context>") for text in plain):
            continue
        if text := later_preview(item if parts else {}):
            return text
    return ""


def take_preview(thread: Thread, message: dict[str, Any]) -> None:
    """Make a user's message the preview of its thread, unless an earlier message is, as versions after 0.92 do."""
    if not thread.ephemeral:
        thread.preview = (thread.preview if thread.asked else "") or later_preview(message)
        thread.asked = thread.asked or thread.preview != ""


def user_history(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the user's input in the form for the model."""
    parts = []
    for item in items:
        if item["type"] == "text":
            parts.append({"type": "input_text", "text": item["text"]})
        elif item["type"] == "image":
            parts += [{"type": "input_text", "text": "<image>"}, {"type": "input_image", "image_url": item["url"]}]
            parts.append({"type": "input_text", "text": "</image>"})
        elif item["type"] == "localImage":
            # The fake opens no file, so it has none to show; this is the real binary's text for a missing file.
            path = item["path"]
            why = _NO_IMAGE.format(path=path)
            parts.append({"type": "input_text", "text": f"Codex could not read the local image at `{path}`: {why}"})
    return {"type": "message", "role": "user", "content": parts}
