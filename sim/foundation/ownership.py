"""Checks that only the user can have written a file: what is read from a cache is executed or trusted.

A folder is the user's own when it and every folder above it belong to the user or to root, and no one else may write
there (as OpenSSH requires of a home). Folders that everybody may write but where only owners may rename (/tmp) pass as
parents. Systems without such owners (Windows) separate users by other means: there everything passes.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_POSIX = os.name == "posix"


def _user() -> int:
    return os.geteuid() if _POSIX else 0


def is_own(about: os.stat_result) -> bool:
    """Whether a file or folder belongs to the user or to root, and nobody else may write it.

    A group may if it is its owner's private one, which has the owner's number (`umask 002`, as on Fedora).
    """
    if not _POSIX:
        return True
    others = stat.S_IWOTH if about.st_gid == about.st_uid else stat.S_IWOTH | stat.S_IWGRP
    return about.st_uid in (0, _user()) and not about.st_mode & others


def whose_else(folder: Path) -> Path | None:
    """The first folder on the way to this one, or itself, in which somebody else could put something, or None. Folders
    that do not exist yet are nobody's.
    """
    ways = dict.fromkeys((Path.cwd() / folder, folder.resolve()))
    for way in ways:
        for place in (*reversed(way.parents), way):
            try:
                about = place.stat()
            except OSError:
                break
            sticky = place != way and about.st_mode & stat.S_ISVTX and about.st_uid in (0, _user())
            if not (sticky or is_own(about)):
                return place
    return None


def make_own(folder: Path) -> bool:
    """Create a folder, and missing ones above it, for the user alone; return whether it then exists."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        for place in reversed(missing):
            with suppress(FileExistsError):
                place.mkdir(mode=0o700)
    except OSError:
        return False
    return folder.is_dir()


def read_own(path: Path, most: int) -> bytes | None:
    """The content of a regular file of at most `most` bytes that is the user's own; None for anything else.

    Links are not followed, and pipes are not waited for.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(path, flags | getattr(os, "O_CLOEXEC", 0)), "rb") as stream:
            about = os.fstat(stream.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size > most or not is_own(about):
                return None
            return stream.read(most)
    except OSError:
        return None
