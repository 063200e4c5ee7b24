#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Tokenizer files of all kinds. kinds was made by
#   tests/oracles/make_kinds.py tests/token/kinds 420 tests/token/golden/corpus.txt
#   tests/oracles/make_kinds.py ids KIND.json documents.jsonl [special]
# and ranks.ids by tiktoken with the pattern o200k.
load ../helper

KINDS="$BATS_TEST_DIRNAME/../token/kinds"
ORACLES="$BATS_TEST_DIRNAME/../oracles"

setup() {
    cd "$T"
}

@test "ids in the template of the file are those that tokenizers gives, special tokens in text or not" {
    for kind in llama3 nemo bert bert-cased; do
        dt-tokenize -t "$KINDS/$kind.json" --frame template --ids "$KINDS/documents.jsonl" | cmp - "$KINDS/$kind.ids"
        dt-tokenize -t "$KINDS/$kind.json" --frame template --special --ids "$KINDS/documents.jsonl" |
            cmp - "$KINDS/$kind.special.ids"
    done
    dt-tokenize -t "$KINDS/qwen.json" --frame none --ids "$KINDS/documents.jsonl" | cmp - "$KINDS/qwen.ids"
    dt-tokenize -t "$KINDS/qwen.json" --frame none --special --ids "$KINDS/documents.jsonl" |
        cmp - "$KINDS/qwen.special.ids"
}

@test "WordPiece has the template by default, and vocab.txt is the same tokenizer" {
    dt-tokenize -t "$KINDS/bert.json" --ids "$KINDS/documents.jsonl" | cmp - "$KINDS/bert.ids"
    dt-tokenize -t "$KINDS/uncased-vocab.txt" --ids "$KINDS/documents.jsonl" | cmp - "$KINDS/bert.ids"
    dt-tokenize -t "$KINDS/bert.json" "$KINDS/documents.jsonl" >f.dts
    dt-tokenize -t "$KINDS/uncased-vocab.txt" -d f.dts >text
    printf 'The Ferryman, and he sang.' >f
    [ "$(dt-tokenize -t "$KINDS/bert.json" f | dt-tokenize -t "$KINDS/bert.json" -d)" = "the ferryman, and he sang." ]
    printf '{"do_lower_case": false}' >tokenizer_config.json
    cp "$KINDS/uncased-vocab.txt" vocab.txt
    [ "$(dt-tokenize -t . --frame none --ids f)" != "$(dt-tokenize -t "$KINDS/bert.json" --frame none --ids f)" ]
}

@test "a .tiktoken file needs a pattern, and gives the ids of tiktoken" {
    run dt-tokenize -t "$KINDS/ranks.tiktoken" --ids "$KINDS/documents.jsonl"
    assert_one_line_error dt-tokenize
    [[ "$output" == *"ranks.tiktoken: does not define a pre-tokenizer pattern"* ]]
    dt-tokenize -t "$KINDS/ranks.tiktoken" --pattern o200k --ids "$KINDS/documents.jsonl" | cmp - "$KINDS/ranks.ids"
    head -c 300000 /dev/urandom >f
    dt-tokenize -t "$KINDS/ranks.tiktoken" --pattern o200k --frame none --from text f >f.dts
    dt-tokenize -t "$KINDS/ranks.tiktoken" --pattern o200k -d f.dts | cmp - f
}

@test "documents that no token ends are joined only where --frame says so" {
    printf 'a\nb\n' >f
    jq '.post_processor = null' "$KINDS/bert.json" >bert.json
    for without in "$KINDS/ranks.tiktoken --pattern llama3" bert.json; do
        run dt-tokenize -t $without -o f.dts --from lines f
        assert_one_line_error dt-tokenize
        [[ "$output" == *"does not define an end-of-text token"*"--frame none"* ]]
        [ ! -e f.dts ]
        dt-tokenize -t $without --frame none --from lines f | dt-cat --json | grep -q '"eot":null,.*"documents":2,'
        [ "$(dt-tokenize -t $without --ids --from lines f | wc -l)" -eq 2 ]
    done
}

