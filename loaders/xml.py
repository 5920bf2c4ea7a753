"""XML from strangers, read safely: bytes in, a tree with source lines out.

The parser never sees a path (libxml2 would inflate gzip, and could be made to open other files), never opens a socket
and never meets a DOCTYPE: without one there are no entities, so neither expansion bombs nor external files exist.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import field
from typing import NoReturn

from lxml import etree

from artsim.sim.articulation.description import Note, Source
from artsim.sim.foundation.budget import MORE, allowed
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError

MAX_DEPTH = 2000  # legal models nest as deep as their longest chain (an MJCF rope); libxml2 itself ends at 2048
MAX_ELEMENTS = 250_000
MAX_ATTRIBUTES = 250  # of an element; lxml looks them up one by one
MAX_NAME = 1024  # characters of a tag, an attribute's name, or a `name=`
ENCODINGS = {
    **dict.fromkeys(("utf-8", "utf8", "us-ascii", "ascii", "utf-16", "utf16"), "utf-8"),  # UTF-16 is known by its BOM
    **dict.fromkeys(("iso-8859-1", "latin-1", "latin1"), "latin-1"),
    "iso-8859-15": "iso-8859-15",
    "windows-1252": "cp1252",
}
DECLARATION = re.compile(
    r"""<\?xml\s+version\s*=\s*["'](?P<version>[^"'<>]*)["']"""
    r"""(?P<encoding>\s+encoding\s*=\s*["'](?P<name>[A-Za-z0-9._-]*)["'])?[^<>]*\?>"""
)
DISPLACED = re.compile(r"(?P<before>\s*)(?P<declaration><\?xml\s[^<>]*\?>)")
PROLOG_ITEM = re.compile(r"\s+|<\?.*?\?>|<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: its root, its text in Unicode (which the outputs store), and notes on flaws of its XML."""

    root: etree._Element
    text: str
    notes: tuple[Note, ...] = ()
    lines: Mapping[int, Source] = field(default_factory=dict)  # sources of the lines of a text that xacro made
    macros: Mapping[Source, str] = field(default_factory=dict)  # the macro around a source, for messages


def parse(data: bytes | str, *, file: str, max_mb: float = 64.0) -> Document:
    """Parse `data`, called `file` in messages. Raises ModelError on anything but well-formed, harmless XML."""
    check_size(len(data), file=file, max_mb=max_mb)
    text = data if isinstance(data, str) else decode(data, file)
    if not text.strip():
        refuse(file, 0, "empty file")
    if "\0" in text:
        refuse(file, line_of(text, text.index("\0")), "not well-formed XML: NUL character")
    refuse_doctype(text, file)
    elements = text.count("<") - text.count("</")
    if elements > allowed(MAX_ELEMENTS):
        refuse(file, 0, f"{elements} elements, above the cap of {allowed(MAX_ELEMENTS):.0f}; {MORE}")
    text, well_formed, notes = settle_declaration(text, file)
    try:
        encoded = well_formed.encode()
    except UnicodeEncodeError as error:
        refuse(file, line_of(text, error.start), "not valid Unicode")
    root, more = build_tree(encoded, file)
    check_tree(root, file)
    return Document(root, text, (*notes, *more))


def check_size(size: int, *, file: str, max_mb: float) -> None:
    """Refuse a file above the cap; checked for the size on disk before reading, and again for the bytes."""
    if size > max_mb * 1e6:
        refuse(file, 0, f"{size / 1e6:.4g} MB, above the cap of {max_mb:g} MB (--max-xml-mb)")


def decode(data: bytes, file: str) -> str:
    """Text from bytes: UTF-16 by its BOM, else the declared encoding, else UTF-8; invalid bytes are refused."""
    if data.startswith(b"\x1f\x8b"):
        refuse(file, 0, "gzip data, not XML; unpack it first")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        encoding = declared_encoding(data, file)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        refuse(file, data.count(b"\n", 0, error.start) + 1, f"not valid {encoding.upper()}: {error.reason}")
    return text.removeprefix("\ufeff")


def declared_encoding(data: bytes, file: str) -> str:
    """The codec of the encoding in the XML declaration; UTF-8 if it names none."""
    head = DECLARATION.match(data[:256].decode("latin-1").removeprefix("\xef\xbb\xbf").lstrip())
    name = (head and head["name"]) or "utf-8"
    if name.lower() not in ENCODINGS:
        refuse(file, 1, f"encoding {name!r} is not supported; save the file as UTF-8")
    return ENCODINGS[name.lower()]


def refuse_doctype(text: str, file: str) -> None:
    """Refuse a DOCTYPE, searched up to the root element, before which it must stand."""
    position = 0
    while item := PROLOG_ITEM.match(text, position):
        position = item.end()
    if text.startswith("<!DOCTYPE", position):
        refuse(file, line_of(text, position), "DOCTYPE not allowed (entities could read files or exhaust memory)")


def settle_declaration(text: str, file: str) -> tuple[str, str, list[Note]]:
    """The text without its declared encoding (it is Unicode now), the text in the form for libxml2, and notes.

    13 public files declare version 0.0, which libxml2 refuses; they are read with a warning. So are files whose
    declaration follows blank lines or another declaration, which the reader of MuJoCo and urdfdom skips.
    """
    text, notes = without_displaced(text, file)
    head = DECLARATION.match(text)
    if head is None:
        return text, text, notes
    if head["encoding"]:
        text = text[: head.start("encoding")] + text[head.end("encoding") :]
    if head["version"] in ("1.0", "1.1"):
        return text, text, notes
    well_formed = text[: head.start("version")] + "1.0" + text[head.end("version") :]
    told = Note(Source(file, 1), f"XML version {head['version'][:20]!r} does not exist; read as 1.0")
    return text, well_formed, [*notes, told]


def without_displaced(text: str, file: str) -> tuple[str, list[Note]]:
    """The text with spaces in place of declarations after white space or another one, and a note on the first."""
    pieces: list[str] = []
    notes: list[Note] = []
    place = 0
    while item := DISPLACED.match(text, place):
        place = item.end()
        if item["before"] or pieces:
            pieces += [item["before"], " " * len(item["declaration"])]
            told = "an XML declaration that is not at the start of the file; passed over"
            notes = notes or [Note(Source(file, line_of(text, item.start("declaration"))), told)]
        else:
            pieces.append(item["declaration"])
    return "".join(pieces) + text[place:], notes


def build_tree(encoded: bytes, file: str, notes: tuple[Note, ...] = ()) -> tuple[etree._Element, list[Note]]:
    """The tree. Two hyphens in a comment and undeclared namespace prefixes (tags keep them) are the errors accepted."""
    parser = make_parser(recover=False)
    try:
        return etree.fromstring(encoded, parser), list(notes)
    except etree.XMLSyntaxError as error:
        if not notes and any(entry.type_name == "ERR_HYPHEN_IN_COMMENT" for entry in parser.error_log):
            told = Note(Source(file, error.lineno or 1), "a comment holds '--', which XML does not allow; passed over")
            return build_tree(without_comments(encoded), file, (told,))
        if not only_namespace_errors(parser):
            refuse_syntax(error, file)
    parser = make_parser(recover=True)
    root = etree.fromstring(encoded, parser)
    if root is None or not only_namespace_errors(parser):
        refuse(file, 1, "not well-formed XML")
    return root, [*notes, *(Note(Source(file, entry.line), clean(entry.message)) for entry in parser.error_log)]


def without_comments(encoded: bytes) -> bytes:
    """The text with spaces in place of comments, which end at the first `-->`; line numbers stay."""
    return re.sub(rb"<!--.*?-->", lambda comment: re.sub(rb"[^\n]", b" ", comment[0]), encoded, flags=re.DOTALL)


def make_parser(*, recover: bool) -> etree.XMLParser:
    """A parser without network, DTD and entities. huge_tree lifts libxml2's depth limit of 256, which robots exceed."""
    return etree.XMLParser(
        huge_tree=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        remove_comments=True,
        remove_pis=True,
        recover=recover,
    )


def only_namespace_errors(parser: etree.XMLParser) -> bool:
    """True if all errors of the parser are about namespaces."""
    log = parser.error_log
    return len(log) > 0 and all(entry.type_name == "NS_ERR_UNDEFINED_NAMESPACE" for entry in log)


def refuse_syntax(error: etree.XMLSyntaxError, file: str) -> NoReturn:
    """Raise libxml2's error as one line: file, line and message."""
    message = clean(error.msg or "unknown error")
    if "Excessive depth" in message:
        refuse(file, error.lineno or 0, f"nesting > {MAX_DEPTH}")
    refuse(file, error.lineno or 1, f"not well-formed XML: {message}")


def clean(message: str) -> str:
    """libxml2's message without its own position, on one line."""
    return " ".join(re.sub(r", line \d+, column \d+.*$", "", message).split())


def check_tree(root: etree._Element, file: str) -> None:
    """Refuse a tree that is too deep or has too long names, in one pass without recursion."""
    depth = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if event == "end":
            depth -= 1
            continue
        depth += 1
        if depth > MAX_DEPTH:
            refuse(file, element.sourceline or 0, f"nesting > {MAX_DEPTH}")
        if len(element.attrib) > MAX_ATTRIBUTES:
            told = f"{len(element.attrib)} attributes in <{str(element.tag)[:40]}>, above the cap of {MAX_ATTRIBUTES}"
            refuse(file, element.sourceline or 0, told)
        if max(map(len, (element.tag, element.get("name", ""), *element.attrib))) > MAX_NAME:
            refuse(file, element.sourceline or 0, f"name > {MAX_NAME} chars in <{str(element.tag)[:40]}>")


def line_of(text: str, position: int) -> int:
    """The line, counted from 1, of a position in the text."""
    return text.count("\n", 0, position) + 1


def refuse(file: str, line: int, message: str) -> NoReturn:
    """Raise ModelError with one line: file, line and message."""
    raise ModelError(f"{Source(file, line)}: {message}")
