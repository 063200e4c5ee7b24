#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
load ../helper

setup() {
    cd "$T"
}

# Runs dt-clean with a file as standard output, without stream marks (see document-streams.bats).
dt-clean() {
    local rc=0 file
    file=$(mktemp "$BATS_FILE_TMPDIR/stdout-XXXXXX")
    command dt-clean "$@" >"$file" || rc=$?
    cat "$file"
    return $rc
}

# The members of dt-clean's own output are in a known order without white space.
text_of() {
    sed -E 's/^\{"id":"[^"]*","text":"(.*)"(,"meta":.*)?\}$/\1/'
}

@test "plain text is unchanged" {
    printf ' Tabs\tand  spaces \n\n\n\nstay; so do "quotes" and \\\n' >plain.txt
    run dt-clean -q plain.txt
    [ "$status" -eq 0 ]
    [ "$output" = '{"id":"plain.txt:1","text":" Tabs\tand  spaces \n\n\n\nstay; so do \"quotes\" and \\\n"}' ]
}

@test "invalid UTF-8, control characters and line ends are repaired" {
    printf '\357\273\277a\377b\r\nc\rd\000\033e\n' >broken.txt
    run dt-clean -q --from text --stats stats broken.txt
    [ "$output" = '{"id":"broken.txt:1","text":"a�b\nc\nde\n"}' ]
    tr -d '\n ' <stats >flat
    grep -qF '{"rule":"utf8","dropped":0,"changed":1,"changes":1}' flat
    grep -qF '{"rule":"controls","dropped":0,"changed":1,"changes":3}' flat
    grep -qF '{"rule":"line-ends","dropped":0,"changed":1,"changes":2}' flat
}

@test "stdin is read without files, and as -" {
    printf 'text' >f
    [ "$(dt-clean -q <f)" = '{"id":"stdin:1","text":"text"}' ]
    [ "$(dt-clean -q - <f)" = '{"id":"stdin:1","text":"text"}' ]
}

@test "each input format" {
    printf 'a\nb\n' >lines
    [ "$(dt-clean -q --from text lines | text_of)" = 'a\nb\n' ]
    [ "$(dt-clean -q --from lines lines | text_of)" = "$(printf 'a\nb')" ]
    printf 'a\n--\nb\n--\n' >sep
    [ "$(dt-clean -q --from sep --separator -- sep | text_of)" = "$(printf 'a\nb')" ]
    [ "$(dt-clean -q --separator -- sep | text_of)" = "$(printf 'a\nb')" ]
    printf 'a\nb\n\n\nc\r\n\r\nd\n' >blank
    [ "$(dt-clean -q --from sep --separator '' blank | jq -c .text)" = "$(printf '"a\\nb"\n"c"\n"d"')" ]
    printf 'a\nb\n' >one
    run dt-clean --from sep --separator '' one
    [[ "$output" == *"separator '' not found"* ]]
    printf 'a\nb\000c\000' >nul
    [ "$(dt-clean -q --from nul nul | text_of)" = "$(printf 'a\\nb\nc')" ]
    printf '{"body":"a"}\n' >json
    [ "$(dt-clean -q --field body json | text_of)" = a ]
    [ "$(dt-clean -q --from text json | text_of)" = '{\"body\":\"a\"}\n' ]
}

@test "gzip and zstd are decompressed" {
    printf 'one\ntwo\n' >plain
    gzip -c plain >a.gz
    zstd -q plain -o a.zst
    run dt-clean -q --from lines a.gz a.zst
    [ "$output" = '{"id":"a.gz:1","text":"one"}
{"id":"a.gz:2","text":"two"}
{"id":"a.zst:1","text":"one"}
{"id":"a.zst:2","text":"two"}' ]
}

@test "ids and meta are kept" {
    printf '{"id":"x","text":"a\\u0000b","meta":{"logprob":-1.2345678901234567890,"s":"\\u00e9"}}\n' >in
    run dt-clean -q in
    [ "$output" = '{"id":"x","text":"ab","meta":{"logprob":-1.2345678901234567890,"s":"\u00e9"}}' ]
}

@test "output is valid UTF-8, whatever the ids and meta of the input" {
    printf '{"id":"\377","text":"a","meta":{"s":"\300"}}\n' >in
    run dt-clean -q in
    [ "$output" = '{"id":"�","text":"a","meta":{"s":"�"}}' ]
}

@test "invalid UTF-8 can be rejected, with the reason" {
    printf 'good\nb\377d\376\n' >in
    run dt-clean -q --from lines --invalid reject --rejects r in
    [ "$output" = '{"id":"in:1","text":"good"}' ]
    [ "$(cat r)" = '{"id":"in:2","text":"b�d�","meta":{"reject":{"rule":"utf8","value":2}}}' ]
}

@test "white space policies" {
    printf ' a  b \n\n\n\tc\n' >in
    [ "$(dt-clean -q --space keep in | text_of)" = ' a  b \n\n\n\tc\n' ]
    [ "$(dt-clean -q --space trim in | text_of)" = 'a  b\n\n\n\tc' ]
    [ "$(dt-clean -q --space squeeze in | text_of)" = 'a b\n\nc' ]
}

@test "normal forms" {
    printf 'e\314\201\357\254\201' >in
    [ "$(dt-clean -q in | text_of)" = "$(printf 'e\314\201\357\254\201')" ]
    [ "$(dt-clean -q --normalize none in | text_of)" = "$(printf 'e\314\201\357\254\201')" ]
    [ "$(dt-clean -q --normalize nfc in | text_of)" = "$(printf '\303\251\357\254\201')" ]
    [ "$(dt-clean -q --normalize nfkc in | text_of)" = "$(printf '\303\251fi')" ]
}

@test "length limits count characters" {
    printf 'é\néé\nééé\n\n' >in
    run dt-clean -q --from lines --min-chars 2 --max-chars 2 --rejects r in
    [ "$output" = '{"id":"in:2","text":"éé"}' ]
    [ "$(cat r)" = '{"id":"in:1","text":"é","meta":{"reject":{"rule":"min-chars","value":1}}}
{"id":"in:3","text":"ééé","meta":{"reject":{"rule":"max-chars","value":3}}}
{"id":"in:4","text":"","meta":{"reject":{"rule":"min-chars","value":0}}}' ]
}

@test "empty documents are dropped by default" {
    printf 'a\n\n' >in
    [ "$(dt-clean -q --from lines in | wc -l)" -eq 1 ]
    [ "$(dt-clean -q --from lines --min-chars 0 in | wc -l)" -eq 2 ]
    dt-clean --from lines --stats s -o out in 2>err
    [[ "$(cat err)" == *"2 in, 1 out (dropped: 1 empty)"* ]]
    [ "$(jq -c '[.rules[] | select(.dropped > 0) | .rule]' s)" = '["min-chars"]' ]
}

@test "deduplication keeps the first of equal texts, after cleaning" {
    printf 'a\nb\na\r\nB\nb\001\n' >in
    [ "$(dt-clean -q --from lines in | wc -l)" -eq 5 ]
    run dt-clean -q --from lines --space trim --dedup --rejects r --stats s in
    [ "$output" = '{"id":"in:1","text":"a"}
{"id":"in:2","text":"b"}
{"id":"in:4","text":"B"}' ]
    [ "$(text_of <r)" = "$(printf 'a\nb')" ]
    grep -q '"rule":"duplicate","value":"[0-9a-f]\{32\}"' r
    tr -d '\n ' <s | grep -qF '{"rule":"duplicate","dropped":2,"changed":0,"changes":0}'
}

@test "a rejected document's meta keeps its members, and one reason" {
    cat >in <<'END'
{"text":"aa","meta":{"m":1}}
{"text":"aa","meta":{ }}
{"text":"aa","meta":{"m":1, "reject":{"rule":"old","value":1}, "n":2 } }
{"text":"a"}
END
    run dt-clean -q --max-chars 1 --rejects r in
    [ "$(sed 's/.*"meta"://' r)" = '{"m":1,"reject":{"rule":"max-chars","value":2}}}
{ "reject":{"rule":"max-chars","value":2}}}
{"m":1,"n":2,"reject":{"rule":"max-chars","value":2}}}' ]
    [ "$(dt-clean -q r | wc -l)" -eq 3 ]
}

@test "statistics count documents, bytes, and changes of each rule" {
    printf 'abc\nd\n\nabc\n' >in
    dt-clean --from lines --dedup --min-chars 2 --stats s in >out 2>err
    [ "$(tr -d '\n ' <s | sed 's/,"seconds.*//')" = "$(tr -d '\n ' <<'END'
{"documents": {"in": 4, "out": 1}, "lines_skipped": 0, "bytes": {"in": 7, "out": 3}, "rules": [
{"rule": "utf8", "dropped": 0, "changed": 0, "changes": 0},
{"rule": "controls", "dropped": 0, "changed": 0, "changes": 0},
{"rule": "line-ends", "dropped": 0, "changed": 0, "changes": 0},
{"rule": "min-chars", "dropped": 2, "changed": 0, "changes": 0},
{"rule": "duplicate", "dropped": 1, "changed": 0, "changes": 0}],
"dedup_memory_bytes": 16384
END
)" ]
    [[ "$(cat err)" == "dt-clean: documents: 4 in, 1 out (dropped: 2 min-chars, 1 duplicate); 0.0 MB in "* ]]
}

@test "the output does not depend on the number of threads" {
    awk 'BEGIN { srand(1); for (i = 0; i < 20000; i++) {
        n = int(rand() * 30); s = ""
        for (k = 0; k < n; k++) s = s sprintf("%c", 1 + int(rand() * 255))
        gsub("\n", "", s); print s } }' >in
    dt-clean -q --from lines --space squeeze --normalize nfc --dedup --min-chars 3 -j 1 \
        --rejects r1 -o o1 in
    [ "$(wc -l <o1)" -gt 10000 ]
    for j in 2 3 7; do
        dt-clean -q --from lines --space squeeze --normalize nfc --dedup --min-chars 3 -j $j \
            --rejects r -o o in
        cmp o o1
        cmp r r1
    done
}

@test "cleaning is idempotent" {
    head -c 200000 /dev/urandom >in
    dt-clean -q --from lines --space trim --normalize nfkc -o once in
    dt-clean -q --space trim --normalize nfkc -o twice once
    cmp once twice
}

@test "documents longer than a batch are cleaned among short ones" {
    awk 'BEGIN { for (i = 0; i < 40; i++) { s = "w" i " ";
        for (k = 0; k < 16 * (i % 5 == 0); k++) s = s s; print substr(s, 1, 3000000) } }' >in
    dt-clean -q --from lines -j 3 in | text_of | cmp - in
}

