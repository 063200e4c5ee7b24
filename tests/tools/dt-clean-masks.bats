#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Recall and false positives of masks over layouts from published formats.
load ../helper

@test "masks find 99 % of each kind of 1388 layouts, and change no other text" {
    python3 "$BATS_TEST_DIRNAME/../oracles/masks_oracle.py" 0.99 >"$T/table" || { cat "$T/table"; return 1; }
    grep -E 'layouts' "$T/table" >&3
}

@test "telephone numbers in the formats of 29 countries are masked; dates, prices, codes and versions are not" {
    cd "$T"
    golden=$ROOT/tests/repair/golden
    awk -F '\t' -v masked=want '
        BEGIN { n = split("%|Tel. %|Please call %.|(%)|see %, or ask|\"%\"|%; thanks|Fax:\t%|联系 % 谢谢|для % связи", form, "|") }
        { text = with = form[NR % n + 1]; sub("%", $2, text); sub("%", "|||PHONE_NUMBER|||", with); print text; print with >masked }' \
        "$golden/phones.txt" >in
    [ "$(wc -l <in)" -ge 1000 ]
    dt-clean -q --from lines --to text --mask phone -o out in
    missed=$(diff out want | grep -c '^<' || true)
    [ $((missed * 100)) -le "$(wc -l <in)" ] || { diff out want; return 1; }
    dt-clean -q --from lines --to text --mask phone "$golden/not-phones.txt" | diff "$golden/not-phones.txt" -
}
