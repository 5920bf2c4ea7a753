"""Checks that only the user can have written a file: caches, whose files are trusted, are read from no other.

A folder is the user's own when it and every folder above it belong to the user or to root, and no one else may write
there (as OpenSSH requires of a home). Folders that everybody may write but where only owners may rename (/tmp) pass as
parents. Systems without Unix owners (Windows) separate users by other means: there every file passes.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_POSIX = os.name == "posix"
_MOST_LINKS = 40  # followed on the way to a folder, as by Linux


def _user() -> int:
    return os.geteuid() if _POSIX else 0


def is_own(about: os.stat_result, place: Path | int) -> bool:
    """True if a file or folder, by path or open, belongs to the user or to root, and nobody else may write it.

    A group may if it is its owner's private one, which has the owner's number (`umask 002`, as on Fedora), unless there
    is an access control list: the bits of the group are then those of all whom the list names.
    """
    if not _POSIX:
        return True
    private = about.st_gid == about.st_uid and not (about.st_mode & stat.S_IWGRP and _has_list(place))
    others = stat.S_IWOTH if private else stat.S_IWOTH | stat.S_IWGRP
    return _is_users(about) and not about.st_mode & others


def _is_users(about: os.stat_result) -> bool:
    return about.st_uid in (0, _user())


def _has_list(place: Path | int) -> bool:
    """True if a file has a POSIX access control list, which Linux keeps as an attribute."""
    with suppress(OSError, AttributeError):
        return bool(os.getxattr(place, "system.posix_acl_access"))
    return False


def whose_else(folder: Path) -> Path | None:
    """The first folder on the way to this one, or itself, in which somebody else could put something, or None. Folders
    that do not exist yet are nobody's. The ways along links are all looked at, one link after the other, and a link is
    its owner's, who could have it lead elsewhere.
    """
    ways, known = [Path.cwd() / folder], set[Path]()
    while ways:
        way = ways.pop()
        if way in known:
            continue
        known.add(way)
        if len(known) > _MOST_LINKS:
            return way
        for place in (*reversed(way.parents), way):
            try:
                itself = place.lstat()
                if stat.S_ISLNK(itself.st_mode):
                    if not _is_users(itself):
                        return place
                    ways.append(place.parent / place.readlink() / way.relative_to(place))
                about = place.stat()
            except OSError:
                break
            sticky = place != way and about.st_mode & stat.S_ISVTX and _is_users(about)
            if not (sticky or is_own(about, place)):
                return place
    return None


def make_own(folder: Path) -> bool:
    """Create a folder, and missing ones above it, for the user alone; True if it then exists."""
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
            if not stat.S_ISREG(about.st_mode) or about.st_size > most or not is_own(about, stream.fileno()):
                return None
            return stream.read(most)
    except OSError:
        return None
