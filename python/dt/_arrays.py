# SPDX-License-Identifier: MIT
"""Memory of the library as arrays: of numpy if it is installed, else memoryviews."""
import ctypes
from array import array

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

_TYPES = {"I": "uint32", "i": "int32", "Q": "uint64"}


def need_numpy(what):
    if numpy is None:
        raise ImportError(f"{what} needs numpy: pip install numpy")
    return numpy


def view(memory, code, *shape):
    """An array of the shape over an array of ctypes, without a copy; memory None: it is empty."""
    if numpy:
        if memory is None:
            return numpy.empty(shape, _TYPES[code])
        return numpy.frombuffer(memory, _TYPES[code]).reshape(shape)
    if memory is None:
        return memoryview(array(code))
    flat = memoryview(memory).cast("B")
    return flat.cast(code) if len(shape) == 1 else flat.cast(code, shape)


def offsets(ends, count):
    """0, and the ends of count documents."""
    if numpy:
        result = numpy.zeros(count + 1, numpy.uint64)
        if count:
            result[1:] = numpy.frombuffer(ends, numpy.uint64)
        return result
    return memoryview(array("Q", [0] + ends[:]))


def ids(tokens):
    """Address and count of ids, and what must live as long as the address is used."""
    if numpy and isinstance(tokens, numpy.ndarray):
        if tokens.dtype != numpy.uint32 or not tokens.flags.c_contiguous:
            tokens = numpy.ascontiguousarray(_checked(tokens), numpy.uint32)
        return tokens.ctypes.data, tokens.size, tokens
    if not isinstance(tokens, array) or tokens.typecode != "I":
        tokens = array("I", iter(tokens))  # of bytes it would take the machine's words
    address, count = tokens.buffer_info()
    return address, count, tokens


def _checked(tokens):
    if tokens.size and (tokens.dtype.kind not in "iu" or tokens.min() < 0
                        or tokens.max() > 0xFFFFFFFF):
        raise OverflowError("ids must be whole numbers from 0 to 2**32 - 1")
    return tokens
