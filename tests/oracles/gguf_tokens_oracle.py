# SPDX-License-Identifier: MIT
"""gguf_tokens_oracle.py TEXTS (TOKENIZER.json FILE.gguf) ...: fails unless llama.cpp, from the GGUF
file, and tokenizers, from the tokenizer.json, give the same ids, those before a text included, for
each text of TEXTS (JSON Lines) and for random ones."""
import json
import random
import sys

import llama_cpp
import tokenizers

texts = [json.loads(line)["text"] for line in open(sys.argv[1])][:100]
choose = random.Random(1).choice
letters = "ab cdeXYZ é日本 \n\r\t0123456789.,!?'s'RE'll/-_()  \u0301ßǅ"
texts += ["".join(choose(letters) for _ in range(n % 60 + 1)) for n in range(1500)]
failed = False
arguments = iter(sys.argv[2:])
for path, file in zip(arguments, arguments):
    tokenizer = tokenizers.Tokenizer.from_file(path)
    if tokenizer.normalizer is not None and "NFC" in repr(tokenizer.normalizer):
        tokenizer.normalizer = tokenizers.normalizers.Sequence([])  # llama.cpp leaves it out
    llama = llama_cpp.Llama(file, vocab_only=True, verbose=False)
    differ = [text for text in texts if tokenizer.encode(text).ids != llama.tokenize(text.encode(), special=False)]
    print(f"{file}: {len(texts)} texts, {len(differ)} differ", *map(repr, differ[:3]))
    failed |= bool(differ)
    llama.close()
sys.exit(failed)
