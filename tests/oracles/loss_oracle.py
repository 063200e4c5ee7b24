# SPDX-License-Identifier: MIT
"""loss_oracle.py MODEL COUNT: writes COUNT random conversations to stdout, and to stderr for each
its ids and those that transformers marks as an assistant's, "1 2 3|2 3"."""
import json
import random
import sys

from transformers import PreTrainedTokenizerFast

tokenizer = PreTrainedTokenizerFast(tokenizer_file=sys.argv[1] + "/tokenizer.json", eos_token="<|endoftext|>")
template = open(sys.argv[1] + "/chat_template.jinja").read()
r = random.Random(1)
words = ["one", "two?", "7 + 5", "number\n", "é", " so", "answer;", "12"]
for _ in range(int(sys.argv[2])):
    text = lambda: " ".join(r.choice(words) for _ in range(r.randint(1, 6)))
    messages = [{"role": "system", "content": text()}] if r.random() < .3 else []
    for _ in range(r.randint(1, 4)):
        messages += [{"role": "user", "content": text()}, {"role": "assistant", "content": text()}]
    both = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=True, return_dict=True,
                                         return_assistant_tokens_mask=True)
    learned = [i for i, m in zip(both["input_ids"], both["assistant_masks"]) if m]
    print(json.dumps({"messages": messages}, ensure_ascii=False))
    print(*both["input_ids"], end="|", file=sys.stderr)
    print(*learned, file=sys.stderr)
