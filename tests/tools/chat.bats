# SPDX-License-Identifier: MIT
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    seq 1 300 | sed 's/.*/& is a number and so is 7 & the answer; one + two?/' >text.txt
    mkdir m
    dt-vocab -q -s 400 --special '<|endoftext|>' --special '<|im_start|>' --special '<|im_end|>' \
        -o m/tokenizer.json text.txt
    cp "$ROOT/share/templates/chatml.jinja" m/chat_template.jinja
    echo '{"eos_token": "<|im_end|>"}' >m/tokenizer_config.json
    cat >c.jsonl <<'END'
{"messages": [{"role": "user", "content": "one?"}, {"role": "assistant", "content": "two"}, {"role": "user", "content": "7?"}, {"role": "assistant", "content": "so"}]}
{"conversations": [{"from": "human", "value": "one?"}, {"from": "gpt", "value": "two"}], "system": "add"}
{"instruction": "one", "input": "7", "output": "two"}
{"prompt": "one + ", "completion": "two"}
{"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}], "completion": [{"role": "assistant", "content": "d"}]}
END
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{m,c.jsonl,text.txt} .
}

# learned FILE [OPTION ...]: the text of each conversation that carries loss, a line each.
learned() {
    dt-tokenize -q -t m --chat "${@:2}" "$1" | dt-cat -t m --text --loss | tr '\n' ' ' |
        sed 's/ <|endoftext|> /\n/g'
}

