# SPDX-License-Identifier: MIT
# pipelines/translate.mk over a toy language, outside the tree.
load ../helper

setup() {
    cd "$T"
    mkdir "$T/pairs"
    local part count
    for part in train:400 val:20 test_2016_flickr:12; do
        count=${part#*:}
        awk -v n="$count" -v seed="$count" -v dir="$T/pairs/multi30k.${part%:*}" 'BEGIN {
            srand(seed)
            d = split("ein hund sieht die \"frau\" Straße rot blau", de, " ")
            split("a dog sees the \"woman\" street red blue", en, " ")
            while (n--) {
                a = b = ""
                for (k = 3 + int(4 * rand()); k; k--) {
                    w = 1 + int(d * rand()); a = a de[w] (k > 1 ? " " : ""); b = b en[w] (k > 1 ? " " : "")
                }
                print a >(dir ".de"); print b >(dir ".en")
            } }'
    done
    gzip "$T/pairs"/*
}

translate() {
    make -C "$ROOT" --no-print-directory -f pipelines/translate.mk B="${DT_BUILD:-build}" \
        OUT="$T/out" DATA="$T/pairs" VOCAB_SIZE=300 VAL=0.2 EPOCHS=2 BATCH=4 LENGTH=32 BEAMS=2 \
        MOST=20 SET='model.hidden_size=32 model.num_layers=1 model.num_heads=2' "$@"
}

@test "a file that is cut, or has fewer lines than the other, is an error" {
    cp "$T/pairs/multi30k.train.en.gz" whole.gz
    head -c 1500 whole.gz >"$T/pairs/multi30k.train.en.gz"
    run translate "$T/out/corpus"
    [ "$status" -ne 0 ]
    [[ "$output" == *"multi30k.train.en.gz: unexpected end of file"* ]]
    zcat whole.gz | head -n 300 | gzip >"$T/pairs/multi30k.train.en.gz"
    run translate "$T/out/corpus"
    [ "$status" -ne 0 ]
    [[ "$output" == *"multi30k.train.de.gz, .en: not as many lines in one as in the other"* ]]
    [ ! -e "$T/out/corpus" ]
    cp whole.gz "$T/pairs/multi30k.train.en.gz"
    translate "$T/out/corpus"
}

@test "each epoch's translations are scored beside copies of the source" {
    translate >"$T/log" 2>"$T/err" || { cat "$T/log" "$T/err"; return 1; }
    for name in copy epoch-1 epoch-2; do
        [ "$(grep -c " $name\$" "$T/out/bleu.txt")" -eq 3 ]
        [ "$(wc -l <"$T/out/translations/$name")" -eq 12 ]
    done
    zcat "$T/pairs/multi30k.test_2016_flickr.de.gz" | cmp - "$T/out/translations/copy"
    grep -q '"BLEU":{"score":' "$T/out/bleu.json"
    translate >"$T/log" 2>&1
    refute grep -q dt-train "$T/log"
}

