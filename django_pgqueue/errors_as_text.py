"""What is written down of an error: its class, its traceback, and a fingerprint of its cause.

Never raises, whatever the error is like, and never gives what PostgreSQL cannot store.
"""

import hashlib
import os
import sys
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from .storable import clean_name, clean_text, safe_str

MAX_CLASS_PATH = 255
_PACKAGE = f"{Path(__file__).parent}{os.sep}"
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def class_path(error: BaseException) -> str:
    """Return the dotted path of an error's class, cut to the column."""
    cls = type(error)
    try:
        return clean_name(f"{cls.__module__}.{cls.__qualname__}", MAX_CLASS_PATH)
    except BaseException:  # noqa: BLE001 - a metaclass may refuse to name its class
        name: str = type.__dict__["__qualname__"].__get__(cls)
        return clean_name(name, MAX_CLASS_PATH)


def _first_frame(error: BaseException) -> TracebackType | None:
    # Read past a property of the error's class, which may raise.
    frame: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    return frame


def render_traceback(error: BaseException) -> str:
    """Return a storable traceback that begins at the task's own frame."""
    frame = _first_frame(error)
    while frame is not None and frame.tb_next and frame.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.tb_next
    try:
        return clean_text("".join(traceback.format_exception(type(error), error, frame)))
    except BaseException as broken:  # noqa: BLE001 - a hostile exception may break its own rendering
        return clean_text(f"{class_path(error)}: {safe_str(error)}\n(no traceback: {class_path(broken)})")


def fingerprint(task_path: str, error: BaseException) -> str:
    """Return 32 hex digits equal for failures of the same cause: task, class and innermost own frame."""
    place = ""
    frame = _first_frame(error)
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if (
            not name.startswith(_PACKAGE)
            and not name.startswith(_LIBRARIES)
            and not name.startswith(sys.base_prefix)
        ):
            place = f"{name}:{frame.tb_frame.f_code.co_qualname}"
        frame = frame.tb_next
    text = f"{task_path}\n{class_path(error)}\n{place}"
    return hashlib.blake2s(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