@test "the corpora are unchanged, byte for byte" {
    need_data grimm.txt
    need_python json
    for f in tinyshakespeare.txt wikitext2.test.txt; do
        dt-clean -q "$TESTDATA/$f" |
            "$PYTHON" -c 'import json, sys; sys.stdout.buffer.write(json.loads(sys.stdin.read())["text"].encode())' |
            cmp - "$TESTDATA/$f"
    done
}

@test "output for random bytes equals that of Python's decoder and unicodedata" {
    need_python unicodedata
    "$PYTHON" - <<'END' >expected
import json, random, unicodedata
random.seed(3)
bits = [b"a", b"\xc3\xa9", b"e\xcc\x81", b"\xff", b"\xe2\x82", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80",
        b"\xcc\xa3", b"\xef\xac\x81", b"\x01", b"\xe1\x84\x80\xe1\x85\xa1", b"\xf4\x90", b"\xc2\x85"]
with open("in", "wb") as f:
    for i in range(5000):
        raw = b"".join(random.choices(bits, k=random.randrange(1, 20)))
        f.write(raw + b"\0")
        text = raw.decode("utf-8", "replace")
        text = "".join(c for c in text if unicodedata.category(c) != "Cc")
        text = unicodedata.normalize("NFC", text)
        print(json.dumps({"id": f"in:{i + 1}", "text": text}, ensure_ascii=False, separators=(",", ":")))
END
    dt-clean -q --from nul --normalize nfc --min-chars 0 in | cmp - expected
}

@test "output without documents is an error, with rejects and statistics" {
    printf 'a\nb\n' >in
    run dt-clean --from lines --min-chars 5 --rejects r --stats s -o o in
    assert_one_line_error dt-clean
    [ "$output" = "dt-clean: no document came out: 2 in, 0 out (dropped: 2 min-chars)" ]
    [ ! -e o ]
    [ "$(wc -l <r)" -eq 2 ]
    [ -s s ]
    : >empty
    run dt-clean empty
    assert_one_line_error dt-clean
    [ "$output" = "dt-clean: no document came out: 0 in, 0 out" ]
}

@test "bad input is one line with the position, and leaves no file" {
    printf '{"text":"a"}\n{"text":7}\n' >type
    printf '{"text":"a"}\n{"text":"b"' >cut
    printf 'text that is compressed\n' | gzip -c | head -c 30 >cut.gz
    printf 'text that is compressed\n' | zstd -qc | head -c 30 >cut.zst
    for f in absent . type cut cut.gz cut.zst; do
        run dt-clean -o o --rejects r --stats s "$f"
        assert_one_line_error dt-clean
        [[ "$output" == *"$f"* ]]
        [ ! -e o ]
        [ ! -e r ]
        [ ! -e s ]
        [ -z "$(find . -name '.*.tmp*')" ]
    done
    run dt-clean type
    [[ "${lines[-1]}" = 'dt-clean: type:2: member "text" is not a string; --on-error '* ]]
}

@test "a flipped bit in a compressed file is found" {
    awk 'BEGIN { for (i = 0; i < 1000; i++) print "line", i, i * i }' >plain
    gzip -c plain >f.gz
    zstd -q plain -o f.zst
    for f in f.gz f.zst; do
        printf '\125' | dd of=$f bs=1 seek=1500 conv=notrunc status=none
        run dt-clean -o o $f
        assert_one_line_error dt-clean
        [[ "$output" == *"$f: near byte "* ]]
        [ ! -e o ]
    done
}

@test "an error in the last file leaves no output" {
    printf 'good\n' >good
    printf '{"text":' >bad
    run dt-clean -o o --from jsonl bad
    assert_one_line_error dt-clean
    run dt-clean -o o good absent
    assert_one_line_error dt-clean
    [ ! -e o ]
}

@test "a full disk is one line, and leaves no file" {
    printf 'text\n' >in
    run dt-clean -q -o /dev/full in
    assert_one_line_error dt-clean
    run bash -c 'dt-clean -q in >/dev/full'
    assert_one_line_error dt-clean
    run dt-clean -q --rejects /dev/full --from lines --max-chars 1 --min-chars 0 -o o in
    assert_one_line_error dt-clean
    run dt-clean -q --stats /dev/full -o o in
    assert_one_line_error dt-clean
    [ ! -e o ]
}

@test "a full file system is one line, and leaves no file" {
    [ "$(id -u)" -eq 0 ] && mkdir small && mount -t tmpfs -o size=64k tmpfs small || skip "cannot mount"
    head -c 300000 /dev/zero | tr '\0' x >in
    run dt-clean -q -o small/o in
    left=$(ls -A small)
    umount small
    assert_one_line_error dt-clean
    [ -z "$left" ]
}

@test "a closed pipe ends the program silently" {
    head -c 3000000 /dev/zero | tr '\0' '\n' >in
    run bash -c 'dt-clean --from lines --min-chars 0 in | head -n 1; exit ${PIPESTATUS[0]}'
    [ "$status" -eq 141 ]
    [ "$output" = '{"id":"in:1","text":"","dt_stream":"begin"}' ]
}

