# SPDX-License-Identifier: MIT
# make install and uninstall.
load ../helper

setup() {
    MAKE=(make -s -C "$ROOT" "B=${DT_BUILD:-build}" "DESTDIR=$T/a dir" PREFIX=/opt/dt)
    PREFIX="$T/a dir/opt/dt"
    "${MAKE[@]}" install
}

@test "programs, engines, shared files and pages are installed, and nothing else" {
    for source in "$ROOT"/tools/dt-*.c; do
        [ -x "$PREFIX/bin/$(basename "$source" .c)" ]
    done
    (cd "$ROOT/share" && find . -type f -not -path './setup/*' -not -path './results/*') | while read -r file; do
        cmp "$ROOT/share/$file" "$PREFIX/share/dt/$file"
    done
    for page in "$ROOT"/man/man*/*; do
        [ ! -e "$page" ] || cmp "$page" "$PREFIX/share/${page#"$ROOT/"}"
    done
    for engine in "${DT_BUILD:-$ROOT/build}"/lib/dt/*.so; do
        [ "${engine##*/}" != cuda-emulated.so ] || continue # of the tests
        cmp "$engine" "$PREFIX/lib/dt/$(basename "$engine")"
    done
    [ ! -e "$PREFIX/lib/dt/cuda-emulated.so" ]
    [ ! -e "$PREFIX/share/dt/setup" ]
    [ ! -e "$PREFIX/share/dt/results" ]
    run find "$T/a dir" -type f -not -path "$PREFIX/bin/dt-*" -not -path "$PREFIX/lib/dt/*.so" \
        -not -path "$PREFIX/share/dt/*" -not -path "$PREFIX/share/bash-completion/completions/dt-*" \
        -not -path "$PREFIX/share/zsh/site-functions/_dt" -not -path "$PREFIX/share/man/man?/*"
    [ -z "$output" ]
}

@test "installed programs start, wherever the tree is moved" {
    mv "$PREFIX" "$T/moved"
    for program in "$T"/moved/bin/*; do
        "$program" --version
    done
}

@test "uninstall removes what install put" {
    "${MAKE[@]}" uninstall
    run find "$T/a dir" -type f
    [ -z "$output" ]
}
