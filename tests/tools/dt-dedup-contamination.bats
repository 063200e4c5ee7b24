#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Decontamination: scripts without blanks, and the report by evaluation text.
load ../helper

setup() {
    cd "$T"
}

@test "evaluation texts are found in scripts without blanks" {
    cat >eval <<'END'
我们昨天在公园里看见了一只很大的黑色的狗它正在追赶一只白色的小猫
เมื่อวานนี้เราเห็นสุนัขสีดำตัวใหญ่ในสวนสาธารณะมันกำลังไล่แมวสีขาวตัวเล็กแล้วพวกมันก็วิ่งหนีไป
きのうわたしたちはこうえんでとてもおおきなくろいいぬをみましたそしてそれは
END
    {
        echo "新闻：我们昨天在公园里看见了一只很大的黑色的狗它正在追赶。"
        echo "ข่าว เมื่อวานนี้เราเห็นสุนัขสีดำตัวใหญ่ในสวนสาธารณะมันกำลังไล่แมว"
        echo "さて、きのうわたしたちはこうえんでとてもおおきなくろいいぬをみました。"
        echo "我们昨天在公园里看见了一只猫，很小。"
        echo "เมื่อวานนี้เราเห็นสุนัขสีขาว"
        echo "きのうわたしたちはうみでおよぎました。"
    } >in
    dt-clean -q --from lines --to text --decontaminate eval in >out
    tail -n 3 in | cmp - out
}

@test "vowels that are spacing marks make other words, nonspacing marks do not" {
    echo 'का की के को कु' >eval
    printf '%s\n' 'का की कै को कू है' 'क की के को कु' 'को का के की कु' >in
    dt-clean -q --from lines --to text --sequence 5 --decontaminate eval in >out
    tail -n 2 in | cmp - out
}

@test "the report counts the documents and sequences of each evaluation text" {
    cat >eval <<'END'
{"id":"q1","text":"a b c d e f"}
{"id":"q2","text":"x y z d e f"}
{"id":"q3","text":"never found at all"}
{"id":"q4","text":"u v"}
END
    cat >in.jsonl <<'END'
{"text":"a b c d, and a b c and a b c"}
{"text":"nothing of it"}
{"text":"d e f"}
{"text":"y z d e f g"}
END
    run dt-clean -o out --sequence 3 --decontaminate eval --contamination-report found in.jsonl
    [ "$status" -eq 0 ]
    [ "$(wc -l <out)" -eq 1 ]
    [ "$(cat found)" = '{"item":"q1","sequences":4,"documents":3,"overlaps":6,"most":2}
{"item":"q2","sequences":4,"documents":2,"overlaps":4,"most":3}' ]
    # the reports of parts can be summed, for any number of threads
    for i in $(seq 400); do sed 's/"text":"/&w'$i' /' in.jsonl; done >many.jsonl
    dt-clean -q -j 3 -o out --sequence 3 --decontaminate eval --contamination-report all many.jsonl
    split -n l/5 many.jsonl part-
    for p in part-*; do
        dt-clean -q --from jsonl -o out --sequence 3 --decontaminate eval --contamination-report $p.found $p
    done
    cat part-*.found | jq -sc 'group_by(.item)[] | {item: .[0].item, sequences: .[0].sequences,
        documents: map(.documents) | add, overlaps: map(.overlaps) | add, most: map(.most) | max}' >sum
    cmp all sum
}

@test "a report is written if every document was dropped, and only with --decontaminate" {
    echo "a b c d" >eval
    run dt-clean -q --from lines --sequence 3 --decontaminate eval --contamination-report found -o out eval
    [ "$status" -eq 1 ]
    [ "$(cat found)" = '{"item":"eval:1","sequences":2,"documents":1,"overlaps":2,"most":2}' ]
    [ ! -e out ]
    run dt-clean --contamination-report found eval
    [ "$status" -eq 2 ]
    run dt-clean -q --from lines --sequence 3 --decontaminate eval --contamination-report eval -o out eval
    [ "$status" -eq 2 ]
}

@test "the report is UTF-8, whatever the ids of the evaluation texts" {
    printf '{"id":"a\xffb","text":"a b c d"}\n' >eval
    printf '{"text":"a b c d e"}\n{"text":"other"}\n' >in.jsonl
    dt-clean -q --sequence 3 --decontaminate eval --contamination-report found -o out in.jsonl
    [ "$(cat found)" = '{"item":"a�b","sequences":2,"documents":1,"overlaps":2,"most":2}' ]
}