@test "wrong usage ends with status 2" {
    [[ "$(dt-clean --help)" == *"'' with --from sep: at empty lines"* ]]
    printf 'text\n' >in
    for options in "--from nothing" "--from sep" "--separator x --from lines" "--separator=" "--separator= --from split" \
        "--min-chars -1" "--min-chars 5 --max-chars 4" "-j 0" "-j x" "--normalize nfd" \
        "--space no" "-o x --rejects x" "--rejects - " "--unknown"; do
        run dt-clean $options in
        [ "$status" -eq 2 ] || { echo "$options: $status: $output"; return 1; }
        [[ "${lines[0]}" == "dt-clean: "* ]]
    done
}

@test "an output may replace an input" {
    printf 'a\nb\n' >f
    dt-clean -q --from lines -o f f
    [ "$(text_of <f)" = "$(printf 'a\nb')" ]
}

@test "a name that cannot be opened is refused with the reason, before any work" {
    printf 'text' >good
    ln -s loop loop
    run dt-clean -q good nosuch
    assert_one_line_error dt-clean
    [[ "$output" == *"'nosuch': No such file"* ]]
    run dt-clean -q good good/x
    assert_one_line_error dt-clean
    [[ "$output" == *"'good/x': Not a directory"* ]]
    run dt-clean -q good loop
    assert_one_line_error dt-clean
    [[ "$output" == *"'loop': Too many levels"* ]]
}

@test "a token stream is not read as text" {
    dt-synth -n 20 >docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json -o ids.dts docs.jsonl
    for command in dt-clean "dt-vocab -s 300" "dt-tokenize -t tok.json --ids"; do
        for format in auto text jsonl; do
            run $command -q --from $format -o out ids.dts
            assert_one_line_error "${command%% *}"
            [[ "$output" == *"ids.dts: is a dt token stream, not plain text; "* ]]
            [ ! -e out ]
        done
    done
    run dt-clean -q - <ids.dts
    assert_one_line_error dt-clean
    [[ "$output" == *"stdin: is a dt token stream, not plain text; "* ]]
}

@test "files of other systems: CR LF ends a line, a byte order mark starts a file" {
    printf 'a\r\n\r\nb\r\n' >crlf
    [ "$(dt-clean -q --from lines crlf | text_of)" = "$(printf 'a\nb')" ]
    printf '\357\273\277{"text":"a"}\r\n' >marked.jsonl
    [ "$(dt-clean -q marked.jsonl | text_of)" = a ]
}

@test "an abbreviation that fits two options names both" {
    printf 'text' >in
    run dt-clean --stat=s -q in
    [ "$status" -eq 0 ]
    run dt-clean --max-c 5 --m 5 in
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "dt-clean: option '--m' could be one of --max-errors, --max-document, --mojibake, --min-chars, --max-chars, --mask, --max-masked" ]
}

@test "the text may be a nested member" {
    printf '{"a":{"x":1,"b":{"c":"text","d":[2]}},"id":"i"}\n{"a":{"b":{"c":"more"}}}\n' >in
    run dt-clean -q --field a.b.c in
    [ "${lines[0]}" = '{"id":"i","text":"text","meta":{"a":{"x":1,"b":{"d":[2]}}}}' ]
    [ "${lines[1]}" = '{"id":"in:2","text":"more","meta":{"a":{"b":{}}}}' ]
    printf '{"a.b":"dotted","a":{"c":1}}\n' >dots
    [ "$(dt-clean -q --field a.b dots)" = '{"id":"dots:1","text":"dotted","meta":{"a":{"c":1}}}' ]
    for line in '{"a":{}}' '{"a":1}' '{"a":{"b":5}}' '{"a":{"b":"x"' '{"a":{"b":"x",}}'; do
        echo "$line" >bad
        run dt-clean -q --field a.b bad
        assert_one_line_error dt-clean
    done
}

@test "output as text and with NULs" {
    printf '{"text":"a\\nb"}\n{"text":"c\\n"}\n' >in
    dt-clean -q --to text in >out
    [ "$(od -An -c <out | tr -d ' ')" = 'a\nb\nc\n' ]
    dt-clean -q --to nul in >out
    [ "$(od -An -c <out | tr -d ' ')" = 'a\nb\0c\n\0' ]
    dt-clean -q --from nul out --to nul | cmp - out
}

@test "double encodings, invisible characters, case, line ends" {
    printf 'Caf\303\203\302\251 A\342\200\213B\r\n' >in
    [ "$(dt-clean -q --mojibake --invisible in | text_of)" = "$(printf 'Caf\303\251 AB\\n')" ]
    [ "$(dt-clean -q --casefold in | text_of | cut -c 1-3)" = caf ]
    [ "$(dt-clean -q --line-ends keep in | text_of | tail -c 5)" = '\r\n' ]
}

@test "personal data is masked, counted, and limited" {
    printf 'me@example.org 8.8.8.8 10.0.0.1\n+49 30 1234567\n' >in
    run dt-clean -q --from lines --mask email,ipv4 --stats s in
    [ "$(text_of <<<"${lines[0]}")" = '|||EMAIL_ADDRESS||| |||IP_ADDRESS||| 10.0.0.1' ]
    [ "$(text_of <<<"${lines[1]}")" = '+49 30 1234567' ]
    tr -d '\n ' <s | grep -qF '{"rule":"mask-email","dropped":0,"changed":1,"changes":1}'
    run dt-clean -q --from lines --mask all --max-masked 1 --rejects r in
    [ "$(text_of <<<"$output")" = '|||PHONE_NUMBER|||' ]
    grep -q '"reject":{"rule":"max-masked","value":2}' r
    run dt-clean --mask mail in
    [ "$status" -eq 2 ]
}

@test "IBANs are masked after their letters were folded, and after full-width digits were" {
    echo 'DE89 3704 0044 0532 0130 00' >in
    [ "$(dt-clean -q --casefold --mask iban --to text in)" = '|||IBAN|||' ]
    [ "$(dt-clean -q --casefold --mask all --to text in)" = '|||IBAN|||' ]
    echo '4111 1111 1111 1111' >in
    [ "$(dt-clean -q --normalize nfkc --mask card --to text in)" = '|||CREDIT_CARD|||' ]
}

@test "documents of other languages are dropped" {
    printf '{"text":"a","meta":{"lang":"en"}}\n{"text":"b","lang":"de"}\n{"text":"c"}\n' >in
    [ "$(dt-clean -q --language en in | wc -l)" -eq 1 ]
    [ "$(dt-clean -q --language de,en in | wc -l)" -eq 2 ]
    [ "$(dt-clean -q --language d in 2>&1 | wc -l)" -eq 1 ]
    for wrong in 'en, de' 'en ,de' en, ,en en,,de ''; do
        run dt-clean -q --language "$wrong" in
        [ "$status" -eq 2 ]
        [[ "${lines[0]}" == "dt-clean: --language '$wrong': languages with commas between them expected, as en,de" ]]
    done
}

@test "repeated lines and paragraphs of any document are removed" {
    printf '{"text":"menu\\none\\n\\n"}\n{"text":"menu\\n\\ntwo\\n menu "}\n{"text":"menu"}\n' >in
    run dt-clean -q --dedup-parts lines --rejects r in
    [ "$(text_of <<<"${lines[0]}")" = 'menu\none\n\n' ]
    [ "$(text_of <<<"${lines[1]}")" = '\ntwo\n' ]
    [ "${#lines[@]}" -eq 2 ]
    [ "$(cat r)" = '{"id":"in:3","text":"menu","meta":{"reject":{"rule":"duplicate-lines","value":1}}}' ]
    run dt-clean -q --dedup-parts paragraphs in
    [ "$(text_of <<<"${lines[1]}")" = 'menu\n\ntwo\n menu ' ]
    [ "${#lines[@]}" -eq 2 ]
    # blanks of other scripts, and lines of them alone
    printf 'menu\n\u00a0menu\n\u3000menu \u2003\n\u00a0\none\n\u00a0\n' >in
    [ "$(dt-clean -q --from text --to text --dedup-parts lines in)" = "$(printf 'menu\n\u00a0\none\n\u00a0')" ]
}

