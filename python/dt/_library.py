# SPDX-License-Identifier: MIT
"""libdt.so.0 through ctypes: the functions of dt.h, and its errors as exceptions."""
import ctypes
import operator
import os
import threading
import weakref
from ctypes import (POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint,
                    c_uint32, c_uint64, c_void_p)

NO_TOKEN = 0xFFFFFFFF
ERROR_TEXT = 512


class Error(Exception):
    """What failed, in the line that dt's programs print."""


class InputError(Error, ValueError):
    """A file, an id or an argument is malformed or impossible."""


class MissingError(Error, LookupError):
    """Something asked for by name does not exist."""


class ResourceError(Error):
    """A system call failed, or memory is short."""


_KINDS = {-1: ResourceError, -2: InputError, -3: InputError, -4: ResourceError, -5: MissingError}


class Encoding(Structure):
    _fields_ = [("ids", POINTER(c_uint32)), ("ends", POINTER(c_uint64)), ("spans", POINTER(c_uint64))]


class DatasetInfo(Structure):
    _fields_ = [(name, c_uint64) for name in ("tokens", "documents", "text_bytes", "targets",
                                              "tokenizer", "hash", "weights")] + [
        (name, c_uint32) for name in ("vocab_size", "end", "row", "masked")]


class LoaderOptions(Structure):
    _fields_ = [("size", c_size_t), ("seed", c_uint64), ("first", c_uint64),
                ("length", c_uint32), ("batch", c_uint32), ("ranks", c_uint32), ("rank", c_uint32),
                ("shuffle", c_int32), ("workers", c_int32), ("scope", c_int32),
                ("memory", c_uint64), ("shuffle_block", c_uint64), ("shuffle_window", c_uint64)]


class LoadedBatch(Structure):
    _fields_ = [("ids", c_void_p), ("begins", c_void_p), ("ends", c_void_p),
                ("position", c_uint64), ("targets", c_uint64), ("rows", c_uint32),
                ("length", c_uint32)]


class CleanerOptions(Structure):
    _fields_ = [("size", c_size_t), ("rules", POINTER(c_char_p)), ("rule_count", c_size_t),
                ("rule_text", c_char_p), ("normalize", c_char_p), ("space", c_char_p),
                ("mask", c_char_p), ("languages", c_char_p), ("identifier", c_char_p),
                ("language_score", c_double), ("min_chars", c_uint64), ("max_chars", c_uint64),
                ("reject_invalid", c_int32), ("mojibake", c_int32), ("invisible", c_int32),
                ("casefold", c_int32), ("keep_line_ends", c_int32)]


class CleanedDocument(Structure):
    _fields_ = [("text", c_void_p), ("meta", c_void_p), ("text_size", c_size_t),
                ("meta_size", c_size_t), ("rule", c_char_p), ("value", c_double)]


# Result, arguments; those that can fail end with the array for the line.
_HANDLE, _NEW, _TEXTS, _SIZES = c_void_p, POINTER(c_void_p), POINTER(c_char_p), POINTER(c_size_t)
_FUNCTIONS = {
    "version": (c_char_p, []),
    "free": (None, [c_void_p]),
    "tokenizer_open": (c_int, [_NEW, c_char_p, c_char_p, c_char_p]),
    "tokenizer_close": (None, [_HANDLE]),
    "tokenizer_size": (c_uint32, [_HANDLE]),
    "tokenizer_end": (c_uint32, [_HANDLE]),
    "tokenizer_fingerprint": (c_uint64, [_HANDLE]),
    "tokenizer_find": (c_uint32, [_HANDLE, c_char_p, c_size_t]),
    "tokenizer_token": (c_void_p, [_HANDLE, c_uint32, _SIZES]),
    "tokenizer_is_special": (c_int, [_HANDLE, c_uint32]),
    "tokenizer_encode": (c_int, [_HANDLE, _TEXTS, _SIZES, c_size_t, c_char_p, c_uint, c_int,
                                 POINTER(Encoding), c_char_p]),
    "encoding_release": (None, [POINTER(Encoding)]),
    "tokenizer_decode": (c_int, [_HANDLE, c_void_p, c_size_t, POINTER(c_void_p), _SIZES, c_char_p]),
    "dataset_open": (c_int, [_NEW, c_char_p, c_char_p, c_char_p]),
    "dataset_close": (None, [_HANDLE]),
    "dataset_describe": (None, [_HANDLE, POINTER(DatasetInfo), c_size_t]),
    "dataset_read": (c_int, [_HANDLE, c_uint64, c_uint64, c_void_p, c_char_p]),
    "dataset_document": (c_int, [_HANDLE, c_uint64, POINTER(c_uint64), POINTER(c_uint64),
                                 c_char_p]),
    "dataset_samples": (c_int, [_HANDLE, c_uint32, POINTER(c_uint64), c_char_p]),
    "loader_open": (c_int, [_NEW, _HANDLE, POINTER(LoaderOptions), c_char_p]),
    "loader_next": (c_int, [_HANDLE, POINTER(LoadedBatch), c_char_p]),
    "loader_close": (None, [_HANDLE]),
    "cleaner_open": (c_int, [_NEW, POINTER(CleanerOptions), c_char_p]),
    "cleaner_apply": (c_int, [_HANDLE, c_char_p, c_size_t, c_char_p, c_char_p,
                              POINTER(CleanedDocument), c_char_p]),
    "cleaned_release": (None, [POINTER(CleanedDocument)]),
    "cleaner_close": (None, [_HANDLE]),
}


