#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
load ../helper

setup() {
    cd "$T"
    need_plugin html libxml2
}

text="This sentence is long enough to be the main text of a page, and it has a second part. It is \
followed by another sentence, so that it is not taken for a menu."

# html TITLE: a page.
html() {
    printf '<html lang=en><title>%s</title><nav><a href=/>Home</a></nav><article><p>%s: %s</p></article>' \
        "$1" "$1" "$text"
}

# record TYPE BLOCK [FIELD...]: a record of WARC.
record() {
    printf 'WARC/1.0\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:%s>\r\nWARC-Date: 2024-01-02T03:04:05Z\r\n' \
        "$1" "$1-${#2}"
    printf 'WARC-Target-URI: http://a.example/%s\r\n' "$1"
    [ $# -lt 3 ] || printf '%s\r\n' "${@:3}"
    printf 'Content-Length: %d\r\n\r\n%s\r\n\r\n' "$(printf %s "$2" | wc -c)" "$2"
}

# response TITLE [STATUS [HEADER...]]
response() {
    printf 'HTTP/1.1 %s\r\nContent-Type: text/html\r\n' "${2:-200 OK}"
    [ $# -lt 3 ] || printf '%s\r\n' "${@:3}"
    printf '\r\n%s' "$(html "$1")"
}

@test "character references are those of HTML, all names and any malformed ones" {
    # a page of <pre> for each reference, and of random strings of their parts; Python's is the reference
    cat >make.py <<'END'
import html, html.entities, json, random, re
rng = random.Random(1)
names = sorted(html.entities.html5)
parts = ["&", "#", "x", "X", ";", "=", " ", "1", "38", "80", "9f", "D800", "110000", "fffe", "not", "in", "a", "Z", "amp", "lt"]
cases = [f"a&{name}{rest}" for name in names for rest in ("", "z", "=", ";", " ")]
cases += ["".join(rng.choices(parts + [rng.choice(names)], k=rng.randint(1, 8))) for _ in range(5000)]
cases += [f"&#{n};" for n in [*range(300), 0xd7ff, 0xdfff, 0xfdd0, 0xfdf0, 0xffff, 0x1ffff, 0x10ffff, 2**32 + 65, 10**30]]
with open("page.html", "w") as page, open("expected", "w") as expected:
    page.write("<html><title>x</title><article>")
    for i, case in enumerate(cases):
        page.write(f"<p>Case {i} [{case}] of the references, a sentence that is long enough for a text, and it ends here.</p>\n")
        text = re.sub("[\x81\x8d\x8f\x90\x9d]", "", html.unescape(case)) # controls, which no text has
        expected.write(json.dumps([i, re.sub(r"\s+", "", text)]) + "\n")
END
    python3 make.py
    dt-extract -q page.html >out.jsonl
    cat >compare.py <<'END'
import json, re
text = json.loads(open("out.jsonl").readline())["text"]
found = {int(i): re.sub(r"\s+", "", case) for i, case in re.findall(r"Case (\d+) \[(.*?)\] of the references", text, re.S)}
wrong = [(want, found.get(i)) for i, want in map(json.loads, open("expected")) if found.get(i) != want]
print(len(wrong), "differ", wrong[:8])
raise SystemExit(len(wrong) > 0)
END
    python3 compare.py
    # in an attribute a name without semicolon is none before = or a letter
    printf '<html><article><p>%s <a href="/a?b=1&copy=2&amp;c&lt=3&ltd&lsqb;&copy">link</a> here.</p></article>' "$text" >link.html
    dt-extract -q --links link.html | jq -r .text >out
    grep -qF '(/a?b=1&copy=2&c&lt=3&ltd[©)' out || { cat out; return 1; }
}

@test "a heading that is a link is kept, without the mark of a link to its own place" {
    cat >page.html <<END
<html><title>x</title><article><p>$text</p>
<h2 id=a><a class=header href="#a">The first part</a></h2><p>$text One.</p>
<h2 id=b>The second part<a class=headerlink href="#b">¶</a></h2><p>$text Two.</p>
<h2><a href="/other">Another page</a></h2><p>$text Three.</p>
<h2>The third part<span><a class=mark href="#c">#</a></span></h2><p>$text Four.</p></article>
END
    dt-extract -q page.html | jq -r .text >out
    [ "$(sed "s|${text//./\\.}|T|" out)" = "$(printf '%s\n' T 'The first part' 'T One.' 'The second part' 'T Two.' 'Another page' 'T Three.' \
        'The third part' 'T Four.')" ]
}

@test "names that Sphinx links, and terms of its lists of definitions, are text" {
    cat >page.html <<END
<html><title>x</title><article><p>The <a class="reference internal" href="#m"><code class="xref py py-mod">textwrap</code></a> module
has a class.<a class="footnote-reference" href="#f">1</a> $text</p><dl class="py function"><dt class="sig">fill(text)</dt><dd><p>$text One.</p></dd>
<dt class="sig">wrap(text)</dt><dd><p>$text Two.</p></dd></dl><div class=reference><ul><li>A book.</ul></div></article>
END
    dt-extract -q page.html | jq -r .text >out
    [ "$(sed "s|${text//./\\.}|T|" out)" = "$(printf '%s\n' 'The textwrap module has a class. T' 'fill(text)' 'T One.' 'wrap(text)' 'T Two.')" ] ||
        { cat out; return 1; }
}

@test "rows of a table and items of a list stay together where some have links" {
    cat >page.html <<END
<html><title>x</title><article><p>$text</p><table><tr><th>target<th>notes</tr>
<tr><td><a href=/a>aarch64-one-linux</a><td>ARM</tr><tr><td>x86_64-two-linux<td>a processor that many machines have</tr>
<tr><td><a href=/c>riscv64-three-linux</a><td>RISC</tr></table>
<ul><li><a href=/d>A long name with a link</a> is short<li>A longer description of something else that has no link at all
<li><a href=/e>Another name with a link</a>: too</ul><p>$text</p>
<ul><li><a href=/f>Home</a> page<li><a href=/g>News today</a></ul><p>$text End.</p></article>
END
    dt-extract -q page.html | jq -r .text >out
    grep -qxF 'aarch64-one-linux | ARM' out
    grep -qxF 'riscv64-three-linux | RISC' out
    grep -qxF -- '- A long name with a link is short' out
    grep -qxF -- '- Another name with a link: too' out
    refute grep -q 'Home\|News' out # a menu
}

@test "pages of a WARC file become documents" {
    { record warcinfo 'software: x'
        record request 'GET / HTTP/1.1'
        record response "$(response One)"; } >web.warc
    dt-extract -q -o out.jsonl web.warc
    [ "$(jq -r .text out.jsonl)" = "One: $text" ]
    [ "$(jq -r .id out.jsonl)" = "urn:response-$(response One | wc -c)" ]
    [ "$(jq -c .meta out.jsonl)" = '{"url":"http://a.example/response","date":"2024-01-02T03:04:05Z","title":"One","lang_hint":"en","charset":"UTF-8"}' ]
}

@test "a crawl is not replaced by its text" {
    record response "$(response One)" >web.warc
    cp web.warc copy
    ln web.warc link
    for out in web.warc ./link; do
        run dt-extract -q -o "$out" web.warc
        [ "$status" -eq 2 ]
        grep -qF -e "--output: '$out' is also an input" <<<"$output"
        cmp web.warc copy
    done
    dt-extract -q <web.warc >out.jsonl
    [ "$(jq -r .text out.jsonl)" = "One: $text" ]
}

@test "the output does not depend on threads, nor on compression" {
    for i in {1..300}; do record response "$(response "Page $i")"; done >web.warc
    dt-extract -q -j 1 -o one.jsonl web.warc
    dt-extract -q -j 4 -o four.jsonl web.warc
    gzip -c web.warc >web.warc.gz
    zstd -q web.warc
    dt-extract -q -o gzip.jsonl web.warc.gz
    dt-extract -q -o zstd.jsonl - <web.warc.zst
    [ "$(wc -l <one.jsonl)" -eq 300 ]
    for f in four gzip zstd; do cmp one.jsonl $f.jsonl; done
    [ "$(dt-extract -q web.warc | jq -r .text | sha256sum)" = "$(jq -r .text one.jsonl | sha256sum)" ]
}

@test "each reason to drop a page is counted and named" {
    { record warcinfo 'software: x'
        record revisit 'HTTP/1.1 200 OK'
        record response 'no header'
        record response "$(response Moved '301 Moved')"
        record response $'HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nPNG'
        record response "$(response Cut)" 'WARC-Truncated: length'
        record response "$(response Odd '200 OK' 'Content-Encoding: odd')"
        record response $'HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=hz-gb-2312\r\n\r\n<p>\377x'
        record response $'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p> </p>'
        record response "$(response Kept)"; } >web.warc
    dt-extract --truncated drop --rejects rejects.jsonl --stats stats.json -o out.jsonl web.warc 2>err
    [ "$(jq -r .meta.title out.jsonl)" = Kept ]
    grep -q '10 in, 1 out (dropped: 1 other-record, 1 revisit, 1 http, 1 status, 1 type, 1 truncated, 1 coding, 1 charset, 1 no-text)' err
    [ "$(jq -r .meta.reject.rule rejects.jsonl | tr '\n' ' ')" = 'other-record revisit http status type truncated coding charset no-text ' ]
    [ "$(jq '.records_in == 10 and .documents_out == 1 and .dropped.status == 1' stats.json)" = true ]
}

@test "truncated pages are marked" {
    record response "$(response Cut)" 'WARC-Truncated: length' >web.warc
    [ "$(dt-extract -q web.warc | jq .meta.truncated)" = true ]
}

@test "WET files stay as they are, also for other programs" {
    record conversion $'A text.\nOf two lines.' 'Content-Type: text/plain' >a.wet
    [ "$(dt-extract -q a.wet | jq -c '[.text,.meta.url]')" = '["A text.\nOf two lines.","http://a.example/conversion"]' ]
    [ "$(dt-clean -q a.wet | jq -c '[.id,.text,.meta.url]')" = '["urn:conversion-21","A text.\nOf two lines.","http://a.example/conversion"]' ]
    record response "$(response One)" >web.warc
    run dt-clean -q web.warc
    assert_one_line_error dt-clean
    [[ "$output" == *'dt-extract web.warc | ...' ]]
}

@test "HTML files and HTML in JSON Lines are read" {
    html File >page.html
    [ "$(dt-extract -q page.html | jq -c '[.id,.meta.title]')" = '["page.html:1","File"]' ]
    jq -cn --arg h "$(html Line)" '{id:"x",html:$h,meta:{a:1}}' >pages.jsonl
    [ "$(dt-extract -q --field html pages.jsonl | jq -c '[.id,.meta.a,.meta.title]')" = '["x",1,"Line"]' ]
}

@test "ids of files of one name are their paths" {
    mkdir a b
    html One >a/index.html
    html Two >b/index.html
    html Three >b/three.html
    cp a/index.html ./'index.html:1'
    [ "$(dt-extract -q a/index.html b/index.html b/three.html index.html:1 | jq -r .id | tr '\n' ' ')" = \
        'a/index.html:1 b/index.html:1 three.html:1 index.html:1:1 ' ]
    printf '%s\n' ./a/index.html ./b/index.html >list
    for i in 0 1; do dt-extract -q --part $i/2 --files-from list; done | jq -r .id | cmp - <(sed 's/$/:1/' list)
}

@test "comments end where they end in a browser" {
    for comment in '<!---->' '<!-->' '<!--->' '<!-- a --!>' '<!-- -- > -->' '<!--[if !IE]><!-->'; do
        printf '<article><p>One. %s</p>%s<p>Two. %s</p><!-- <p>Three. %s</p> --><p>Four. %s</p></article>' \
            "$text" "$comment" "$text" "$text" "$text" >page.html
        [ "$(dt-extract -q page.html | grep -oE 'One|Two|Three|Four' | tr '\n' ' ')" = "One Two Four " ]
    done
}

@test "meta is an object of JSON after blanks in that of the page, too" {
    for meta in '{}' '{ }' $'{\t}' $'{\r}' '{ "a":1 }'; do
        printf '{"id":"1","text":"%s","meta":%s}\n' "$(html Here)" "$meta" >in
        dt-extract -q in >out
        python3 -c 'import json; assert json.loads(open("out").read())["meta"]["title"] == "Here"'
        printf '{"id":"1","text":"","meta":%s}\n' "$meta" >in
        run dt-extract -q --rejects r in
        python3 -c 'import json; assert json.loads(open("r").read())["meta"]["reject"]["rule"] == "no-text"'
    done
}

@test "members of meta that the input has are not written again" {
    printf '%s\n' '{"id":"1","text":"<html lang=de><title>A</title><link rel=canonical href=http://c/>%s","url":"http://u/","meta":{"title":"B", "a" : [1]}}' >in
    sed -i "s|%s|$(html Here)|" in
    grep -qF '"meta":{"title":"B", "a" : [1],"url":"http://u/","lang_hint":"de","charset":"UTF-8"}' <(dt-extract -q in) ||
        { dt-extract -q in; return 1; }
}

@test "codings and encodings are decoded" {
    html 'Café' | iconv -t latin1 | gzip -c >body
    { printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1\r\nContent-Encoding: gzip\r\n\r\n'
        cat body; } >block
    { printf 'WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n' "$(wc -c <block)"
        cat block
        printf '\r\n\r\n'; } >web.warc
    [ "$(dt-extract -q web.warc | jq -c '[.meta.title,.meta.charset]')" = '["Café","windows-1252"]' ]
}

@test "a page that is not UTF-8 is not decoded as UTF-8, whatever the header says" {
    { printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n'
        html 'Привет' | sed 's/lang=en/lang=ru/' | iconv -t cp1251; } >block
    { printf 'WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n' "$(wc -c <block)"
        cat block
        printf '\r\n\r\n'; } >web.warc
    [ "$(dt-extract -q web.warc | jq -c '[.meta.title,.meta.charset]')" = '["Привет","windows-1251"]' ]
}

@test "a page that states no encoding is decoded by the frequencies of its bytes" {
    need_plugin charset uchardet
    ru='Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. Все смешалось в доме Облонских.'
    ja='吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。'
    ko='모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 이성과 양심을 부여받았다.'
    de='Müßiggang ist aller Laster Anfang, und früh übt sich, was ein Meister werden will; größer wird es später.'
    for case in ru:windows-1251 ru:KOI8-R ja:Shift_JIS ja:EUC-JP ko:EUC-KR de:windows-1252 ru:UTF-8; do
        declare -n words=${case%:*}
        printf '<title>x</title><p>%s</p>' "$words" | iconv -t "${case#*:}" >page.html
        [ "$(dt-extract -q --from text page.html | jq -r '.meta.charset, .text')" = "${case#*:}"$'\n'"$words" ]
    done
    # a language of windows-1252 decides
    printf '<html lang=de><p>%s</p>' "$ru" | iconv -t koi8-r >page.html
    [ "$(dt-extract -q --from text page.html | jq -r .meta.charset)" = windows-1252 ]
    mkdir engines
    ln -s "$DT_ENGINES/html.so" engines
    printf '<p>%s</p>' "$ru" | iconv -t koi8-r >page.html
    [ "$(DT_ENGINES=engines dt-extract -q --from text page.html | jq -r .meta.charset)" = windows-1252 ]
}

@test "a transfer coding is undone" {
    html One | gzip -c >body
    { printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'
        printf '%x\r\n' "$(wc -c <body)"
        cat body
        printf '\r\n0\r\n\r\n'; } >block
    { printf 'WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n' "$(wc -c <block)"
        cat block
        printf '\r\n\r\n'; } >web.warc
    [ "$(dt-extract -q web.warc | jq -r .text)" = "One: $text" ]
}

@test "all robots headers count" {
    record response "$(response One '200 OK' 'X-Robots-Tag: noindex' 'Server: x' 'x-robots-tag: noai')" >web.warc
    [ "$(dt-extract -q web.warc | jq -r .meta.robots)" = 'noindex, noai' ]
}

@test "a page that begins with a byte order mark is HTML, also without a type" {
    record response $'HTTP/1.1 200 OK\r\n\r\n\xef\xbb\xbf'"$(html One)" >web.warc
    [ "$(dt-extract -q web.warc | jq -c '[.meta.title,.meta.charset]')" = '["One","UTF-8"]' ]
}

@test "binary bodies are dropped, whatever their type says" {
    for magic in '\x89PNG\r\n\x1a\n' '%%PDF-1.4 <p>x</p>' 'PK\x03\x04' '\x1f\x8b\x08'; do
        { printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n'
            printf "$magic"; html One; } >block
        { printf 'WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n' "$(wc -c <block)"
            cat block
            printf '\r\n\r\n'; } >web.warc
        run dt-extract -q web.warc
        [ "$status" -eq 1 ]
        grep -qF '1 type' <<<"$output" || { echo "$output"; return 1; }
    done
}

@test "a WARC file that does not begin with a record is not one page" {
    { printf '\r\n\n'; record response "$(response One)"; record response "$(response Two)"; } >web.warc
    [ "$(dt-extract -q web.warc | jq -r .meta.title | tr '\n' ' ')" = 'One Two ' ]
    [ "$(dt-extract -q --from warc web.warc | wc -l)" -eq 2 ]
    tail -c +20 web.warc >cut.warc
    run dt-extract -q cut.warc
    assert_one_line_error dt-extract
    grep -qF 'cut.warc:1: record at byte 0: expected the version line' <<<"$output"
    [ "$(dt-extract -q --on-error skip cut.warc | jq -r .meta.title)" = Two ]
    mv cut.warc cut # without a name that says what it is
    run dt-extract -q cut
    grep -qE 'cut:[0-9]+: begins a record of WARC, but' <<<"$output"
}

@test "damage stops the program, or is skipped and kept" {
    { record response "$(response One)"
        printf 'WARC/1.0\r\nContent-Length: 3\r\n\r\nlonger than that\r\n\r\n'
        record response "$(response Two)"; } >web.warc
    run dt-extract -o out.jsonl web.warc
    assert_one_line_error dt-extract
    [[ "$output" == *"web.warc:2: record at byte $(record response "$(response One)" | wc -c): its Content-Length does not lead to the next record; --on-error "* ]]
    [ ! -e out.jsonl ]
    dt-extract --on-error quarantine=bad -o out.jsonl web.warc 2>err
    [ "$(jq -r .meta.title out.jsonl | tr '\n' ' ')" = 'One Two ' ]
    grep -q '1 line skipped: web.warc:2: ' err
    grep -q 'longer than that' bad
    refute dt-extract -q --on-error skip --max-errors 0 -o out.jsonl web.warc
}

@test "a damaged or cut member of gzip loses its own pages, the first one too" {
    record response "$(response One)" | gzip -n >one.gz
    record response "$(response Two)" | gzip -n >two.gz
    record resource "$(head -c 400000 /dev/urandom | base64)" 'Content-Type: text/html' | gzip -n >long.gz
    sha256='.lineage[0].inputs[0].sha256'
    { head -c 60 one.gz; cat two.gz; } >cut.warc.gz
    { head -c 10 one.gz; printf '\377\377\377'; tail -c +14 one.gz; cat two.gz; } >damaged.warc.gz
    { cat one.gz two.gz; head -c 300000 long.gz; cat two.gz one.gz; } >third.warc.gz
    for file in cut damaged third; do
        run dt-extract -q $file.warc.gz
        assert_one_line_error dt-extract
        [[ "$output" == *"$file.warc.gz"*'near byte'* ]]
        dt-extract -q --on-error skip -o $file.jsonl $file.warc.gz 2>err
        [[ "$(cat err)" == *'1 line skipped'* ]]
        [ "$(jq -r "$sha256" $file.jsonl.lineage.json)" = "$(sha256sum <$file.warc.gz | cut -d' ' -f1)" ]
    done
    [ "$(jq -r .meta.title cut.jsonl)" = Two ]
    [ "$(jq -r .meta.title damaged.jsonl)" = Two ]
    [ "$(jq -r .meta.title third.jsonl | paste -sd ' ')" = 'One Two Two One' ]
}

@test "damaged frames of zstd, xz, bzip2 and lz4 lose their own pages" {
    for c in zstd xz bzip2 lz4; do
        command -v $c >/dev/null || continue
        [ $c = zstd ] || ls "${DT_ENGINES:-$DT_BUILD/lib/dt}"/codec-$c.so >/dev/null || continue
        for page in One Two; do record response "$(response $page)" | $c -c >$page; done
        { head -c 60 One; printf '\377\377\377\377'; tail -c +65 One; cat Two One; } >damaged.warc
        dt-extract -q --on-error skip -o $c.jsonl damaged.warc 2>err
        [[ "$(cat err)" == *'1 line skipped'* ]]
        [ "$(jq -r .meta.title $c.jsonl | paste -sd ' ')" = 'Two One' ]
    done
    ls zstd.jsonl
    [ -e xz.jsonl ] || return 0
    # A block that is damaged, of one stream.
    for i in {1..20}; do record response "$(response $i)"; done >web
    xz -0c --block-size=1000 web >web.warc.xz
    printf '\377' | dd of=web.warc.xz bs=1 seek=$(($(stat -c %s web.warc.xz) / 2)) conv=notrunc status=none
    dt-extract -q --on-error skip -o blocks.jsonl web.warc.xz 2>/dev/null
    [ "$(jq -r .meta.title blocks.jsonl | head -1)" = 1 ]
    [ "$(jq -r .meta.title blocks.jsonl | tail -1)" = 20 ]
    [ "$(wc -l <blocks.jsonl)" -ge 14 ]
}

@test "a wrong digest is damage" {
    record response "$(response One)" 'WARC-Block-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' >web.warc
    run dt-extract -q web.warc
    assert_one_line_error dt-extract
    [[ "$output" == *'its block has the digest sha1:'* ]]
}

@test "a truncated file fails" {
    for i in 1 2 3; do record response "$(response "Page $i")"; done | gzip -c | head -c 300 >web.warc.gz
    run dt-extract -q -o out.jsonl web.warc.gz
    assert_one_line_error dt-extract
    [[ "$output" == *'ends too early'* ]]
}

@test "no document is an error, as are files that are not pages" {
    record warcinfo 'software: x' >web.warc
    run dt-extract -q web.warc
    assert_one_line_error dt-extract
    [[ "$output" == *'no document came out: 1 in, 0 out (dropped: 1 other-record)' ]]
    printf '%%PDF-1.7\n' >a.pdf
    run dt-extract -q a.pdf
    assert_one_line_error dt-extract
    : >empty
    run dt-extract -q empty
    assert_one_line_error dt-extract
    [[ "$output" == *'no document came out: 1 in, 0 out (dropped: 1 no-text)' ]]
    html One >page.html
    gzip -n <empty >empty.html.gz
    dt-extract -o out --rejects rejects empty page.html empty.html.gz 2>err
    grep -qF '3 in, 1 out (dropped: 2 no-text)' err
    [ "$(jq -r .id rejects | tr '\n' ' ')" = 'empty:1 empty.html.gz:1 ' ]
}

@test "a text is not a page" {
    printf 'Notes: 1 < 2, and a <- b.\n' >notes.txt
    html One >page.html
    for files in notes.txt 'page.html notes.txt'; do
        run dt-extract -q $files
        assert_one_line_error dt-extract
        [[ "$output" == 'dt-extract: notes.txt: is not HTML: it has no tag; dt-clean reads text, '* ]]
    done
    [ "$(dt-extract -q --from text notes.txt | jq -r .text)" = 'Notes: 1 < 2, and a <- b.' ]
    printf '<p>A page that explains <|endoftext|>, and is long enough for a text of some words.' >special
    [ "$(dt-extract -q special | wc -l)" -eq 1 ]
}

@test "replaced characters are told, with the first page" {
    html One >a.html
    sed 's/One/<meta charset=utf-8>b\xffd and b\xfed \xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4/' a.html >b.html
    dt-extract -o out a.html b.html 2>said
    grep -qx "dt-extract: 1 page with bytes that the encoding does not have: [1-4] became U+FFFD, in b.html:1" said
    dt-extract -q -o out b.html 2>said
    [ ! -s said ]
}

@test "with --on-error skip a file that is not a page is skipped as a whole" {
    html One >a.html
    echo 'Notes without a tag.' >notes.txt
    printf '<p>a\0b' >nul.html
    html Two | gzip | head -c 60 >cut.html.gz
    cp a.html z.html
    for file in notes.txt nul.html cut.html.gz; do
        run dt-extract -q $file a.html
        assert_one_line_error dt-extract
        run dt-extract -q --on-error skip -o out $file a.html
        [ "$status" -eq 0 ]
        [[ "$output" == "dt-extract: 1 file skipped: $file: "* ]]
        [ "$(jq -r .id out)" = a.html:1 ]
    done
    run dt-extract -q --on-error quarantine=bad -o out ./*.html ./*.gz notes.txt
    [[ "$output" == "dt-extract: 3 files skipped, the first of them ./nul.html: is binary data"* ]]
    [ "$(jq -r .id out | tr '\n' ' ')" = 'a.html:1 z.html:1 ' ]
    [ "$(jq -r .file bad | tr '\n' ' ')" = './nul.html ./cut.html.gz notes.txt ' ]
    [ "$(jq -c '.lineage[-1].inputs | map(.path)' out.lineage.json)" = \
        '["./a.html","./nul.html","./z.html","./cut.html.gz","notes.txt"]' ]
    run dt-extract -q --on-error skip --max-errors 2 -o out a.html cut.html.gz notes.txt nul.html
    assert_one_line_error dt-extract
    [[ "$output" == *'nul.html: '*'; --max-errors allows 2 bad lines' ]]
    for i in 0 1 2; do dt-extract -q --on-error skip --part $i/3 -o part$i *.html *.gz *.txt 2>>said; done
    [ "$(cat part? | jq -r .id | tr '\n' ' ')" = 'a.html:1 z.html:1 ' ]
    [ "$(grep -oE '[0-9] files? skipped' said | awk '{ sum += $1 } END { print sum }')" -eq 3 ]
}

@test "a page that is read as text is named" {
    html One >page.html
    printf '<?xml version="1.0"?>\n<!DOCTYPE HTML>\n<p>Two.' | gzip >two.html.gz
    printf '<htmlx> is not a page' >text
    dt-clean -q page.html >out.jsonl 2>err
    [ "$(cat err)" = 'dt-clean: page.html: is a page of HTML, read as text with its tags; dt-extract takes its text alone' ]
    dt-clean -q text two.html.gz page.html >out.jsonl 2>err
    grep -q '^dt-clean: 2 files are pages of HTML, .* the first is two.html.gz$' err
    { dt-clean -q --from text page.html; dt-clean -q text; dt-extract -q page.html; } >out.jsonl 2>err
    [ ! -s err ]
}

@test "without the plug-in the error says what to install" {
    html File >page.html
    DT_ENGINES=$T run dt-extract page.html
    assert_one_line_error dt-extract
    [[ "$output" == *'(make deps-data, or install libxml2-dev; then make)' ]]
}

@test "a full disk is an error" {
    html File >page.html
    run bash -c 'dt-extract -q page.html >/dev/full'
    assert_one_line_error dt-extract
}
