# SPDX-License-Identifier: MIT
# .ci/run: README's commands, in a chroot or on this machine, with fake programs.
load ../helper

setup() {
    cd "$T"
    mkdir -p tree bin
    cp -r "$ROOT/.ci" tree/.ci
    mkdir -p tree/tests tree/share/setup
    cp "$ROOT/tests/chroot" tree/tests/chroot
    printf '#!/bin/sh\necho "packages $*"\n' >tree/share/setup/install-packages
    cat >bin/make <<'END'
#!/bin/sh
echo "make $*"
[ "$1" != check ] || { echo "5 passed, $FAILED failed, 0 skipped" && [ "$FAILED" -eq 0 ]; }
END
    printf '#!/bin/sh\necho 1000\n' >bin/id
    chmod +x bin/* tree/share/setup/install-packages
    export FAILED=0 PATH="$T/bin:$PATH" TMPDIR="$T/tmp"
    mkdir "$TMPDIR"
}

@test "without a chroot .ci/run prints one line, and runs on this machine" {
    run tree/.ci/run
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "tests/chroot: no chroot can be made: this needs root" ]
    [ "${lines[1]}" = ".ci/run: the tests run on this machine instead" ]
    [[ "$output" == *"make demo DEPS=1"*"packages slurm"*"make oracles DEPS=1"*"make check APART= DEPS=1"* ]]
    [ "${lines[-1]}" = "5 passed, 0 failed, 0 skipped" ]
    [ -z "$(ls -A "$TMPDIR")" ]
    FAILED=1 run tree/.ci/run
    [ "$status" -ne 0 ]
    [ "${lines[-1]}" = "5 passed, 1 failed, 0 skipped" ]
}

@test "the error of debootstrap is the reason in that line" {
    printf '#!/bin/sh\necho 0\n' >bin/id
    printf '#!/bin/sh\necho "I: begins"; echo "E: no such mirror"; exit 1\n' >bin/debootstrap
    chmod +x bin/debootstrap
    run tree/.ci/run
    [ "${lines[0]}" = "tests/chroot: no chroot can be made: E: no such mirror" ]
    [ "${lines[-1]}" = "5 passed, 0 failed, 0 skipped" ]
}

@test "the status of .ci/run is that of the tests in the chroot" {
    for status in 0 2 7; do
        printf '#!/bin/sh\nmkdir "$1/made"; echo "5 passed, %d failed, 0 skipped"; exit %d\n' $status $status >tree/tests/chroot
        code=0
        tree/.ci/run >said || code=$?
        [ "$code" -eq "$status" ]
        [ "$(cat said)" = "5 passed, $status failed, 0 skipped" ]
        [ -z "$(ls -A "$TMPDIR")" ]
    done
}

@test "a signal ends .ci/run and its processes, and removes its files" {
    printf '#!/bin/bash\necho $$ >%s/pid; trap "exit 1" TERM; while :; do sleep 0.05; done\n' "$T" >tree/tests/chroot
    tree/.ci/run 3>&- &
    await $! test -s pid
    kill -TERM $!
    refute wait $!
    refute kill -0 "$(cat pid)" 2>/dev/null
    [ -z "$(ls -A "$TMPDIR")" ]
}

@test "the mirror of the chroot is the one in apt's sources" {
    eval "$(sed -n '/^find_mirror()/,/^}/p' "$ROOT/tests/chroot" | sed "s|/etc/apt/|$T/|")"
    suite=bookworm
    mkdir sources.list.d
    [ -z "$(find_mirror)" ]
    printf '%s\n' 'deb-src http://a/debian bookworm main' 'deb http://b/debian bookworm-security main' \
        'deb cdrom:[x]/ bookworm main' 'deb [arch=amd64 trusted=yes] https://c/debian bookworm main non-free' >sources.list
    [ "$(find_mirror)" = https://c/debian ]
    rm sources.list
    printf 'Types: deb\nURIs: http://d/debian-security\nSuites: bookworm-security\n\nTypes: deb\n# x\nURIs: http://e/debian\nSuites: bookworm-updates bookworm\nComponents: main\n' >sources.list.d/debian.sources
    [ "$(find_mirror)" = http://e/debian ]
    suite=trixie
    [ -z "$(find_mirror)" ]
}