@test "conversations of five forms are written through the template, with loss on the answers" {
    dt-tokenize -q -t m --chat c.jsonl >c.dts
    [ "$(dt-tokenize -d -t m c.dts | head -8)" = "<|im_start|>user
one?<|im_end|>
<|im_start|>assistant
two<|im_end|>
<|im_start|>user
7?<|im_end|>
<|im_start|>assistant
so<|im_end|>" ]
    dt-cat -t m --text c.dts | grep -F -A1 '<|im_start|>system' | grep -Fx 'add<|im_end|>'
    [ "$(dt-cat -t m --text --doc 2 c.dts | head -4)" = "<|im_start|>user
one

7<|im_end|>" ]
    [ "$(learned c.jsonl)" = "two<|im_end|> so<|im_end|> 
two<|im_end|> 
two<|im_end|> 
 two<|im_end|>
d<|im_end|> " ]
    dt-cat --info c.dts | grep -F 'a list with a loss mask'
}

@test "a text that ends with the end-of-text token gets no second one" {
    printf '{"prompt": "one + ", "completion": "%s"}\n' 'two<|im_end|>' two >same.jsonl
    dt-tokenize -q -t m --chat same.jsonl >same.dts
    cmp <(dt-cat -t m --text --loss --doc 0 same.dts) <(dt-cat -t m --text --loss --doc 1 same.dts)
    printf '{"prompt": "one + ", "chosen": "%s", "rejected": "7<|im_end|>"}\n' 'two<|im_end|>' >pair.jsonl
    dt-tokenize -q -t m --chat --pairs pair.jsonl | dt-cat -t m --text --loss | grep -c -F '<|im_end|><|im_end|>' | grep -qx 0
}

@test "loss is on the last answer or on everything" {
    [ "$(learned c.jsonl --loss last | head -1)" = "so<|im_end|> " ]
    [ "$(learned c.jsonl --loss all | head -1)" = \
        "<|im_start|>user one?<|im_end|> <|im_start|>assistant two<|im_end|> <|im_start|>user 7?<|im_end|> <|im_start|>assistant so<|im_end|> " ]
}

@test "a template's generation blocks carry the loss" {
    dt-vocab -q -s 300 -o plain.json text.txt
    dt-tokenize -q -t plain.json --chat --template "$ROOT/share/templates/plain.jinja" c.jsonl >p.dts
    [ "$(dt-cat -t plain.json --text --loss --doc 0 p.dts)" = " two<|endoftext|> so" ]
    [ "$(dt-cat -t plain.json --text --doc 0 p.dts | head -2)" = "User: one?
Assistant: two<|endoftext|>" ]
    dt-tokenize -q -t plain.json --chat --loss last --template "$ROOT/share/templates/plain.jinja" \
        c.jsonl | dt-cat -t plain.json --text --loss --doc 0 | grep -Fx " so"
}

@test "an answer that several generation blocks write is learned as a whole" {
    cat >several.jinja <<'END'
{%- for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}{% generation %}7{% endgeneration %}<|im_start|>{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}
END
    head -1 c.jsonl >one.jsonl
    tail -1 c.jsonl >given.jsonl
    [ "$(learned one.jsonl --template several.jinja)" = "7two<|im_end|>7so<|im_end|>" ]
    [ "$(learned one.jsonl --template several.jinja --loss last)" = "7so<|im_end|>" ]
    [ "$(learned given.jsonl --template several.jinja)" = "7d<|im_end|>" ]
}

@test "a template that rewrites earlier answers learns only the last one" {
    cat >r.jinja <<'END'
{%- for m in messages %}{{ m.role }}:{% if loop.last and m.role == 'assistant' %}<think>{% endif %}{{ m.content }};{%- endfor %}
{%- if add_generation_prompt %}assistant:{% endif %}
END
    run dt-tokenize -q -t m --chat --template r.jinja -o out.dts c.jsonl
    assert_one_line_error dt-tokenize
    [[ "$output" == *"c.jsonl:1: the template writes message 2 otherwise when others follow it"*"--loss last"* ]]
    [ ! -e out.dts ]
    head -1 c.jsonl >one.jsonl
    dt-tokenize -q -t m --chat --loss last --template r.jinja one.jsonl | dt-cat -t m --text --loss --doc 0 |
        grep -Fx '<think>so;'
}

@test "tools are a list, or the text of one" {
    echo '{% for t in tools or [] %}[{{ t.name }}]{% endfor %}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}' >tools.jinja
    record='{"tools": %s, "messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]}\n'
    for tools in '[{"name": "so"}]' '"[{\"name\": \"so\"}]"' null; do
        printf "$record" "$tools"
    done >tools.jsonl
    [ "$(dt-tokenize -q -t m --chat --loss all --template tools.jinja tools.jsonl | dt-tokenize -d -t m)" = \
        "[so]user:one;assistant:two;[so]user:one;assistant:two;user:one;assistant:two;" ]
    printf "$record" '"so"' >tools.jsonl
    run dt-tokenize -q -t m --chat --template tools.jinja tools.jsonl -o tools.dts
    assert_one_line_error dt-tokenize
    [[ "$output" == *"tools.jsonl:1: 'tools': "* ]]
}

@test "a record that is not a conversation is refused with its place and the reason" {
    refused() {
        echo "$1" >bad.jsonl
        run dt-tokenize -q -t m --chat bad.jsonl -o bad.dts
        assert_one_line_error dt-tokenize
        echo "$output"
        [[ "$output" == *"bad.jsonl:1: "*"$2"* ]]
        [ ! -e bad.dts ]
    }
    refused '{"text": "a"}' "a conversation has 'messages'"
    refused '{"messages": []}' "has no messages"
    refused '{"messages": [{"content": "a"}]}' '"role"'
    refused '{"messages": "a"}' '"messages"'
    refused '{"messages": [{"role": "user", "content": "a"}]}' "no message of the role 'assistant'"
    refused '{"conversations": [{"from": "alien", "value": "a"}]}' "not from 'alien'"
    refused '{"instruction": "a"}' '"output"'
    refused '{"prompt": "a"}' '"completion"'
    printf '{"chosen": "\200a", "rejected": "\201b"}\n' >bytes.jsonl # read before its beginning
    [ "$(dt-tokenize -q -t m --chat --pairs --ids bytes.jsonl | wc -l)" -eq 2 ]
    refused "$(printf '{"messages": [{"role": "assistant", "content": "a\360"}]}')" "is not UTF-8"
    echo text >bad.txt
    run dt-tokenize -q -t m --chat bad.txt -o bad.dts
    assert_one_line_error dt-tokenize
    [[ "$output" == *"bad.txt: has no records with members"* ]]
    rm m && mkdir m && cp "$BATS_FILE_TMPDIR/m/tokenizer.json" m
    run dt-tokenize -q -t m --chat c.jsonl -o bad.dts
    assert_one_line_error dt-tokenize
    [[ "$output" == *"m: has no chat template: give one with --template FILE" ]]
    run dt-tokenize -q -t m --chat --stride 2 --truncate 5 c.jsonl
    [ "$status" -eq 2 ]
}

@test "a model that learned conversations answers them" {
    for a in 1 2 3 4; do
        echo '{"messages": [{"role": "user", "content": "'$a'?"}, {"role": "assistant", "content": "'$((a + 1))' so"}]}'
    done >train.jsonl
    dt-tokenize -q -t m --chat train.jsonl | dt-shard -o d --layout padded --length 32
    dt-train -q -j 1 -t m/tokenizer.json --set model.hidden_size=32 --set model.num_layers=1 \
        --set model.num_heads=2 --set model.max_seq_len=32 --set training.batch_size=4 \
        --set training.max_steps=150 --set training.learning_rate=1e-2 --set training.warmup_steps=5 \
        --set training.ema_decay=0.9 -o run d >/dev/null
    cmp m/chat_template.jinja run/latest/chat_template.jinja
    (cd run/latest && find . -type f ! -path ./trainer/manifest.json | cut -c 3- | sort) >files
    jq -r '.files | keys[]' run/latest/trainer/manifest.json | sort | cmp - files
    cp -rL run/latest changed
    echo x >>changed/chat_template.jinja
    run dt-generate -m changed --chat -n 20 -p '3?'
    assert_one_line_error dt-generate
    [[ "$output" == *"changed/chat_template.jinja: has "*" bytes, its manifest says "* ]]
    [ "$(dt-generate -m run/latest --chat --temperature 0 -n 20 -p '3?')" = "4 so" ]
    [ "$(printf '2?\n' | dt-generate -m run/latest --chat --temperature 0 -n 20)" = "3 so" ]
    echo '{"messages": [{"role": "user", "content": "1?"}]}' |
        dt-generate -m run/latest --chat --temperature 0 --prompts - >answers.jsonl
    grep '"text":"2 so".*"finish":"end"' answers.jsonl
    # A last message of the assistant is continued, also by a template that trims it.
    cat >same.jsonl <<'END'
{"messages": [{"role": "user", "content": "1?"}, {"role": "assistant", "content": "2"}]}
{"prompt": "<|im_start|>user\n1?<|im_end|>\n<|im_start|>assistant\n2", "completion": ""}
END
    dt-generate -m run/latest --chat --temperature 0 --prompts same.jsonl -n 20 | jq -c '[.text, .tokens, .finish]' >texts
    [ "$(uniq texts | wc -l)" -eq 1 ]
    grep '^\[" so"' texts
    printf '{%% for m in messages %%}<|im_start|>{{ m.role }}\n{{ m.content|trim }}<|im_end|>\n{%% endfor %%}' >trims.jinja
    sed -i 's/"2"/" 2 \\n"/' same.jsonl
    dt-generate -m run/latest --chat --template trims.jinja --temperature 0 --prompts same.jsonl -n 20 |
        jq -c '[.text, .tokens, .finish]' | cmp - texts
    echo '{# nothing #}' >nothing.jinja
    run dt-generate -m run/latest --chat --template nothing.jinja -p 'a'
    assert_one_line_error dt-generate
    [[ "$output" == *"the chat template wrote nothing" ]]
    echo '{% for m in messages %}{{ m.content|trim }}{% endfor %}' >trims.jinja
    printf 'a\360\nb\n' | timeout 60 dt-generate -m run/latest --chat --template trims.jinja -n 2 >/dev/null
    run dt-generate -m run/latest --chat --prompts c.jsonl --system x
    [ "$status" -eq 2 ]
    dt-export -m run/latest -o exported
    cmp m/chat_template.jinja exported/chat_template.jinja
}
