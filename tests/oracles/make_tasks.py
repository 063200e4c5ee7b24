# SPDX-License-Identifier: MIT
"""Writes small random data sets with the fields of 20 public benchmarks, DIR/TASK/SPLIT.jsonl, and a tiny
model with a tokenizer, DIR/model.

  make_tasks.py DIR [COUNT] [KIND]

COUNT documents in each split (default 12); KIND of the model: gpt2, llama (whose tokenizer begins texts
with a token), or bench, a larger llama.
"""
import json
import os
import random
import sys

WORDS = ("the a of and to in is was it for on are as with his they at be this have from or one had by word but not what "
         "all were we when your can said there use an each which she do how their if will up other about out many then "
         "them these so some her would make like him into time has look two more write go see number no way could people "
         "my than first water been call who oil its now find long down day did get come made may part Paris Ontario café "
         "naïve 中国 energy animal plant").split()
SUBJECTS = ["anatomy", "college_physics", "world_religions"]


def phrase(r, low=3, high=12):
    words = [r.choice(WORDS) for _ in range(r.randint(low, high))]
    for i in range(len(words) - 1):
        words[i] += r.choice(["", "", "", "", ",", " (" + r.choice(WORDS) + ")"])
    return " ".join(words)


def sentence(r, low=3, high=12):
    text = phrase(r, low, high)
    return text[0].upper() + text[1:] + "."


def choices(r, n, labels="ABCDE"):
    return {"text": [phrase(r, 1, 5) for _ in range(n)], "label": list(labels[:n])}


def arc(r, i):
    labels = "1234" if i % 4 == 3 else "ABCD"
    return {"id": f"Q{i}", "question": sentence(r)[:-1] + "?", "choices": choices(r, 4, labels),
            "answerKey": r.choice(labels)}


def mmlu(r, i):
    return {"question": " " + sentence(r) + ("\n" if i % 3 == 0 else ""), "subject": SUBJECTS[i % 3],
            "choices": [phrase(r, 1, 4) for _ in range(4)], "answer": r.randint(0, 3)}


def winogrande(r, i):
    return {"sentence": phrase(r) + " _ " + phrase(r) + ".", "option1": r.choice(WORDS), "option2": r.choice(WORDS),
            "answer": r.choice("12")}


def boolq(r, i):
    return {"passage": " ".join(sentence(r) for _ in range(3)), "question": phrase(r), "idx": i, "label": r.randint(0, 1)}


def openbookqa(r, i):
    return {"id": f"{i}-1", "question_stem": sentence(r)[:-1], "choices": choices(r, 4),
            "answerKey": r.choice("ABCD") if i % 5 else " A"}


def hellaswag(r, i):
    mark = r.choice(["", " [title]", " [step]", "  "])
    return {"ind": i, "activity_label": phrase(r, 1, 2), "ctx_a": sentence(r) + mark, "ctx_b": phrase(r, 1, 3),
            "ctx": "", "endings": [phrase(r) + r.choice(["", " [substeps] ", ".", "  x"]) for _ in range(4)],
            "label": str(r.randint(0, 3))}


def piqa(r, i):
    return {"goal": sentence(r), "sol1": phrase(r), "sol2": phrase(r), "label": r.randint(0, 1)}


def lambada(r, i):
    return {"text": sentence(r) + " " + sentence(r)[:-1]}


def gsm8k(r, i):
    return {"question": sentence(r), "answer": f"{sentence(r)}\n#### {r.randint(1, 3000):,}"}


def copa(r, i):
    return {"premise": sentence(r), "choice1": sentence(r), "choice2": sentence(r), "question": r.choice(["cause", "effect"]),
            "idx": i, "label": r.randint(0, 1)}


def rte(r, i):
    return {"sentence1": sentence(r), "sentence2": sentence(r), "label": r.randint(0, 1), "idx": i}


def sciq(r, i):
    return {"question": sentence(r), "distractor1": phrase(r, 1, 3), "distractor2": phrase(r, 1, 3),
            "distractor3": phrase(r, 1, 3), "correct_answer": phrase(r, 1, 3), "support": r.choice([" ", "", "\n"]) + sentence(r)}