@test "Meta's tokenizer.model has the special tokens and the ids of llama-models" {
    need_python tiktoken llama_models
    cat >oracle.py <<'END'
import importlib, json, os, sys
module = importlib.import_module(f"llama_models.llama{sys.argv[1]}.tokenizer")
t = module.Tokenizer.get_instance()
texts = [json.loads(line)["text"] for line in open(sys.argv[2])]
with open("special.jsonl", "w") as f:
    for name in t.special_tokens:
        print(json.dumps({"text": name}), file=f)
with open("special.ids", "w") as f:
    print(*t.special_tokens.values(), sep="\n", file=f)
with open("ids", "w") as f:
    for text in texts:
        print(*t.encode(text, bos=True, eos=True), file=f)
print(os.path.dirname(module.__file__))
END
    for version in 3 4; do
        where=$("$PYTHON" oracle.py $version "$KINDS/documents.jsonl")
        model=$where/tokenizer.model
        dt-tokenize -t "$model" --special --frame none --ids special.jsonl | cmp - special.ids
        dt-tokenize -t "$model" --frame bos-eot --ids "$KINDS/documents.jsonl" | cmp - ids
        end=$(dt-tokenize -t "$model" "$KINDS/documents.jsonl" | dt-cat --json | jq -c '[.eot,.vocab_size]')
        [ "$end" = "[$(sed -n 2p special.ids),$(($(tail -n 1 special.ids) + 1))]" ]
        dt-tokenize -t "$model" --pattern gpt2 "$KINDS/documents.jsonl" | dt-cat --json | grep -q '"eot":[0-9]'
    done
}

# tekken.json with the ranks of ranks.tiktoken and 5 special tokens
make_tekken() {
    printf '{"config": {"pattern": "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+",'
    printf '"num_vocab_tokens": 420, "default_vocab_size": 415, "default_num_special_tokens": 5, "version": "v3"},\n"vocab": ['
    awk '{ printf "%s{\"rank\": %d, \"token_bytes\": \"%s\", \"token_str\": null}", (NR > 1 ? ",\n" : ""), $2, $1 }' "$KINDS/ranks.tiktoken"
    printf ']}\n'
}

@test "tekken.json: ids are ranks after the special tokens" {
    make_tekken >tekken.json
    printf 'he sang' >f
    shifted=$(dt-tokenize -t "$KINDS/ranks.tiktoken" --pattern tekken --ids f | awk '{ for (i = 1; i <= NF; i++) $i += 5; print }')
    [ "$(dt-tokenize -t . --ids --frame none f)" = "$shifted" ]
    [ "$(dt-tokenize -t . --ids f)" = "$shifted 2" ]
    [ "$(dt-tokenize -t . --ids --frame bos-eot f)" = "1 $shifted 2" ]
    [ "$(printf '[INST]' | dt-tokenize -t . --special --ids --frame none)" = 3 ]
}

@test "a file of Mistral with the pattern of Llama 3 is named, and --pattern mends it" {
    nemo=$(grep -o '{"Regex":"[^"]*"}' "$KINDS/nemo.json")
    llama3=$(grep -o '{"Regex":"[^"]*"}' "$KINDS/llama3.json")
    text=$(cat "$KINDS/nemo.json")
    printf %s "${text/"$nemo"/"$llama3"}" >wrong.json
    run dt-tokenize -t wrong.json --ids "$KINDS/documents.jsonl"
    assert_one_line_error dt-tokenize
    [[ "$output" == *"the pattern llama3 instead of tekken, a known mistake"* ]]
    dt-tokenize -t wrong.json --pattern tekken --frame template --ids "$KINDS/documents.jsonl" | cmp - "$KINDS/nemo.ids"
}

@test "--frame selects the special tokens around documents" {
    printf 'he\n' >f
    he=$(dt-tokenize -t "$KINDS/llama3.json" --ids --frame none --from lines f)
    [ "$(dt-tokenize -t "$KINDS/llama3.json" --ids --from lines f)" = "$he 1" ]
    [ "$(dt-tokenize -t "$KINDS/llama3.json" --ids --frame eot --from lines f)" = "$he 1" ]
    [ "$(dt-tokenize -t "$KINDS/llama3.json" --ids --frame bos --from lines f)" = "0 $he" ]
    [ "$(dt-tokenize -t "$KINDS/llama3.json" --ids --frame bos-eot --from lines f)" = "0 $he 1" ]
    [ "$(dt-tokenize -t "$KINDS/llama3.json" --ids --frame template --from lines f)" = "0 $he" ]
    run dt-tokenize -t "$KINDS/qwen.json" --frame bos --ids f
    assert_one_line_error dt-tokenize
    run dt-tokenize -t "$KINDS/qwen.json" --frame template --ids f
    assert_one_line_error dt-tokenize
}