@test "rule files: thresholds, order, reasons, mistakes" {
    printf 'one two three\nfour five six seven\n' >in
    printf '# mine\n  gopher-words-min : 4 # words\n\n' >my.rules
    run dt-clean -q --from lines --rules ./my.rules --rejects r --stats s in
    [ "$output" = '{"id":"in:2","text":"four five six seven"}' ]
    [ "$(cat r)" = '{"id":"in:1","text":"one two three","meta":{"reject":{"rule":"gopher-words-min","value":3}}}' ]
    tr -d '\n ' <s | grep -qF '{"rule":"gopher-words-min","dropped":1,"changed":0,"changes":0}'
    for bad in 'gopher-words-mni: 4' 'gopher-words-min 4' 'gopher-words-min: x' '# nothing' \
        'gopher-words-min: -1' 'nothing: 1'; do
        echo "$bad" >bad.rules
        run dt-clean -q --rules ./bad.rules in
        assert_one_line_error dt-clean
        [[ "$output" == *bad.rules* ]]
    done
    run dt-clean -q --rules nosuch in
    assert_one_line_error dt-clean
    [[ "$output" == *"'nosuch'"*"gopher, c4, fineweb, fineweb2 and dolma" ]]
    printf 'gopher-words-min: 1\ngopher-words-mni: 4\n' >bad.rules
    run dt-clean -q --rules bad.rules in
    [ "$output" = "dt-clean: bad.rules:2: unknown rule 'gopher-words-mni' (did you mean 'gopher-words-min'?)" ]
}

@test "the installed rule files are valid, and each rule is documented" {
    dt-synth --bytes 20k -o in.jsonl
    for set in gopher c4 fineweb fineweb2 dolma; do
        run dt-clean -q --rules $set --attributes in.jsonl
        [ "$status" -eq 0 ]
        sed -E 's/#.*//; s/:.*//; /^ *$/d; /^\[/d; /^stop-words/d' "$ROOT/share/rules/$set.rules" >names
        [ -s names ]
        while read -r name; do
            grep -q "\"dt__$name\":" <<<"${lines[0]}"
            grep -q "$name" "$ROOT/man/man5/dt-rules.5"
        done <names
    done
}

@test "the summary names the rules that dropped documents, in one line" {
    run dt-clean --rules gopher -o o "$ROOT/tests/tools/golden/rules.jsonl"
    [ "${#lines[@]}" -eq 1 ]
    refute grep -F 'by other rules' <<<"$output"
    [ "$(grep -oE '[0-9]+ (gopher|duplicate)[a-z-]*' <<<"$output" | awk '{ sum += $1 } END { print sum }')" -eq \
        "$(sed -E 's/.* ([0-9]+) in, ([0-9]+) out .*/\1 \2/' <<<"$output" | awk '{ print $1 - $2 }')" ]
    printf 'good\nb\377d\nb\376d\n' | dt-clean --from lines -o o 2>said
    grep -qF 'documents: 3 in, 3 out, 2 repaired (invalid UTF-8); ' said
}

# Golden: dt-clean -q golden/rules.jsonl >d.jsonl
# && build/oracles/bin/python tests/oracles/datatrove_oracle.py d.jsonl >golden/rules.tsv
@test "documents are kept and dropped, by the same rule, as datatrove does" {
    for set in gopher c4 fineweb; do
        dt-clean -q --rules $set --rejects $set.rejects "$ROOT/tests/tools/golden/rules.jsonl" >$set.kept
        {
            sed -E 's/^\{"id":"([^"]*)".*/\1 keep/' $set.kept
            sed -E 's/^\{"id":"([^"]*)".*"reject":\{"rule":"([^"]*)".*/\1 \2/' $set.rejects
        } | LC_ALL=C sort >$set.decisions
    done
    join gopher.decisions c4.decisions | join - fineweb.decisions | tr ' ' '\t' >ours
    LC_ALL=C sort "$ROOT/tests/tools/golden/rules.tsv" | diff - ours
}

@test "attributes: every rule's value for every document, and nothing dropped" {
    printf 'one two {three}\n\n' >in
    printf 'gopher-words-min: 50\nc4-braces: 0\n' >my.rules
    run dt-clean -q --from lines --min-chars 0 --rules ./my.rules --attributes in
    [ "${lines[0]}" = '{"id":"in:1","attributes":{"dt__utf8":[[0,15,0]],"dt__controls":[[0,15,0]],"dt__line-ends":[[0,15,0]],"dt__gopher-words-min":[[0,15,3]],"dt__c4-braces":[[0,15,1]],"dt__drop":[[0,15,1]]}}' ]
    [ "${#lines[@]}" -eq 2 ]
    run dt-clean --attributes --dedup in
    [ "$status" -eq 2 ]
    printf 'gopher-words-min: 1\nc4-line-words: 4\ngopher-words-min: 1\n' >my.rules
    printf 'one two three\nof four words here\n' >in
    dt-clean -q --rules ./my.rules --rules ./my.rules --attributes in |
        grep -q '"dt__gopher-words-min":[^"]*,7]],.*"dt__gopher-words-min-2":[^"]*,4]],.*"dt__c4-line-words-2":.*"dt__gopher-words-min-4":'
}

@test "C4 drops lines, counts them by rule, and documents without enough sentences" {
    printf 'Menu\n A line that ends well.[12] \nToo few.\nNo mark at the end\n' >in
    printf 'We use JavaScript here now.\nWe use cookies on this page.\nIt is a good end!\n' >>in
    sed 's/c4-sentences: 5/c4-sentences: 2/' "$ROOT/share/rules/c4.rules" >two.rules
    run dt-clean -q --rules ./two.rules --stats s in
    [ "$(text_of <<<"$output")" = 'A line that ends well.\nIt is a good end!' ]
    for count in '"c4-line-words","dropped":0,"changed":1,"changes":2' '"c4-notes","dropped":0,"changed":1,"changes":1' \
        '"c4-line-end-mark","dropped":0,"changed":1,"changes":1' '"c4-line-policy","dropped":0,"changed":1,"changes":1'; do
        tr -d '\n ' <s | grep -qF "$count"
    done
    run dt-clean -q --rules c4 in
    [ "$output" = "dt-clean: no document came out: 1 in, 0 out (dropped: 1 c4-sentences)" ]
}

@test "C4 drops lines with words longer than the threshold, whatever it is" {
    for n in 3 40 255 256 257 300; do
        echo "c4-line-longest-word: $n" >my.rules
        word() { printf 'ü%.0s' $(seq $1); }
        printf '%s\n' "a $(word $n) b" "a $(word $((n + 1))) b" "a b" >in
        [ "$(dt-clean -q --rules ./my.rules --to text in)" = "$(sed 2d in)" ]
    done
}

@test "C4 looks for phrases after it removed notes, and counts as many words as a rule file asks for" {
    printf 'All of ja[1]vascript is here.\nIt is a good end.\n' >in
    printf 'c4-notes: 0\nc4-line-javascript: 0\n' >one.rules
    run dt-clean -q --rules ./one.rules in
    [ "$(text_of <<<"$output")" = 'It is a good end.' ]
    { seq -s ' ' 30; seq -s ' ' 24; } >in
    printf 'c4-line-words: 25\n' >words.rules
    run dt-clean -q --rules ./words.rules in
    [ "$(text_of <<<"$output")" = "$(seq -s ' ' 30)" ]
}

