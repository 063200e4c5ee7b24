# SPDX-License-Identifier: MIT
"""Compares dt-eval with lm-evaluation-harness on the same exported model.

  choice_oracle.py questions SEED COUNT            generated questions as JSON Lines
  choice_oracle.py compare MODEL DATA ITEMS        items of dt-eval choice: log-likelihoods to
                                                   1e-4 per token, the same decisions
  choice_oracle.py strided MODEL FILE WINDOW STRIDE JSON   result of dt-eval perplexity --no-end
                                                   --window WINDOW --stride STRIDE
  choice_oracle.py rolling MODEL FILE JSON         result of dt-eval perplexity --no-end over
                                                   one document: perplexities to 5 digits
"""
import json
import math
import random
import re
import sys


def questions(seed, count):
    rng = random.Random(int(seed))
    words = ("the old king saw a river and then his daughter went down to it because someone else "
             "would ever go there again Ärger naïve 12 3.5 don't").split()
    for number in range(int(count)):
        text = lambda low, high: " ".join(rng.choices(words, k=rng.randint(low, high)))
        choices = [text(1, 6) for _ in range(rng.randint(2, 5))]
        context = text(0, 40) + rng.choice(["", "", " ", "\n", ":"])
        print(json.dumps({"id": str(number), "context": context if context.strip() else "", "choices": choices,
                          "gold": rng.randrange(len(choices)), "delimiter": rng.choice([" ", " ", "", "\n"])}))


def harness(directory, **options):
    import torch
    from lm_eval.models.huggingface import HFLM
    torch.set_num_threads(2)
    # Its cache of logits mixes up an answer of one token and one of several tokens that have the
    # same tokens before their last.
    return HFLM(pretrained=directory, device="cpu", batch_size=16, dtype="float32",
                prefix_token_id=None, logits_cache=False, **options)


def instances(lines):
    from lm_eval.api.instance import Instance
    for line in lines:
        if "text" in line:
            context, _, target = line["text"].rpartition(" ")
            line = {"context": context, "choices": [target], "gold": 0}
        yield line, [Instance("loglikelihood", {}, (line["context"], line.get("delimiter", " ") + c), 0)
                     for c in line["choices"]]


def compare(directory, data, items):
    model = harness(directory)
    pairs = list(instances(json.loads(line) for line in open(data, encoding="utf-8")))
    ours = [json.loads(line) for line in open(items)]
    scores = iter(model.loglikelihood([r for _, requests in pairs for r in requests], disable_tqdm=True))
    worst = wrong = 0
    for (line, requests), mine in zip(pairs, ours, strict=True):
        theirs = [next(scores) for _ in requests]
        for (likelihood, greedy), choice in zip(theirs, mine["choices"], strict=True):
            worst = max(worst, abs(likelihood - choice["log_likelihood"]) / choice["tokens"])
            wrong += greedy != choice["is_greedy"]
        if len(requests) > 1:
            for name, length in (("acc", lambda c: 1), ("acc_norm", len),
                                 ("acc_bytes", lambda c: len(c.encode()))):
                score = [t[0] / length(c) for t, c in zip(theirs, line["choices"])]
                wrong += (score.index(max(score)) == line["gold"]) != mine[name]
    print(f"{len(ours)} items: log-likelihoods differ by {worst:.2g} a token at most; {wrong} decisions differ")
    sys.exit(worst > 1e-4 or wrong > 0)


def rolling(directory, path, result):
    from lm_eval.api.instance import Instance
    text = open(path, encoding="utf-8", newline="").read()
    ours = json.load(open(result))
    model = harness(directory, add_bos_token=False)  # it puts one before the text itself
    total = model.loglikelihood_rolling([Instance("loglikelihood_rolling", {}, (text,), 0)], disable_tqdm=True)[0]
    theirs = {"word_perplexity": math.exp(-total / len(re.split(r"\s+", text))),
              "byte_perplexity": math.exp(-total / len(text.encode())),
              "bits_per_byte": -total / len(text.encode()) / math.log(2)}
    for name, value in theirs.items():
        print(name, value, ours[name])
        if abs(value / ours[name] - 1) > 1e-5:
            sys.exit(1)


def strided(directory, path, window, stride, result):
    """The recipe of transformers' page on the perplexity of fixed-length models, after an end-of-text."""
    import torch
    import transformers
    model = transformers.AutoModelForCausalLM.from_pretrained(directory).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    text, ours = open(path, encoding="utf-8", newline="").read(), json.load(open(result))
    ids = [tokenizer.eos_token_id] + tokenizer(text, add_special_tokens=False)["input_ids"]
    ids = torch.tensor([ids])
    total, count, previous = 0.0, 0, 0
    for first in range(0, ids.size(1), int(stride)):
        end = min(first + int(window), ids.size(1))
        labels = ids[:, first:end].clone()
        labels[:, :previous - first] = -100
        with torch.no_grad():
            loss = model(ids[:, first:end], labels=labels).loss
        predicted = int((labels[:, 1:] != -100).sum())
        total, count, previous = total + loss.item() * predicted, count + predicted, end
        if end == ids.size(1):
            break
    print(f"{count} tokens, {total / count:.7f} nats a token, dt {ours['loss']:.7f}")
    sys.exit(count != ours["tokens"] or abs(total / count - ours["loss"]) > 1e-5)


if __name__ == "__main__":
    {"questions": questions, "compare": compare, "rolling": rolling, "strided": strided}[sys.argv[1]](*sys.argv[2:])
