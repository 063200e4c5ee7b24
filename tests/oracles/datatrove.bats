#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# dt-clean's rules compared with datatrove's: `make oracles-datatrove` installs it.
# DOCUMENTS: how many of this machine's documents to compare (default 100, in seconds;
# 10000 in some minutes). DOCUMENTS_FILE: lines of JSON to compare in their place.
load ../helper

setup() {
    cd "$T"
}

# Man pages and documentation of this machine, one JSON object per line.
real_documents() {
    find /usr/share/doc /usr/share/man/man[1-8] -type f -size -60k 2>/dev/null | LC_ALL=C sort |
        awk -v n="${DOCUMENTS:-100}" '{ all[NR] = $0 }
            END { step = NR > n ? NR / n : 1; for (i = 1; i <= NR; i += step) print all[int(i)] }' >names
    while read -r name; do
        case $name in
        /usr/share/man/*) zcat -f "$name" | mandoc -T utf8 2>/dev/null | col -bx ;;
        *) zcat -f "$name" ;;
        esac 2>/dev/null >text
        # Skips binary files.
        LC_ALL=C grep -qP '\x00' text || dt-clean -q --from text text 2>/dev/null |
            sed "s|^{\"id\":\"text:1\"|{\"id\":\"${name//[^A-Za-z0-9.\/_-]/_}\"|"
    done <names >documents.jsonl
}

# The decision of each set for each document, as the oracle prints it.
decide() {
    for set in gopher c4 fineweb; do
        dt-clean -q --rules $set --rejects $set.rejects documents.jsonl >$set.kept || true
        { sed -E 's/^\{"id":"([^"]*)".*/\1\tkeep/' $set.kept
          sed -E 's/^\{"id":"([^"]*)".*"reject":\{"rule":"([^"]*)".*/\1\t\2/' $set.rejects
        } | LC_ALL=C sort >$set.decisions
    done
    LC_ALL=C join -t "$(printf '\t')" gopher.decisions c4.decisions |
        LC_ALL=C join -t "$(printf '\t')" - fineweb.decisions
}

@test "documents are kept and dropped as datatrove does" {
    need_python datatrove spacy
    if [ -n "${DOCUMENTS_FILE:-}" ]; then
        dt-clean -q -o documents.jsonl "$DOCUMENTS_FILE"
    else
        real_documents
    fi
    [ "$(wc -l <documents.jsonl)" -gt 20 ]
    decide >ours
    "$PYTHON" "$ROOT/tests/oracles/datatrove_oracle.py" documents.jsonl | LC_ALL=C sort >theirs
    [ "$(wc -l <ours)" -eq "$(wc -l <theirs)" ]
    for f in ours theirs; do
        sed -E 's/\t[a-z][a-z0-9]*-[a-z0-9-]*/\tdrop/g' $f >$f.kept
    done
    diff ours theirs | grep '^[<>]' | head -n 40 || true
    # dt-rules(5) lists the differences: about one decision in a thousand.
    [ "$(diff ours.kept theirs.kept | grep -c '^<')" -le $((1 + $(wc -l <ours) / 1000)) ]
    [ "$(diff ours theirs | grep -c '^<')" -le $((1 + $(wc -l <ours) / 100)) ]
}
