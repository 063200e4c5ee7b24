# SPDX-License-Identifier: MIT
"""What lm-evaluation-harness makes of the data of make_tasks.py, without a model: JSON Lines of prompts,
random numbers, metrics and filters, tests/tasks/golden/harness.jsonl.

  tasks_golden.py DIR > tests/tasks/golden/harness.jsonl
"""
import contextlib
import json
import os
import random
import sys

import make_tasks
import tasks_oracle


def prompts(directory, task, shots):
    from lm_eval.tasks import TaskManager
    names = tasks_oracle.MMLU if task == "mmlu" else [task]
    splits = {s: tasks_oracle.read_split(directory, task, s) for s in ("train", "validation", "test", "dev")
              if os.path.exists(f"{directory}/{task}/{s}.jsonl")}
    items = []
    for name in names:
        t = manager.load([name])["tasks"][name] if hasattr(manager, "load") else manager.load_task_or_group([name])[name]
        if t.config.num_fewshot != 0:
            t.set_config("num_fewshot", shots)
        t.set_fewshot_seed(1234)
        t.build_all_requests()
        for i, doc in enumerate(t.eval_docs):
            requests = [r.args for r in t.instances if r.doc_id == i]
            gold = t.doc_to_text(doc) if t.multiple_input else t.doc_to_target(doc)
            items.append({"group": name.removeprefix("mmlu_") if task == "mmlu" else "", "gold": gold,
                          "requests": [[x for x in r if isinstance(x, str)] for r in requests]})
    return {"kind": "prompts", "task": task, "shots": shots, "splits": splits, "items": items}


def numbers(seed, n, k):
    r = random.Random(seed)
    return {"kind": "random", "seed": seed, "n": n, "k": k, "samples": [r.sample(range(n), k) for _ in range(3)],
            "choices": r.choices(range(n), k=n), "real": r.random()}


def metric(name, scores, resamples):
    from lm_eval.api import metrics
    functions = {"mean": metrics.mean, "perplexity": metrics.perplexity, "weighted_perplexity": metrics.weighted_perplexity,
                 "bits_per_byte": metrics.bits_per_byte, "f1": metrics.f1_score}
    items = [tuple(s) if name in ("weighted_perplexity", "bits_per_byte", "f1") else s[0] for s in scores]
    error = metrics.stderr_for_metric(functions[name], resamples)
    return {"kind": "metric", "aggregation": name, "scores": scores, "resamples": resamples,
            "value": float(functions[name](items)), "error": error and float(error(items))}


def filtered(task, texts):
    from lm_eval.api.instance import Instance
    t = manager.load([task])["tasks"][task] if hasattr(manager, "load") else manager.load_task_or_group([task])[task]
    for text, right in texts:
        for f in t._filters:
            instance = Instance("generate_until", {}, (), 0, resps=[text])
            f.apply([instance])
            answer = instance.filtered_resps[f.name]
            golds = right if isinstance(right, list) else [right]
            scores = [t._metric_fn_list["exact_match"](references=[g], predictions=[answer],
                                                       **t._metric_fn_kwargs["exact_match"])["exact_match"] for g in golds]
            yield {"kind": "filter", "task": task, "filter": f.name, "text": text, "right": golds, "answer": answer,
                   "matches": bool(max(scores))}


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        from lm_eval.tasks import TaskManager
        manager = TaskManager()
        tasks_oracle.patch(sys.argv[1])
        rows = [prompts(sys.argv[1], t, 2) for t in make_tasks.TASKS]
        rows += [numbers(s, n, k) for s, n, k in ((1234, 5, 3), (0, 21, 5), (1, 22, 5), (2**40 + 7, 90, 6), (9, 2000, 20))]
        r = random.Random(4)
        rows += [metric("mean", [[r.randint(0, 1), 1] for _ in range(40)], 1000)]
        rows += [metric(a, [[-20 * r.random(), r.randint(2, 30)] for _ in range(20)], 2000)
                 for a in ("perplexity", "weighted_perplexity", "bits_per_byte")]
        rows += [metric("f1", [[r.randint(0, 1), r.randint(0, 1)] for _ in range(30)], 1000)]
        rows += filtered("gsm8k", [("So.\n#### 1,234.", "x\n#### 1234"), ("it is $18 or 19.", "#### 19"), ("none", "#### 1"),
                                   ("#### -5\n#### 6", "#### -5"), ("a 7", "b #### 7.")])
        rows += filtered("nq_open", [(" The café\t", ["café"]), ("a CAT!", ["cat", "dog"]), ("", ["x"]), ("an owl", ["Owl"])])
        rows += filtered("triviaqa", [("\u00a0Paris\n", ["paris.", "Lyon"]), ("Île", ["île"])])
    for row in rows:
        print(json.dumps(row))
