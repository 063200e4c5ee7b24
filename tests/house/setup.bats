# SPDX-License-Identifier: MIT
# share/setup/install-packages: silent if nothing is missing, one clear message otherwise.
load ../helper

# A PATH with programs that print their arguments.
fake() {
    mkdir -p "$T/bin"
    for name in sh env mktemp rm cat flock; do
        ln -sf "$(command -v "$name")" "$T/bin/$name"
    done
    for name in "$@"; do
        printf '#!/bin/sh\necho "%s $*"\n' "$name" >"$T/bin/$name"
        chmod +x "$T/bin/$name"
    done
}

# be UID: makes `id` say so.
be() {
    printf '#!/bin/sh\necho %s\n' "$1" >"$T/bin/id"
    chmod +x "$T/bin/id"
}

install_packages() {
    run env PATH="$T/bin" "$ROOT/share/setup/install-packages" "$@" </dev/null
    echo "$output"
}

@test "installed packages: no output and no installation" {
    fake gnuplot apt-get
    install_packages demo
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "on other systems than Debian the packages are named" {
    fake
    install_packages build demo
    [ "$status" -eq 1 ]
    [[ "$output" == *"install what your system calls these Debian packages: gcc "*gnuplot-nox ]]
}

@test "without root and sudo the line to run is printed" {
    fake apt-get
    be 1000
    install_packages demo
    [ "$status" -eq 1 ]
    [[ "$output" == *"apt-get update && apt-get install -y --no-install-recommends gnuplot-nox" ]]
}

@test "only missing packages are installed" {
    fake
    be 0
    cat >"$T/bin/apt-get" <<'END'
#!/bin/sh
case "$*" in *gnuplot-nox) printf '#!/bin/sh\n' >"${0%/*}/gnuplot" && /bin/chmod +x "${0%/*}/gnuplot" ;; esac
echo "$*" >>"${0%/*}/asked"
END
    chmod +x "$T/bin/apt-get"
    install_packages demo
    [ "$status" -eq 0 ]
    [ "$output" = "installing gnuplot-nox" ]
    [ "$(tail -n 1 "$T/bin/asked")" = "install -y -qq --no-install-recommends gnuplot-nox" ]
}

@test "a package that does not provide the program is an error" {
    fake apt-get
    be 0
    install_packages demo
    [ "$status" -eq 1 ]
    [[ "$output" == *"no command gnuplot"*"something does not work" ]]
}

@test "an unknown group is a usage error" {
    fake
    install_packages garden
    [ "$status" -eq 2 ]
}

@test "without a compiler, make selects the engines of the machine's processor" {
    cd "$ROOT"
    make -n -p CC=no-such-compiler B="$T/build" 2>/dev/null >"$T/made" || true
    grep -qE "^ARCH := $(uname -m)$" "$T/made"
}

# Packages that cannot be installed, and compilers that note what they are asked to make.
@test "every rule that compiles depends on the installation of its packages" {
    mkdir -p "$T/house" "$T/bin"
    cp -r "$ROOT/Makefile" "$ROOT/lib" "$ROOT/tools" "$ROOT/tests" "$ROOT/share" "$T/house"
    printf '#!/bin/sh\nsleep 0.2\nexit 1\n' >"$T/house/share/setup/install-packages"
    printf '#!/bin/sh\ncase " $* " in *" -o "*) echo "$0 $*" >>"%s" ;; esac\n' "$T/asked" >"$T/bin/cc"
    chmod +x "$T/bin/cc" "$T/house/share/setup/install-packages"
    for name in g++ clang mpicc nvcc; do ln -s cc "$T/bin/$name"; done
    cd "$T/house"
    for wanted in build-tests check check-full fuzz gpu-bundle cuda-traffic build/tests/cuda/test-traffic \
        build/lib/dt/cuda-emulated.so build/tests/cuda/test-emulator; do
        run env PATH="$T/bin:$PATH" make -k -j16 CC="$T/bin/cc" CXX="$T/bin/g++" CUDA=1 MPI=1 \
            CURL=1 CUDA_HOME="$T" $wanted
        [ "$status" -eq 2 ] || { echo "$wanted: status $status: $output"; return 1; }
        [ ! -e "$T/asked" ] || { echo "for $wanted:" && head -n 3 "$T/asked"; return 1; }
    done
}

@test "make looks for packages once, and again after a failure, a change or with another compiler" {
    [ -e /var/lib/dpkg/status ] || skip "no /var/lib/dpkg/status"
    cd "$T"
    mkdir -p tree/share/setup
    cp "$ROOT/Makefile" tree
    printf '#!/bin/sh\necho "looked for $*"\n! [ -e fails ]\n' >tree/share/setup/install-packages
    chmod +x tree/share/setup/install-packages
    touch -d 2001-01-01 tree/share/setup/install-packages
    touch tree/fails
    looked() { make -s -C tree deps-build "$@" 2>/dev/null; }
    refute looked
    rm tree/fails
    [ "$(looked)" = "looked for build" ]
    [ -z "$(looked)" ]
    [ "$(looked CC=other)" = "looked for build" ]
    [ -z "$(looked CC=other)" ]
    touch -d 'now + 1 hour' tree/share/setup/install-packages
    [ "$(looked CC=other)" = "looked for build" ]
}