@test "documents with evaluation texts are dropped" {
    printf 'It was the best of times, it was the worst of times, it was the age of wisdom.\n' >eval.txt
    printf 'short\n' >short.txt
    printf 'He read: it was the BEST of times; it was the worst of times - it was the age of wit.\n' >in
    printf 'It was the best of times, and it was the worst of all times, they say, and so on.\n' >>in
    run dt-clean --from lines --decontaminate eval.txt --decontaminate short.txt --rejects r in
    [[ "${lines[0]}" == "dt-clean: evaluation texts: 2, of them 1 too short to be found; 6 sequences, "* ]]
    grep -q '"id":"in:2"' <<<"$output"
    grep -q '"id":"in:1".*"rule":"contamination","value":5' r
    run dt-clean -q --from lines --sequence 4 --decontaminate eval.txt in
    assert_one_line_error dt-clean
    run dt-clean -q --decontaminate short.txt in
    [ "$output" = "dt-clean: no evaluation text has 13 words" ]
}

@test "memory does not grow with the input" {
    [[ "${DT_BUILD:-}" != *asan* ]] || skip "AddressSanitizer takes its own"
    dt-synth --bytes 25M -o in.jsonl
    # 16 MB are enough for 25 MB, and for any size.
    run bash -c "ulimit -d 16000 && dt-clean -q -j 1 --rules fineweb --attributes -o /dev/null in.jsonl"
    [ "$status" -eq 0 ]
    run bash -c "ulimit -d 1000 && dt-clean -q -j 1 --rules fineweb --attributes -o /dev/null in.jsonl"
    [ "$status" -ne 0 ]
}

@test "the output of all rules together does not depend on the number of threads" {
    dt-synth --bytes 2M -o in.jsonl
    for j in 1 3; do
        dt-clean -q -j $j --rules fineweb --mask all --casefold --dedup --dedup-parts lines \
            --rejects r$j in.jsonl >o$j || [ "$j" -ne 1 ]
    done
    cmp o1 o3
    cmp r1 r3
}

@test "documents on a terminal are not mixed with progress" {
    need_terminal
    printf 'One.\n' >one.txt
    for c in 'dt-clean one.txt' 'dt-clean -o /dev/stdout one.txt' 'dt-synth -n 300'; do
        run script -qec "$c" /dev/null
        [ "$status" -eq 0 ]
        [[ "$output" == '{"id":'* ]]
    done
    run script -qec 'dt-clean -o done.jsonl one.txt' /dev/null
    [[ "$output" == $'\r'*documents* ]]
}

# refused FILE NAME: dt-clean names the file type and fails at once, without output.
refused() {
    run timeout 120 dt-clean -q -o out "$1"
    assert_one_line_error dt-clean
    [[ "$output" == "dt-clean: $1: is $2"* ]] || { echo "$output"; return 1; }
    [ ! -e out ]
}

@test "files that are not text are refused by the name of their type" {
    printf 'Some text.\n' >t
    for i in $(seq 200); do printf 'Line %s of a text.\n' "$i"; done >long
    tar -cf t.tar t long
    tar -czf t.tgz t long
    gzip -c t | gzip >twice.gz
    iconv -t UTF-16BE long >utf16be
    iconv -t UTF-32 long >utf32
    cp "$(command -v dt-cat)" program
    refused t.tar "a tar archive, not plain text; unpack it"
    refused t.tgz "a tar archive"
    refused utf32 "UTF-32 text, not UTF-8; write it as UTF-8: iconv"
    refused utf16be "UTF-16 text"
    refused program "an ELF file"
    printf '["a","b"]' | gzip >array.gz
    printf '["a","b"]' | zstd -q >array.zst
    gzip -c utf32 >utf32.gz
    refused utf32.gz "UTF-32 text, not UTF-8; write it as UTF-8: gzip -dc FILE | iconv -f UTF-32 "
    [ "$(dt-clean -q array.gz | text_of)" = "$(printf 'a\nb')" ]
    [ "$(dt-clean -q array.zst | text_of)" = "$(printf 'a\nb')" ]
    run dt-clean twice.gz
    assert_one_line_error dt-clean
    [[ "$output" == *"twice.gz: holds gzip data in compressed data; decompress it"* ]]
    python3 -m zipfile -c t.zip t && refused t.zip "a zip archive"
}

@test "xz, bzip2 and lz4 are read as gzip is, and refused by name without their libraries" {
    dt-synth -n 20 >docs.jsonl
    dt-clean -q docs.jsonl | sha256sum >expected
    mkdir engines
    for c in xz bzip2 lz4; do
        [ -e "${DT_ENGINES:-$ROOT/build/lib/dt}/codec-$c.so" ] && command -v $c || continue
        $c -c docs.jsonl >docs.$c
        dt-clean -q docs.$c | sha256sum | diff expected -
        dt-clean -q <docs.$c | sha256sum | diff expected -
        head -c -3 docs.$c >cut.$c
        run timeout 120 dt-clean -q -o out cut.$c
        assert_one_line_error dt-clean
        [[ "$output" == *"cut.$c: near byte"* ]]
        DT_ENGINES=engines run dt-clean -q -o out docs.$c
        assert_one_line_error dt-clean
        [[ "$output" == *"docs.$c: no decompressor 'codec-$c'"*"install liblzma-dev"* ]]
        [ ! -e out ]
    done
}

@test "UTF-16 with a byte order mark is read as UTF-8, and half a pair is repaired or rejected" {
    printf '{"id":"a","text":"caf\u00e9 \u20ac"}\n' >utf8.jsonl
    for order in UTF-16LE UTF-16BE; do
        printf '\xef\xbb\xbf' | cat - utf8.jsonl | iconv -f UTF-8 -t $order >utf16.jsonl
        dt-clean -q utf16.jsonl | diff <(dt-clean -q utf8.jsonl) -
    done
    printf '\xff\xfea\0\x00\xd8b\0' >half
    [ "$(dt-clean -q half | text_of)" = "$(printf 'a\ufffd\ufffd\ufffdb')" ]
    run dt-clean --invalid reject half
    [ "$status" -eq 1 ]
    [[ "$output" == *"no document came out"* ]]
}

@test "every reader of text refuses other files, in every format" {
    dt-synth -n 20 >docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl
    printf '\003\000\000\000abc\000' >any.bin
    tar -cf docs.tar docs.jsonl
    for command in dt-clean "dt-vocab -s 300" "dt-tokenize -t tok.json --ids" "dt-dedup sign"; do
        for format in auto text lines nul jsonl "sep --separator x" "split --separator y"; do
            run $command -q --from $format -o out docs.tar
            assert_one_line_error "${command%% *}"
            [[ "$output" == *"docs.tar: is a tar archive, not plain text; unpack it: "* ]]
        done
        run $command -q -o out any.bin
        assert_one_line_error "${command%% *}"
        [[ "$output" == *"any.bin: is binary data with NUL bytes, not plain text; --from nul (of dt-clean, too) "* ]]
    done
    run dt-clean -q --decontaminate docs.tar docs.jsonl
    [[ "$output" == *"docs.tar: is a tar archive"* ]]
    run dt-clean -q --drop docs.tar docs.jsonl
    [[ "$output" == *"docs.tar: is not a list of dt-dedup"* ]]
    run dt-eval bleu -r docs.jsonl docs.jsonl
    assert_one_line_error dt-eval
    [[ "$output" == *"docs.jsonl: is JSON Lines, not plain text"* ]]
    run dt-cat docs.tar
    [[ "$output" == *"docs.tar: is a tar archive, not a .dts file" ]]
    cp docs.tar x.jsonl
    run dt-train -t tok.json -o run --dry-run x.jsonl
    [[ "$output" == *"x.jsonl: is a tar archive, not plain text; unpack it: "* ]]
    run dt-bench --tokenizer tok.json tokenize docs.tar
    [[ "$output" == *"docs.tar: is a tar archive, not plain text; unpack it: "* ]]
}