@test "--truncate drops the rest of a document, --stride makes documents of it" {
    printf 'QZXJKVWY\n' >f # none of its letters merge
    run dt-tokenize -t "$KINDS/llama3.json" --ids --frame none --from lines f
    all=($output)
    [ "${#all[@]}" -eq 8 ]
    [ "$(dt-tokenize -t "$KINDS/llama3.json" --ids --truncate 5 --from lines f)" = "${all[*]:0:4} 1" ]
    [ "$(dt-tokenize -t "$KINDS/llama3.json" --ids --truncate 5 --stride 1 --from lines f)" = "${all[*]:0:4} 1
${all[*]:3:4} 1
${all[*]:6:2} 1" ]
    [ "$(dt-tokenize -t "$KINDS/llama3.json" --ids --frame none --truncate 8 --stride 2 --from lines f)" = "${all[*]}" ]
    [ "$(dt-tokenize -t "$KINDS/llama3.json" --truncate 5 --stride 0 --from lines f | dt-tokenize -t "$KINDS/llama3.json" -d)" = QZXJKVWY ]
    for wrong in "--truncate 1" "--truncate 3 --stride 2"; do
        run dt-tokenize -t "$KINDS/llama3.json" --ids $wrong f
        assert_one_line_error dt-tokenize
    done
    run dt-tokenize -t "$KINDS/llama3.json" --ids --stride 2 f
    [ "$status" -eq 2 ]
}

@test "added tokens take the space beside them, also without a pre-tokenizer" {
    cat >t.json <<'END'
{"added_tokens": [{"id": 4, "content": "QL", "lstrip": true, "special": false},
                  {"id": 5, "content": "QR", "rstrip": true, "special": false}],
 "model": {"type": "BPE", "vocab": {"Q": 0, "L": 1, "R": 2, " ": 3}, "merges": []}}
END
    echo '{"text": "L  QL  QR  R"}' >d.jsonl
    [ "$(dt-tokenize -q -t t.json --frame none --ids d.jsonl)" = "1 4 3 3 5 2" ]
}

@test "an added token that is not in the model's vocabulary is not a symbol of the model" {
    word='"single_word": true, "special": false'
    cat >bpe.json <<END
{"added_tokens": [{"id": 4, "content": "Q", $word}],
 "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "L": 1, " ": 2, "R": 3}, "merges": []}}
END
    echo '{"text": "LQ Q R"}' >d.jsonl
    [ "$(dt-tokenize -q -t bpe.json --frame none --ids d.jsonl)" = "1 0 2 4 2 3" ]
    for model in WordPiece WordLevel; do
        cat >words.json <<END
{"added_tokens": [{"id": 4, "content": "Q", $word}], "pre_tokenizer": {"type": "Digits", "individual_digits": true},
 "model": {"type": "$model", "unk_token": "?", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
 "vocab": {"?": 0, "L": 1, "1": 2, "##Q": 3}}}
END
        echo '{"text": "Q1"}' >d.jsonl
        [ "$(dt-tokenize -q -t words.json --frame none --ids d.jsonl)" = "0 2" ]
    done
}

@test "characters that have no token and no unknown token do not keep merges apart" {
    cat >t.json <<'END'
{"model": {"type": "BPE", "vocab": {"c": 0, "\u2581": 1, "c\u2581": 2}, "merges": ["c \u2581"]}}
END
    echo '{"text": "c,\u2581c"}' >d.jsonl
    [ "$(dt-tokenize -q -t t.json --frame none --ids d.jsonl)" = "2 0" ]
}

@test "Metaspace marks the first piece only if no normalizer removes text before it" {
    cat >t.json <<'END'
{"normalizer": {"type": "Strip", "strip_left": true, "strip_right": false},
 "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true},
 "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "\u2581": 2}, "merges": []}}
END
    printf '{"text": "%s"}\n' 'a a' ' a a' 'a' '\ta' >d.jsonl
    [ "$(dt-tokenize -q -t t.json --frame none --ids d.jsonl | paste -sd,)" = "2 1 2 1,1 2 1,2 1,1" ]
}

@test "--offsets are bytes of the document" {
    printf 'h\303\251 s\n' >f
    [ "$(dt-tokenize -t "$KINDS/bert-cased.json" --frame none --offsets --from lines f | sed 's/[0-9]*:\([0-9]*:[0-9]*\)/\1/g')" = "0:1 1:3 4:5" ]
    [ "$(dt-tokenize -t "$KINDS/bert.json" --offsets --from lines f | sed 's/[0-9]*:\([0-9]*:[0-9]*\)/\1/g')" = "0:0 0:3 4:5 0:0" ]
    printf 'e\314\201<left>  <left>\n' >f # composed, then blanks that the token takes
    [ "$(dt-tokenize -t "$KINDS/qwen.json" --frame none --offsets --from lines f | sed 's/[0-9]*:\([0-9]*:[0-9]*\)/\1/g')" = "0:3 3:9 9:17" ]
}

@test "ids of all kinds are those of the oracles: 5,000 random strings" {
    need_python tokenizers tiktoken
    "$PYTHON" "$ORACLES/tokenizers_oracle.py" strings 12 5000 >f.jsonl
    for kind in llama3 nemo qwen bert bert-cased; do
        dt-tokenize -t "$KINDS/$kind.json" --frame none --ids f.jsonl >ids
        "$PYTHON" "$ORACLES/kinds_oracle.py" "$KINDS/$kind.json" f.jsonl ids
        dt-tokenize -t "$KINDS/$kind.json" --frame none --special --ids f.jsonl >ids
        "$PYTHON" "$ORACLES/kinds_oracle.py" "$KINDS/$kind.json" f.jsonl ids --special
    done
    for pattern in gpt2 llama3 cl100k o200k tekken; do
        dt-tokenize -t "$KINDS/ranks.tiktoken" --pattern $pattern --ids f.jsonl >ids
        "$PYTHON" "$ORACLES/kinds_oracle.py" "$KINDS/ranks.tiktoken" f.jsonl ids --pattern $pattern
    done
}

@test "ids of the pipelines of families are those of tokenizers: 3,000 random strings" {
    need_python tokenizers
    "$PYTHON" "$ORACLES/tokenizers_oracle.py" strings 13 3000 >f.jsonl
    for file in "$KINDS"/../families/*.json; do
        for special in "" --special; do
            dt-tokenize -t "$file" --frame none $special --ids f.jsonl >ids
            "$PYTHON" "$ORACLES/kinds_oracle.py" "$file" f.jsonl ids $special
        done
    done
}

@test "matches of expressions are those that Oniguruma gives today" {
    need_python tokenizers
    "$PYTHON" "$ORACLES/regex_oracle.py" 3 400 | cmp - "$BATS_TEST_DIRNAME/../pretokenize/regexes.jsonl"
}

@test "offsets of a pipeline are bytes of the document, of an added mark those of the first character" {
    printf '\303\251 ok\n' >f
    [ "$(dt-tokenize -t "$KINDS/../families/mistral.json" --frame none --offsets --from lines f |
        sed 's/[0-9]*:\([0-9]*:[0-9]*\)/\1/g')" = "0:2 0:2 2:4 4:5" ]
}

@test "an empty token in a .tiktoken file is skipped" {
    (cat "$KINDS/ranks.tiktoken" && echo "= 420") >empty.tiktoken
    dt-tokenize -t empty.tiktoken --pattern o200k --frame none --ids "$KINDS/documents.jsonl" |
        cmp - "$KINDS/ranks.ids"
}

@test "a pattern is refused where the tokenizer has another normalizer" {
    run dt-tokenize -t "$KINDS/../families/claude.json" --pattern gpt2 --ids "$KINDS/documents.jsonl"
    [ "$status" = 1 ]
    [[ $output = *"--pattern is not supported with normalizer NFKC" ]]
}
