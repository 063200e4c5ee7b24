# SPDX-License-Identifier: MIT
# The C library musl, which has POSIX, and of glibc's own functions few.
load ../helper

@test "the library and the programs compile with musl without a warning" {
    command -v musl-gcc >/dev/null || skip "musl-gcc is not installed (Debian: musl-tools)"
    # headers of libraries and of Linux, without those of glibc
    mkdir "$T/include"
    for name in zstd.h zstd_errors.h zlib.h zconf.h yaml.h xxhash.h json-c nettle gmp.h linux asm-generic; do
        for directory in /usr/include/x86_64-linux-gnu /usr/include; do
            [ ! -e $directory/$name ] || ln -sfn $directory/$name "$T/include/$name"
        done
    done
    ln -s "/usr/include/$(uname -m)-linux-gnu/asm" "$T/include/asm"
    objects=()
    for source in "$ROOT"/tools/dt*.c; do objects+=("$T/build/obj/tools/$(basename "$source" .c).o"); done
    make -s -C "$ROOT" B="$T/build" CC="musl-gcc -isystem $T/include" CFLAGS=-O0 DEPS=0 MPI=0 CUDA=0 CURL=0 DATA=0 \
        "$T/build/lib/libdt.a" "${objects[@]}"
    refute grep -r . "$T/build/obj" --include='*.warnings'
}
