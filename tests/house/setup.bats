# SPDX-License-Identifier: MIT
# share/setup/install-packages: silent if nothing is missing, one clear message otherwise; make asks
# before it installs.
load ../helper
unset DEPS MAKEFLAGS MAKEOVERRIDES # of the make that runs the tests

# A PATH with programs that print their arguments.
fake() {
    mkdir -p "$T/bin"
    for name in sh env mktemp rm cat flock paste; do
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

@test "dnf's and brew's names are in one line, and Debian's where theirs are not known" {
    fake dnf
    be 0
    install_packages demo track
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "install-packages: missing: gnuplot libcurl-devel; install it with" ]
    [ "${lines[1]}" = "    dnf install -y gnuplot libcurl-devel" ]
    [ "${#lines[@]}" -eq 2 ]
    mv "$T/bin/dnf" "$T/bin/brew"
    install_packages demo data
    [ "$status" -eq 1 ]
    [ "${lines[1]}" = "    brew install gnuplot" ]
    [[ "${lines[2]}" == *"these Debian packages: libxml2-dev "* ]]
}

@test "--ask installs nothing, and prints the line that installs what dpkg does not have" {
    fake apt-get sudo
    printf '#!/bin/sh\ncase $4 in curl) echo installed ;; *) exit 1 ;; esac\n' >"$T/bin/dpkg-query"
    chmod +x "$T/bin/dpkg-query"
    be 0
    install_packages --ask demo download
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "install-packages: missing: gnuplot-nox ca-certificates; install it with this line, or make with DEPS=1:" ]
    [ "${lines[1]}" = "    apt-get update && apt-get install -y --no-install-recommends gnuplot-nox ca-certificates" ]
    [ "${#lines[@]}" -eq 2 ]
    be 1000
    install_packages --ask demo
    [ "${lines[1]}" = "    sudo apt-get update && sudo apt-get install -y --no-install-recommends gnuplot-nox" ]
}

@test "packages that dpkg has and that do not work are not installed again" {
    fake apt-get
    printf '#!/bin/sh\necho installed\n' >"$T/bin/dpkg-query"
    chmod +x "$T/bin/dpkg-query"
    be 0
    install_packages demo
    [ "$status" -eq 1 ]
    [ "$output" = $'no command gnuplot\ninstall-packages: packages are installed and yet something does not work' ]
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
@test "STATIC is 0 or 1, and goes without what is shared" {
    cd "$ROOT"
    for wrong in STATIC=yes 'STATIC=1 MPI=1' 'STATIC=1 CUDA=1'; do
        run make -n DEPS=0 $wrong
        [ "$status" -eq 2 ]
        [[ "$output" == *"Makefile:"*"STATIC"* ]]
    done
}

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
    looked() { make -s -C tree build/obj/x.o "$@" 2>/dev/null | grep looked || true; }
    touch tree/x.c
    looked
    rm tree/fails
    [ "$(looked)" = "looked for --ask build" ]
    [ -z "$(looked)" ]
    [ "$(looked CC=other)" = "looked for --ask build" ]
    [ -z "$(looked CC=other)" ]
    touch -d 'now + 1 hour' tree/share/setup/install-packages
    [ "$(looked CC=other)" = "looked for --ask build" ]
}

@test "make asks for all packages of a goal at once, installs with DEPS=1 or make deps, and does not look with DEPS=0" {
    cd "$T"
    mkdir -p tree/share/setup
    cp "$ROOT/Makefile" tree
    printf '#!/bin/sh\necho "looked for $*"\nexit 1\n' >tree/share/setup/install-packages
    chmod +x tree/share/setup/install-packages
    made() { make -s -C tree "$@" 2>messages || echo failed; }
    [ "$(made demo)" = $'looked for --ask build demo\nfailed' ]
    [ "$(made check MPI=0 CURL=0)" = $'looked for --ask build check data demo download\nfailed' ]
    [ "$(made demo DEPS=1)" = $'looked for build demo\nfailed' ]
    [ "$(made deps-data)" = $'looked for build\nfailed' ]
    [[ "$(made deps)" == "looked for build demo download check mpi track data"* ]]
    [[ "$(made build/obj/x.o DEPS=0)" != *looked* ]]
    for wrong in "deps DEPS=0" "deps-mpi DEPS=0" "all DEPS=yes"; do
        [ "$(made $wrong)" = failed ]
        grep -q 'Makefile:.*DEPS' messages
    done
}

@test "each package that a file of requirements names has a version and a hash in its lock" {
    cd "$ROOT"
    for lock in tests/oracles/*.lock python/*.lock; do
        refute grep -vE '^(# CPython 3\.[0-9]+ [a-z0-9_]+|[a-z0-9.-]+==[^ ]+ --hash=sha256:[0-9a-f]{64})$' "$lock"
        sed -E 's/#.*//; s/[ <>=!;].*//; /^-r|^$/d; s/_/-/g' "${lock%.lock}.txt" | tr A-Z a-z | while read -r name; do
            grep -q "^$name==" "$lock" || { echo "$lock has no $name"; return 1; }
        done
    done
}
