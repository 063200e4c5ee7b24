# SPDX-License-Identifier: MIT
# Programs and plug-ins are hardened as Debian's packages are, and do not name the directory that they
# were built in.
load ../helper

setup() {
    cd "$T"
    command -v readelf >/dev/null || skip "no readelf"
    build=${DT_BUILD:-$ROOT/build}
    [[ "$(ldd "$build/bin/dt-cat")" != *asan* ]] || skip "sanitizers replace the checks"
}

@test "programs are position-independent, with read-only relocations, canaries and checked buffers" {
    [ "$build/obj/lib/base/file.o" -nt "$ROOT/Makefile" ] || skip "objects are older than the Makefile"
    for file in "$build"/bin/dt*; do
        readelf -hW "$file" | grep -q 'Type: *DYN' || { echo "$file: no PIE"; return 1; }
        readelf -lW "$file" | grep -q GNU_RELRO || { echo "$file: no RELRO"; return 1; }
        readelf -dW "$file" | grep -qE 'BIND_NOW|Flags:.*NOW' || { echo "$file: lazy binding"; return 1; }
        readelf -sW --dyn-syms "$file" >symbols
        grep -q __stack_chk_fail symbols || { echo "$file: no canary"; return 1; }
        grep -q '__[a-z]*_chk@' symbols || { echo "$file: no checked function"; return 1; }
    done
}

@test "plug-ins have read-only relocations, and no stack is executable" {
    for file in "$build"/bin/dt* "$build"/lib/dt/*.so "$build"/lib/libdt.so.0; do
        [[ "$file" != *emulated* ]] || continue
        readelf -lW "$file" >segments
        grep -q GNU_RELRO segments || { echo "$file: no RELRO"; return 1; }
        refute grep -q 'GNU_STACK.*RWE' segments
        refute grep -q TEXTREL <(readelf -dW "$file")
    done
}

@test "an object has the same bytes from two directories, and names neither" {
    for name in one two/deeper; do
        mkdir -p "$T/$name"
        cp -r "$ROOT/Makefile" "$ROOT/lib" "$ROOT/share" "$ROOT/VERSION" "$T/$name"
        (cd "$T/$name" && make -s DEPS=0 CC=cc build/obj/lib/base/file.o build/obj/lib/json/config.o)
    done
    cmp "$T"/one/build/obj/lib/base/file.o "$T"/two/deeper/build/obj/lib/base/file.o
    cmp "$T"/one/build/obj/lib/json/config.o "$T"/two/deeper/build/obj/lib/json/config.o
    refute grep -aF "$T" one/build/obj/lib/json/config.o
}
