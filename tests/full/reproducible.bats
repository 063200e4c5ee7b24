# SPDX-License-Identifier: MIT
# Programs, engines and libraries have the same bytes from two directories of two bare Debian systems.
# CHROOTS: a directory that keeps these; without it they are made, in minutes, and removed.
load ../helper

built='find bin lib -type f \( -name "dt*" -o -name "*.so*" \) -exec sha256sum {} + | sort -k 2'

# build SYSTEM DIRECTORY: builds there and lists what came out in SYSTEM.sums.
build() {
    local root=${CHROOTS:-$T}/$1
    if ! "$ROOT/tests/chroot" "$root" 'apt-get install -y -q make >/dev/null' \
        "mkdir -p '$2' && cp -a /root/dt/. '$2' && cd '$2' && make -s DEPS=1 CUDA=0 >/dev/null" \
        "cd '$2/build' && $built >/root/sums" >"$T/$1.log" 2>&1; then
        [ $? -ne 125 ] || skip "$(tail -n 1 "$T/$1.log")"
        tail -n 20 "$T/$1.log"
        return 1
    fi
    cp "$root/root/sums" "$T/$1.sums"
}

@test "two chroots and two directories give the same bytes" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    command -v debootstrap >/dev/null || skip "no debootstrap"
    build one /root/one
    build two /srv/another/place
    for file in "$ROOT"/tools/dt*.c; do
        grep -q " bin/$(basename "$file" .c)$" "$T/one.sums"
    done
    for file in libdt.so.0 dt/cpu-{generic,avx2,avx512}.so; do
        grep -q " lib/$file$" "$T/one.sums"
    done
    diff "$T/one.sums" "$T/two.sums"
    refute grep -rqaF /srv/another/place "${CHROOTS:-$T}/two/srv/another/place/build/bin"
}

@test "the list of packages is valid SPDX, by SPDX's own checker" {
    command -v pyspdxtools >/dev/null || skip "pyspdxtools is not installed (Python package spdx-tools)"
    "$ROOT/share/packaging/sbom" dt >"$T/dt.spdx.json"
    pyspdxtools -i "$T/dt.spdx.json"
    sed -i 's/SPDX-2.3/SPDX-9.9/' "$T/dt.spdx.json"
    refute pyspdxtools -i "$T/dt.spdx.json"
}
