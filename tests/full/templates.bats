# SPDX-License-Identifier: MIT
# Chat templates against transformers. $TEMPLATES is a folder of published ones, such as
# vendor/llama.cpp/models/templates in the source archive of PyPI's llama-cpp-python; without it,
# those of share/templates are compared.
load ../helper

@test "random conversations have the text that transformers gives them" {
    need_python transformers jinja2
    cd "$T" && mkdir t
    cp "${TEMPLATES:-$ROOT/share/templates}"/*.jinja t
    "$PYTHON" "$ROOT/tests/oracles/make_templates.py" t t/*.jinja "${CONVERSATIONS:-1000}"
    DT_TEMPLATES=t "${DT_BUILD:-$ROOT/build}/tests/full/test-templates" 2>&1 | tee out
    refute grep -q 'FAILED' out
    grep -q ' 0 refused' out
}

@test "the tokens that carry loss are those of transformers" {
    need_python transformers tokenizers
    cd "$T"
    seq 1 300 | sed 's/.*/& is a number and so is 7 & the answer; one + two?/' >text.txt
    mkdir m
    dt-vocab -q -s 320 -o m/tokenizer.json text.txt
    cp "$ROOT/share/templates/plain.jinja" m/chat_template.jinja
    echo '{"eos_token": "<|endoftext|>"}' >m/tokenizer_config.json
    "$PYTHON" "$ROOT/tests/oracles/loss_oracle.py" m 300 >c.jsonl 2>expected
    dt-tokenize -q -t m --chat --frame none c.jsonl >c.dts
    dt-cat --ids c.dts >ids
    dt-cat --ids --loss c.dts >learned
    paste -d '|' ids learned | cmp - expected
}
