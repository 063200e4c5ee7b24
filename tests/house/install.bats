# SPDX-License-Identifier: MIT
# make install and uninstall.
load ../helper

setup() {
    MAKE=(make -s -C "$ROOT" "B=${DT_BUILD:-build}" "DESTDIR=$T/a dir" PREFIX=/opt/dt)
    PREFIX="$T/a dir/opt/dt"
    "${MAKE[@]}" install >"$T/said"
}

@test "programs, engines, shared files and pages are installed, and nothing else" {
    for source in "$ROOT"/tools/dt*.c; do
        [ -x "$PREFIX/bin/$(basename "$source" .c)" ]
    done
    (cd "$ROOT/share" && find . -type f -not -path './setup/*' -not -path './packaging/*' -not -path './results/*') | while read -r file; do
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
    cmp "${DT_BUILD:-$ROOT/build}/lib/libdt.so.0" "$PREFIX/lib/libdt.so.0"
    cmp "$ROOT/lib/api/dt.h" "$PREFIX/include/dt.h"
    [ ! -e "$PREFIX/share/dt/setup" ]
    [ ! -e "$PREFIX/share/dt/packaging" ]
    [ ! -e "$PREFIX/share/dt/results" ]
    run find "$T/a dir" -type f -not -path "$PREFIX/bin/dt*" -not -path "$PREFIX/lib/dt/*.so" \
        -not -path "$PREFIX/share/dt/*" -not -path "$PREFIX/share/bash-completion/completions/dt*" \
        -not -path "$PREFIX/share/fish/vendor_completions.d/dt*.fish" -not -path "$PREFIX/share/zsh/site-functions/_dt" -not -path "$PREFIX/share/man/man?/*" \
        -not -path "$PREFIX/lib/libdt.so.0" -not -path "$PREFIX/lib/pkgconfig/dt.pc" -not -path "$PREFIX/include/dt.h"
    [ -z "$output" ]
}

@test "install and uninstall say where to and from where" {
    [ "$(cat "$T/said")" = "dt is installed in '$PREFIX': programs in '$PREFIX/bin'" ]
    [ "$("${MAKE[@]}" uninstall)" = "dt is removed from '$PREFIX'" ]
}

@test "pkg-config finds the library" {
    command -v pkg-config >/dev/null || skip "pkg-config is not installed"
    export PKG_CONFIG_PATH="$PREFIX/lib/pkgconfig"
    [ "$(pkg-config --cflags --libs dt | xargs)" = "-I/opt/dt/include -L/opt/dt/lib -ldt" ]
    [ "$(pkg-config --modversion dt)" = "$(dt-shard --version | sed -n '1s/.* //p')" ]
}

@test "configurations that dt-launch(7) names are installed" {
    grep -oE -- '-c [a-z0-9-]+\.yaml' "$ROOT/man/man7/dt-launch.7" | sort -u >"$T/named"
    [ -s "$T/named" ]
    while read -r _ file; do [ -e "$PREFIX/share/dt/configs/$file" ]; done <"$T/named"
}

@test "installed programs start, wherever the tree is moved" {
    mv "$PREFIX" "$T/moved"
    for program in "$T"/moved/bin/*; do
        "$program" --version
    done
}

@test "a program in C is linked with the installed library" {
    printf '#include <dt.h>\n#include <stdio.h>\nint main(void) { return puts(dt_api_version()) < 0; }\n' >"$T/x.c"
    ${CC:-cc} -Werror -Wall -I"$PREFIX/include" "$T/x.c" -L"$PREFIX/lib" -ldt -Wl,-rpath,"$PREFIX/lib" -o "$T/x"
    [ "$("$T/x")" = "$(dt-shard --version | sed -n '1s/.* //p')" ]
    nm -D --defined-only "$PREFIX/lib/libdt.so.0" | sed -n 's/.* T \(.*\)@@LIBDT_0$/\1/p' | sort >"$T/exported"
    grep -o 'dt_api_[a-z_]*(' "$ROOT/lib/api/dt.h" | tr -d '(' | sort -u | diff - "$T/exported"
}

@test "uninstall removes what install put, with its directory" {
    "${MAKE[@]}" uninstall
    [ "$(find "$T/a dir")" = "$T/a dir
$T/a dir/opt" ]
    "${MAKE[@]}" uninstall
}

@test "uninstall leaves what others have, and the directories of /usr/local" {
    mkdir "$PREFIX/share/other"
    touch "$PREFIX/bin/other"
    "${MAKE[@]}" uninstall
    [ "$(cd "$PREFIX" && find . -mindepth 1 | sort | xargs)" = "./bin ./bin/other ./share ./share/other" ]
    "${MAKE[@]}" PREFIX=/usr/local install
    "${MAKE[@]}" PREFIX=/usr/local uninstall
    [ -z "$(find "$T/a dir/usr/local" -type f)" ]
    [ -d "$T/a dir/usr/local/lib/pkgconfig" ]
}