def _find():
    """$DT_LIBRARY, the library of this package, that of a source tree's build, or the system's."""
    here = os.path.dirname(os.path.abspath(__file__))
    for path in (os.path.join(here, "_prefix", "lib", "libdt.so.0"),
                 os.path.join(here, "..", "..", "build", "lib", "libdt.so.0")):
        if os.path.exists(path):
            return path
    return "libdt.so.0"


def _load():
    path = os.environ.get("DT_LIBRARY") or _find()
    try:
        library = ctypes.CDLL(path)
    except OSError as failure:
        raise ImportError(f"dt needs {path}, which make builds and the wheel dt-tools has: "
                          f"{failure}") from None
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, "dt_api_" + name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()
_local = threading.local()


def plain(name):
    """A function of dt.h that cannot fail."""
    return getattr(_library, "dt_api_" + name)


def checked(name):
    """A function of dt.h that can fail, without its last argument: it raises instead."""
    function = getattr(_library, "dt_api_" + name)

    def call(*arguments):
        try:
            text = _local.text
        except AttributeError:
            text = _local.text = ctypes.create_string_buffer(ERROR_TEXT)
        code = function(*arguments, text)
        if code < 0:
            raise _KINDS.get(code, Error)(text.value.decode("utf-8", "replace"))
    return call


free = plain("free")


class Handle:
    """An object of the library, closed once: by close(), or when nothing refers to it; not at the end
    of the program."""

    def __init__(self, opened, close):
        self.value = opened
        self.close = weakref.finalize(self, close, opened)
        self.close.atexit = False  # threads that the interpreter does not wait for may use it

    def get(self):
        if not self.close.alive:
            raise InputError("it was closed")
        return self.value


def open_handle(kind, *arguments):
    opened = c_void_p()
    checked(kind + "_open")(ctypes.byref(opened), *arguments)
    return Handle(opened, plain(kind + "_close"))


def own(address, kind, count):
    """The memory at an address, or of a pointer, as an array of ctypes, which frees it when nothing
    refers to it."""
    address = address if isinstance(address, int) else ctypes.cast(address, c_void_p).value
    array = (kind * count).from_address(address)
    weakref.finalize(array, free, address).atexit = False
    return array


def path_bytes(path):
    path = os.fsencode(path)
    if b"\0" in path:
        raise InputError("a path holds a NUL byte")
    return path


def string_bytes(name, text):
    """A text that the library takes up to its first zero."""
    data = text.encode()
    if b"\0" in data:
        raise InputError(f"{name} holds a NUL byte")
    return data


def whole(name, value, kind):
    """A number of a type of ctypes, which takes the low bits of one that does not fit."""
    value, bits = operator.index(value), 8 * ctypes.sizeof(kind)
    if value < 0:
        raise InputError(f"{name} must not be negative, but is {value}")
    if value >= 1 << (bits - (kind(-1).value < 0)):
        raise InputError(f"{name} is too large: {value}")
    return value


def structure(kind, **values):
    """A structure of ctypes with these members."""
    for name, of in kind._fields_:
        if name in values and of in (c_size_t, c_uint32, c_uint64, c_int32):
            values[name] = whole(name, values[name], of)
    return kind(**values)


def text_bytes(text):
    """The UTF-8 of a text. Halves of surrogate pairs are joined, others become U+FFFD, as in
    tiktoken. Bytes are what they are."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