@test "separators inside lines split the text or are an error, never ignored" {
    printf 'a<|endoftext|>b<|endoftext|>\nc' >in
    run dt-clean -q in
    assert_one_line_error dt-clean
    [[ "$output" == "dt-clean: in:1: has '<|endoftext|>', which ends documents; --from split"* ]]
    run dt-clean -q --separator '<|endoftext|>' in
    [[ "$output" == "dt-clean: in:1: has the separator '<|endoftext|>' inside a line; --from split "* ]]
    [ "$(dt-clean -q --from split --separator '<|endoftext|>' in | text_of)" = "$(printf 'a\nb\nc')" ]
    run dt-clean -q --from sep --separator '<|endoftext|>' in
    [[ "$output" == "dt-clean: in:1: has the separator '<|endoftext|>' inside a line; --from split "* ]]
    [ "$(dt-clean -q --from lines in | wc -l)" -eq 2 ]
    printf '{"text":"a"}\n' >j
    [ "$(dt-clean -q --separator x j | text_of)" = a ]
}

@test "a few bytes that expand to gigabytes take bounded memory, in every reader" {
    [[ "${DT_BUILD:-}" != *asan* ]] || skip "AddressSanitizer takes its own"
    head -c 32000000 /dev/zero | tr '\0' a | zstd -q >a.zst
    printf '{"text":"' | zstd -q >bomb.zst
    for i in $(seq 100); do cat a.zst; done >line.zst # 3.2 GB
    cat line.zst >>bomb.zst
    [ "$(stat -c %s bomb.zst)" -lt 200000 ]
    printf 'One.\nTwo.\n' >t
    dt-vocab -q -s 257 -o tok.json t
    for command in dt-clean "dt-vocab -s 300" "dt-tokenize -t tok.json --ids" "dt-dedup sign"; do
        for format in text jsonl "split --separator y"; do
            run bash -c "ulimit -d 60000; $command -j 1 -q --from $format --max-document 4M -o out bomb.zst"
            assert_one_line_error "${command%% *}"
            [[ "$output" == *"bomb.zst: document 1 has more than 4000000 bytes; "* ]]
        done
    done
    run bash -c "ulimit -d 400000; dt-clean -j 1 -q --from lines -o out bomb.zst"
    [[ "$output" == *"bomb.zst: document 1 has more than 128000000 bytes; "* ]]
    for command in "dt-tokenize -t tok.json -d --ids" "dt-clean -q t --drop" "dt-eval choice -m ." \
        "dt-eval bleu -r t"; do
        run bash -c "ulimit -d 900000; $command line.zst"
        [ "$status" -eq 1 ]
        [[ "$output" == *"line.zst: near byte "*": a line of more than 268435456 bytes" ]]
    done
}

@test "zstd with a large window is refused with the way to read it" {
    head -c 300000000 /dev/zero | zstd -q --long=28 >wide.zst
    run dt-clean -q wide.zst
    assert_one_line_error dt-clean
    [[ "$output" == *"wide.zst: near byte 0: needs a window of more than 128 MiB; pipe it: zstd -dc --long=31 FILE" ]]
}

@test "the output replaces the input, but not by a part of it" {
    printf '{"text":"a"}\n{"text":"b"}\n' >in
    cp in copy
    echo in >list
    for program in dt-clean dt-extract; do
        for options in "-o in in" "-o ./in in" "-o in --files-from list"; do
            run $program -q --part 0/2 $options
            [ "$status" -eq 2 ]
            [[ "$output" == *"--output: "*"in' is also an input, which would be lost"* ]]
            cmp in copy
        done
    done
    dt-clean -q -o in in
    [ "$(wc -l <in)" -eq 2 ]
}

@test "an output that is an input or another output is refused" {
    printf '{"text":"a"}\n' >in
    cp in copy
    ln in hard
    ln -s in soft
    for options in "--rejects in -o out in" "--stats in -o out in" "--stats soft -o out in" \
        "-o other --drop other in" "--rejects ./in -o out other in" "-o out --rejects out in" \
        "-o out --stats ./out in" "--rejects other -o out --decontaminate other in" \
        "-o out --on-error quarantine=hard in" "-o out --on-error quarantine=./out in"; do
        printf 'words' >other
        run command dt-clean -q $options
        [ "$status" -eq 2 ] || { echo "$options: $status: $output"; return 1; }
        [[ "$output" == *"also an input"* || "$output" == *"must be different files"* ]]
        cmp in copy
        [ "$(cat other)" = words ]
        [ ! -e out ]
    done
    for command in "dt-clean -q --rejects in" "dt-clean -q --stats in -o out" "dt-vocab -s 300 -o in"; do
        run $command <in
        [ "$status" -eq 2 ]
        cmp in copy
    done
    for out in - /dev/stdout; do # it would be read while it grows
        rc=0
        timeout 120 "$(type -P dt-clean)" -q -o $out in >>in || rc=$?
        [ "$rc" -eq 2 ]
        cmp in copy
    done
    command dt-clean -q -o /dev/null --rejects /dev/stderr in
}

@test "a document above --max-document is skipped or quarantined as a bad line" {
    {
        echo '{"text":"first"}'
        printf '{"text":"%050d"}\n' 1
        printf '{"text":"%05000d"}\n' 2
        echo '{"text":"last"}'
    } >long.jsonl
    run dt-clean --max-document 20 -q long.jsonl
    [ "$status" -eq 1 ]
    [[ "$output" == *"document 2 has more than 20 bytes"* ]]
    dt-clean --max-document 20 -q --on-error quarantine=bad --to text long.jsonl >out 2>err
    [ "$(cat out)" = $'first\nlast' ]
    [[ "$(cat err)" == *"2 lines skipped, the first of them long.jsonl:2: a document of more than 20 bytes"* ]]
    [ "$(sed -n 1p bad | jq -r .line)" = 2 ]
    [ "$(sed -n 2p bad)" = "$(sed -n 2p long.jsonl)" ]
    sed -n 3p bad | grep -q 'only the beginning was kept'
    for format in lines nul; do
        printf 'a\n%050d\n%05000d\nb\n' 1 2 >plain
        [ $format = lines ] || { tr '\n' '\0' <plain >nul && mv nul plain; }
        dt-clean --from $format --max-document 20 -q --on-error skip --to text plain >out
        [ "$(cat out)" = $'a\nb' ]
    done
    run dt-clean --max-document 20 -q --on-error skip --max-errors 1 long.jsonl
    [ "$status" -eq 1 ]
    [[ "$output" == *"--max-errors allows 1 bad line"* ]]
}

@test "--identify writes the language and its score, which --language and --language-score read" {
    printf 'der Hund und das Feld\nthe dog and an old man\n' >lines
    model=$ROOT/tests/language/golden/softmax.ftz
    run dt-clean -q --from lines --to jsonl --identify --identifier "$model" lines
    [ "$status" -eq 0 ]
    grep -qE '"text":"der Hund[^"]*","meta":\{"lang":"de","lang_score":0\.[0-9]+\}' <<<"$output"
    grep -qE '"text":"the dog[^"]*","meta":\{"lang":"en","lang_score":0\.[0-9]+\}' <<<"$output"
    [ "$(dt-clean -q --from lines --identify --identifier "$model" --language de,fr lines | text_of)" = 'der Hund und das Feld' ]
    # members that others wrote are replaced, and the rest stays
    printf '{"text":"der Hund und das Feld","meta":{"lang":"xx","url":"u","lang_score":2}}\n' >old.jsonl
    run dt-clean -q --identify --identifier "$model" old.jsonl
    grep -qE '"meta":\{"url":"u","lang":"de","lang_score":0\.[0-9]+\}' <<<"$output"
    printf 'x\n' >>lines
    [ "$(dt-clean -q --from lines --identify --identifier "$model" --language-score 0.99 --rejects rejects lines | wc -l)" = 2 ]
    grep -qE '"text":"x","meta":\{"lang":"[a-z]+","lang_score":0\.[0-9]+,"reject":\{"rule":"language-score","value":0\.[0-9]+\}' rejects
}

