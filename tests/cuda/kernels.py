#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kernels.py ENGINE: a line for each kernel of a compiled engine (cuda.so, or an object of nvcc), for each GPU:

    compute capability, registers of a thread, most threads of a block (__launch_bounds__; 0: none), bytes of
    shared memory that are not dynamic, bytes of stack (spilled registers, and arrays), name

It reads the machine code that cuobjdump extracts."""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

MAX_THREADS, REGCOUNT, FRAME_SIZE = 0x05, 0x2F, 0x11  # attributes of .nv.info
SIZED = 0x04  # an attribute with a length; others have two bytes


def sections(elf):
    """Names of sections, with their bytes and what their headers say."""
    at, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, at + i * size) for i in range(count)]

    def text(offset):
        start = headers[names][4] + offset
        return elf[start:elf.index(b"\0", start)].decode()

    return [(text(h[0]), b"" if h[1] == 8 else elf[h[4]:h[4] + h[5]], h) for h in headers]


def attributes(info):
    at = 0
    while at < len(info):
        kind, name, size = struct.unpack_from("<BBH", info, at)
        at += 4
        value = b""
        if kind == SIZED:
            value = info[at:at + size]
            at += size
        yield name, value


def symbols(parts):
    by_name = {name: data for name, data, _ in parts}
    names, table = by_name[".strtab"], by_name[".symtab"]
    for at in range(0, len(table), 24):
        start, = struct.unpack_from("<I", table, at)
        yield names[start:names.index(b"\0", start)].decode()


def kernels(elf):
    parts = sections(elf)
    names = list(symbols(parts))
    infos = {name: data for name, data, _ in parts}
    shared = {name[len(".nv.shared."):]: header[5] for name, _, header in parts if name.startswith(".nv.shared.")}
    known = {MAX_THREADS: {}, REGCOUNT: {}, FRAME_SIZE: {}}
    for attribute, value in attributes(infos[".nv.info"]):
        if attribute in (REGCOUNT, FRAME_SIZE):
            symbol, number = struct.unpack("<II", value)
            known[attribute][names[symbol]] = number
    for name in infos:
        if not name.startswith(".nv.info."):
            continue
        kernel, threads = name[len(".nv.info."):], 0
        for attribute, value in attributes(infos[name]):
            if attribute == MAX_THREADS:
                x, y, z = struct.unpack("<III", value)
                threads = x * y * z
        yield known[REGCOUNT][kernel], threads, shared.get(kernel, 0), known[FRAME_SIZE].get(kernel, 0), kernel


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["cuobjdump", "-xelf", "all", os.path.abspath(sys.argv[1])], cwd=scratch, check=True,
                       stdout=subprocess.DEVNULL)
        for cubin in sorted(pathlib.Path(scratch).iterdir()):
            capability = re.search(r"sm_(\d+)", cubin.name).group(1)
            for row in kernels(cubin.read_bytes()):
                print(capability, *row)


main()