def wsc(r, i):
    words = [r.choice(WORDS) for _ in range(14)]
    words[4] = r.choice(["it,", "they", "she"])
    text = " ".join(words) + " , do n't say \" it \" ( now ) ."
    return {"text": text, "span1_index": 0, "span2_index": 4, "span1_text": words[0], "span2_text": words[4], "idx": i,
            "label": r.randint(0, 1)}


def cb(r, i):
    return {"premise": sentence(r), "hypothesis": phrase(r), "idx": i, "label": r.randint(0, 2)}


def triviaqa(r, i):
    names = [phrase(r, 1, 3) for _ in range(r.randint(1, 4))] + ["it's \"quoted\""] * (i % 2)
    return {"question": phrase(r), "question_id": str(i), "answer": {"aliases": names, "value": names[0]}}


def nq_open(r, i):
    return {"question": phrase(r), "answer": [phrase(r, 1, 3) for _ in range(r.randint(1, 3))]}


def commonsense_qa(r, i):
    return {"id": str(i), "question": " " + sentence(r), "question_concept": "x", "choices": choices(r, 5),
            "answerKey": r.choice("ABCDE")}


def truthfulqa(r, i):
    n = r.randint(2, 6)
    return {"question": sentence(r), "mc1_targets": {"choices": [sentence(r) for _ in range(n)], "labels": [1] + [0] * (n - 1)}}


def wikitext(r, i):
    parts = [f" = {phrase(r, 1, 3)} = \n", " \n"]
    for _ in range(r.randint(2, 9)):
        parts.append(" " + phrase(r) + f" @-@ {r.choice(WORDS)} @,@ 000 ; ( {phrase(r, 1, 3)} ) \" {phrase(r, 1, 3)} \" [ 1 ] . "
                     f"the dogs 's ' {r.choice(WORDS)} ' = = {r.choice(WORDS)} = = 5 ° N \n")
    return {"page": "".join(parts)}


TASKS = {"arc_easy": arc, "arc_challenge": arc, "mmlu": mmlu, "winogrande": winogrande, "boolq": boolq, "openbookqa": openbookqa,
         "hellaswag": hellaswag, "piqa": piqa, "lambada_openai": lambada, "gsm8k": gsm8k, "copa": copa, "rte": rte,
         "sciq": sciq, "wsc": wsc, "cb": cb, "triviaqa": triviaqa, "nq_open": nq_open, "commonsense_qa": commonsense_qa,
         "truthfulqa_mc1": truthfulqa, "wikitext": wikitext}
SPLITS = {"mmlu": ["dev", "test"]}


def write_data(directory, count):
    r = random.Random(7)
    for task, make in TASKS.items():
        os.makedirs(f"{directory}/{task}", exist_ok=True)
        for split in SPLITS.get(task, ["train", "validation", "test"]):
            n = max(count, 9) if task == "mmlu" else count
            with open(f"{directory}/{task}/{split}.jsonl", "w", encoding="utf-8") as f:
                for i in range(n):
                    f.write(json.dumps(make(r, i), ensure_ascii=False) + "\n")


def write_model(directory, kind):
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>"] if kind == "gpt2" else ["<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=1000, special_tokens=special,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    r = random.Random(3)
    tokenizer.train_from_iterator([sentence(r) for _ in range(3000)], trainer)
    bos, eos = special[0], special[-1]
    if kind != "gpt2":
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=bos, eos_token=eos,
                                                clean_up_tokenization_spaces=False)
    torch.manual_seed(1)
    size = tokenizer.get_vocab_size()
    ids = {"bos_token_id": fast.bos_token_id, "eos_token_id": fast.eos_token_id}
    if kind == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=size, n_positions=1024, n_embd=64, n_layer=2, n_head=4, initializer_range=0.2, **ids))
    else:
        wide = kind == "bench"
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=size, hidden_size=288 if wide else 64, intermediate_size=768 if wide else 128,
            num_hidden_layers=6 if wide else 2, num_attention_heads=6 if wide else 4, num_key_value_heads=6 if wide else 2,
            max_position_embeddings=1024, initializer_range=0.2 if not wide else 0.1, **ids))
    model.save_pretrained(f"{directory}/model")
    fast.save_pretrained(f"{directory}/model")


if __name__ == "__main__":
    where, number = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 12
    os.makedirs(where, exist_ok=True)
    write_data(where, number)
    write_model(where, sys.argv[3] if len(sys.argv) > 3 else "gpt2")