@test "--language-score reads a member that others wrote; without one the score is 0" {
    printf '{"text":"a","meta":{"lang_score":0.7}}\n{"text":"b"}\n{"text":"c","meta":{"lang_score":0.6}}\n' >in.jsonl
    [ "$(dt-clean -q --language-score 0.65 in.jsonl | text_of)" = a ]
}

@test "a model that is damaged, or of word vectors, is refused" {
    printf 'text\n' >t
    head -c 500 "$ROOT/tests/language/golden/tree.bin" >cut
    run dt-clean --identify --identifier cut t
    [ "$status" -eq 1 ]
    grep -q 'cut: not a model of fastText, or damaged' <<<"$output"
    run dt-clean --identifier cut t
    [ "$status" -eq 2 ]
}

@test "sections of a rule file change thresholds and stop words by language" {
    cat >my.rules <<'R'
gopher-words-min: 4
gopher-stop-words: 2
stop-words: the of and
[lang de at]
gopher-words-min: 3   # shorter
stop-words: der und
stop-words: die
[lang zh]
gopher-stop-words: off
fineweb-line-feeds: 0
R
    cat >in.jsonl <<'D'
{"text":"der Hund und","meta":{"lang":"de"}}
{"text":"der Hund und","meta":{"lang":"en"}}
{"text":"the dog and cat","meta":{"lang":"en"}}
{"text":"the dog and cat","meta":{"lang":"at"}}
{"text":"a b c d","meta":{"lang":"zh"}}
{"text":"a b c\nd","meta":{"lang":"zh"}}
{"text":"the cat\nand dog"}
D
    dt-clean -q --rules ./my.rules --rejects rejects in.jsonl | text_of >kept
    [ "$(cat kept)" = 'der Hund und
the dog and cat
a b c d
the cat\nand dog' ]
    [ "$(sed -E 's/.*"rule":"([a-z-]*)".*/\1/' rejects)" = 'gopher-words-min
gopher-stop-words
fineweb-line-feeds' ]
}

@test "a section that is wrong is refused with its line" {
    printf 'x\n' >t
    try() {
        printf "$1" >bad.rules
        run dt-clean --rules ./bad.rules t
        [ "$status" -eq 1 ]
        grep -qF "$2" <<<"$output" || { echo "$output"; return 1; }
    }
    try 'c4-braces: 0\n[de]\n' "bad.rules:2: a header '[lang CODE ...]' expected, not '[de]'"
    try 'c4-braces: 0\n[lang]\n' "bad.rules:2: a header"
    try 'c4-braces: 0\n[lang de\n' "bad.rules:2: a header"
    try '[lang de]\nc4-braces: 0\nc4-braces: 1\n' "bad.rules:3: line 2 sets 'c4-braces' for the same languages"
    try '[lang de]\nc4-braces: 0\n[lang fr de]\nc4-braces: 1\n' "bad.rules:3: line 1 has the language 'de' already"
    for code in de,en DE d germ de_ de_latn de_Latin de-AT de_Latn_x; do
        try "c4-braces: 0\n[lang fr $code]\nc4-braces: 1\n" "bad.rules:2: '$code': not a language; blanks separate codes"
    done
    try '[lang de]\nc4-braces: no\n' "the threshold must be a number of at least 0 or off, not 'no'"
    try 'c4-braces: 0\nstop-words:\n' "bad.rules:2: stop-words: words between blanks expected"
    try '[lang de]\nstop-words: der\n' "bad.rules: holds no rule"
}

@test "fasttext: scores of a classifier keep and drop documents" {
    cp "$ROOT/tests/language/golden/softmax.ftz" .
    mkdir -p sub
    printf 'der Hund und das Feld\nthe dog and an old man\n' >lines
    printf 'fasttext: ../softmax.ftz de min 0.5 # German\n' >sub/de.rules
    [ "$(dt-clean -q --from lines --rules sub/de.rules --rejects rejects lines | text_of)" = 'der Hund und das Feld' ]
    grep -qE '"rule":"fasttext-de","value":[0-9.e-]+' rejects
    printf 'fasttext: softmax.ftz __label__de max 0.5\n' >not.rules
    [ "$(dt-clean -q --from lines --rules not.rules lines | text_of)" = 'the dog and an old man' ]
    dt-clean -q --from lines --rules not.rules --attributes lines | grep -qE '"dt__fasttext-de":\[\[0,[0-9]+,0\.9'
    # of one language only
    printf 'c4-braces: 0\n[lang en]\nfasttext: softmax.ftz de min 0.5\n' >some.rules
    printf '{"text":"the old man","meta":{"lang":"en"}}\n{"text":"the old man","meta":{"lang":"de"}}\n' >in.jsonl
    [ "$(dt-clean -q --rules some.rules in.jsonl | grep -c .)" = 1 ]
    for bad in 'fasttext: softmax.ftz de 0.5' 'fasttext: softmax.ftz de min x'; do
        echo "$bad" >bad.rules
        run dt-clean --rules bad.rules lines
        [ "$status" -eq 1 ]
        grep -qF "bad.rules:1: 'fasttext: MODEL LABEL min|max SCORE' expected" <<<"$output"
    done
    echo 'fasttext: softmax.ftz fr min 0.5' >bad.rules
    run dt-clean --rules bad.rules lines
    grep -qF "the model 'softmax.ftz' has no label 'fr'" <<<"$output"
    echo 'fasttext: none.ftz fr min 0.5' >bad.rules
    run dt-clean --rules bad.rules lines
    grep -q 'bad.rules:1: .*none.ftz' <<<"$output"
}

@test "a file named like a built-in set of rules is refused, with its path it is read" {
    printf '{"text":"a { b"}\n{"text":"b"}\n' >in.jsonl
    echo 'c4-braces: 0' >c4
    run dt-clean -q --rules c4 in.jsonl
    assert_one_line_error dt-clean
    [[ "$output" == *"'c4' is a built-in set of rules and a file here: name the file ./c4, "* ]]
    [ "$(dt-clean -q --rules ./c4 in.jsonl | text_of)" = b ]
    mv c4 mine
    [ "$(dt-clean -q --rules mine in.jsonl | text_of)" = b ]
}

@test "meta: a number in meta is limited, for all or for a language" {
    for i in 1 2.5 4; do printf '{"text":"%s","meta":{"q":%s,"lang":"de"}}\n' $i $i; done >in.jsonl
    printf '{"text":"none"}\n{"text":"word","meta":{"q":"3"}}\n' >>in.jsonl
    printf 'meta: q min 2\nmeta: q max 3\n' >q.rules
    [ "$(dt-clean -q --rules q.rules --rejects rejects in.jsonl | text_of)" = 2.5 ]
    [ "$(jq -c '.meta.reject' rejects)" = '{"rule":"meta-min-q","value":1}
{"rule":"meta-max-q","value":4}
{"rule":"meta-min-q","value":-1}
{"rule":"meta-min-q","value":-1}' ]
    printf 'c4-braces: 0\n[lang de]\nmeta: q min 4\n' >q.rules
    [ "$(dt-clean -q --rules q.rules in.jsonl | jq -r .text | xargs)" = '4 none word' ]
    for bad in 'meta: q 2' 'meta: q min x' 'meta: min 2'; do
        echo "$bad" >bad.rules
        run dt-clean --rules bad.rules in.jsonl
        assert_one_line_error dt-clean
        [[ "$output" == *"bad.rules:1: 'meta: NAME min|max NUMBER' expected" ]]
    done
}

@test "url-blocklist: host names with their subdomains, and prefixes" {
    printf '# list\nexample.org\nwww.Example.NET\nhttps://site.com/a/b/\nsite.com/q?x=1\n\n' >urls
    printf 'url-blocklist: urls\n' >url.rules
    check() {
        printf '{"text":"t","meta":{"url":"%s"}}\n{"text":"other"}\n' "$2" >in.jsonl
        [ "$(dt-clean -q --rules url.rules in.jsonl | grep -c .)" = "$1" ] || { echo "$2"; return 1; }
    }
    for url in http://example.org/ https://a.b.EXAMPLE.org:8080/x example.org //example.org/y \
        http://user:pw@example.org/ https://example.net/z http://www.site.com/a/b http://site.com/a/b/c \
        'http://site.com/a/b?c' 'http://site.com/q?x=1&y=2' https://example.org.; do
        check 1 "$url"
    done
    for url in http://notexample.org/ http://example.org.uk/ http://site.com/ http://site.com/a http://site.com/a/bc \
        'http://site.com/q?x=12' http://other.com/example.org 'http://other.com/?u=http://example.org/' ''; do
        check 2 "$url"
    done
    gzip -k urls
    printf 'url-blocklist: urls.gz\n' >url.rules
    check 1 http://example.org/
    printf '# none\n' >urls
    printf 'url-blocklist: urls\n' >url.rules
    run dt-clean --rules url.rules in.jsonl
    [ "$status" -eq 1 ]
    grep -q 'urls: has no host name or URL' <<<"$output"
}

@test "url-blocklist: a line that no URL can match is refused" {
    printf 'url-blocklist: urls\n' >url.rules
    printf '{"text":"t","meta":{"url":"http://ads.com/"}}\n{"text":"other"}\n' >in.jsonl
    for line in '0.0.0.0 ads.com' '||ads.com^' '*.wild.com' '.dot.com' 'ads.com # note' '/path' 'http://' 'a..b' \
        '[::1'; do
        printf '# list\n\nads.com\n%s\n' "$line" >urls
        run dt-clean -q --rules url.rules in.jsonl
        [ "$status" -eq 1 ] || { echo "$line"; return 1; }
        grep -qF "urls:4: '$line': a host name (example.org" <<<"$output" || { echo "$line"; return 1; }
    done
    printf '%s\r\n' $'\xef\xbb\xbfads.com.' exämple.de 1.2.3.4 'http://[::1]:80/x' a_b.example.org:8080 localhost >urls
    [ "$(dt-clean -q --rules url.rules in.jsonl | grep -c .)" = 1 ]
}

@test "the installed model identifies languages, and fineweb2 has their rules" {
    cat >lines <<'L'
Der alte Mann ging langsam durch den Garten und setzte sich auf die Bank.
The old man walked slowly through the garden and sat down on the bench.
Le vieil homme marchait lentement dans le jardin et s'assit sur le banc.
El anciano caminó despacio por el jardín y se sentó en el banco.
老人慢慢地穿过花园，坐在长凳上休息。
老人はゆっくりと庭を歩き、ベンチに座りました。
노인은 천천히 정원을 지나 벤치에 앉았습니다.
Старик медленно прошёл по саду и сел на скамейку.
سار الرجل العجوز ببطء في الحديقة وجلس على المقعد.
बूढ़ा आदमी धीरे-धीरे बगीचे से होकर गया और बेंच पर बैठ गया।
ชายชราเดินช้าๆผ่านสวนและนั่งลงบนม้านั่ง
Ông già đi chậm qua khu vườn và ngồi xuống ghế.
L
    dt-clean -q --from lines --identify --stats stats lines | sed -E 's/.*"lang":"([a-z]*)".*/\1/' | paste -sd ' ' >found
    [ "$(cat found)" = 'de en fr es zh ja ko ru ar hi th vi' ]
    grep -q '"unicode": "15' stats
    dt-clean -q --from lines -o cleaned.jsonl lines
    [ "$(jq -r '.lineage[0].unicode' cleaned.jsonl.lineage.json)" = "$(jq -r .unicode stats)" ]
    grep -q '"words": "characters"' stats
    grep -qE '"identifier": "[0-9a-f]{16}"' stats
    [ "$(stat -c %s "$ROOT/share/language/languages.ftz")" -lt 300000 ]
    # a German text has German stop words, of which English rules know none
    sed -n 1p lines >german
    printf '%s\n' 'gopher-stop-words: 2' >english.rules
    run dt-clean --from lines --identify --rules ./english.rules german
    [ "$status" -eq 1 ]
    { sed -n '/^\[lang de /,/^$/p' "$ROOT/share/rules/fineweb2.rules" | grep -v -e words-min -e fineweb; echo 'gopher-stop-words: 2'; } >de.rules
    dt-clean -q --from lines --identify --rules ./de.rules german
}

@test "technical English is English, as the manual pages are" {
    dt-clean -q --identify --from text "$ROOT"/man/man*/*.[157] "$ROOT"/*.md | jq -r .meta.lang >found
    [ "$(wc -l <found)" -gt 40 ]
    [ "$(sort -u found)" = en ]
}

@test "a text without letters has no language, and no score is above 1" {
    printf '%s\n' '😀😀😀' '12345 67890' '--- ---' '१२३' >lines
    printf '{"text":"   "}\n' >blanks
    for model in "$ROOT/share/language/languages.ftz" "$ROOT/tests/language/golden/softmax.ftz"; do
        dt-clean -q --from lines --to jsonl --identify --identifier "$model" lines >out
        dt-clean -q --identify --identifier "$model" blanks >>out
        [ "$(grep -c '"meta":{"lang":"und","lang_score":0}' out)" = 5 ] || { cat out; return 1; }
    done
    run dt-clean -q --from lines --identify --language-score 0.01 lines
    [ "$status" -eq 1 ]
    for i in {1..40}; do printf '日本語のひらがなです。'; done >sure
    [ "$(dt-clean -q --to jsonl --identify sure | sed -E 's/.*"lang_score":([0-9.]*).*/\1/')" = 1 ]
    # a rule has the same score
    printf 'fasttext: %s zh max 1\n' "$ROOT/share/language/languages.ftz" >zh.rules
    echo 我们昨天在公园里看见了一只很大的黑色的狗它正在追赶一只白色的小猫 >zh
    dt-clean -q --from lines --identify --attributes --rules ./zh.rules zh |
        grep -q '"dt__identify":\[\[0,32,1\]\],"dt__fasttext-zh":\[\[0,32,1\]\],"dt__drop":\[\[0,32,0\]\]'
}

@test "words: how scripts without blanks are split is a choice of the rule file" {
    printf '{"text":"可用于多种文件系统","meta":{"lang":"zh"}}\n' >zh.jsonl
    printf 'gopher-words-min: 9\n' >one.rules
    dt-clean -q --rules ./one.rules zh.jsonl
    printf 'gopher-words-min: 10\n' >one.rules
    run dt-clean -q --rules ./one.rules zh.jsonl
    [ "$status" -eq 1 ]
    printf 'words: letters\ngopher-words-min: 9\n' >one.rules
    run dt-clean --rules ./one.rules zh.jsonl
    grep -qF "one.rules:1: words: characters or icu expected, not 'letters'" <<<"$output"
    printf 'c4-braces: 0\n[lang zh]\nwords: icu\n' >one.rules
    run dt-clean --rules ./one.rules zh.jsonl
    grep -qF 'one.rules:3: words: stands before the first header' <<<"$output"
    printf 'words: icu\ngopher-words-min: 7\n' >one.rules
    mkdir none
    DT_ENGINES=$T/none run dt-clean --rules ./one.rules zh.jsonl
    [ "$status" -eq 1 ]
    grep -qF "install libicu-dev and build dt again, or use 'words: characters'" <<<"$output"
    need_plugin icu libicu
    run dt-clean --rules ./one.rules --stats stats zh.jsonl
    [ "$status" -eq 1 ]
    printf 'words: icu\ngopher-words-min: 4\n' >one.rules
    dt-clean -q --rules ./one.rules --stats stats zh.jsonl
    grep -q '"words": "ICU ' stats
}
