# SPDX-License-Identifier: MIT
# The website of make html.
load ../helper

@test "the website has all pages, and every link and fragment resolves" {
    command -v mandoc >/dev/null && command -v python3 >/dev/null || skip "no mandoc or no python3"
    run make -s -C "$ROOT" B="$T" html
    [ "$output" = "$T/html/index.html" ]
    for page in "$ROOT"/man/man?/*; do
        grep -qF "href=\"${page##*/}.html\"" "$T/html/index.html"
    done
    grep -qF 'href="dt-shard.5.html"' "$T/html/dt-train.1.html"
    grep -qF 'href="https://manpages.debian.org/zstd.1"' "$T/html/dt-shard.5.html"
    run "$ROOT/tests/house/check-links" "$T/html"
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
}

@test "a link to nowhere, to a fragment that does not exist, and an id twice are found" {
    printf '<h1 id="a">A</h1><p id="a"><a href="#a">1</a><a href="b.html">2</a><a href="#c">3</a><img src="d.svg">' >"$T/x.html"
    run "$ROOT/tests/house/check-links" "$T"
    [ "$status" -eq 1 ]
    [ "$output" = "$(printf '%s\n' "x.html: two elements have the id 'a'" 'x.html: b.html: no such file' \
        'x.html: #c: no such id' 'x.html: d.svg: no such file' '1 pages, 4 links, 4 wrong')" ]
}
