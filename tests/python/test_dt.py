#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of python/dt: `test_dt.py CASE` in a directory that dt-python.bats made."""
import gc
import json
import os
import pickle
import resource
import subprocess
import sys
import threading
import unittest
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
if os.environ.get("WITHOUT_NUMPY"):
    sys.modules["numpy"] = None

import dt  # noqa: E402
import dt.tokenizers  # noqa: E402

END = "<|endoftext|>"


def documents(name):
    with open(name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


TEXTS = [document["text"] for document in documents("docs.jsonl")]
with open("ids.txt", encoding="utf-8") as lines:
    IDS = [list(map(int, line.split())) for line in lines]


def numbers(array):
    return array.tolist()


def rows(batch):
    return numbers(batch.ids)


def line_of(*command):
    """The line that a program prints, without its name."""
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1, result
    return result.stderr.strip().split(": ", 1)[1]


def sum_hash(seed, values):
    """lib/hash/sum-hash.h, of values with indices from 0."""
    mask, sums = 2**64 - 1, [0, 0]
    for i, value in enumerate(values):
        z = (seed + (i << 32) + value) & mask
        z = (z ^ z >> 33) * 0xff51afd7ed558ccd & mask
        z = (z ^ z >> 33) * 0xc4ceb9fe1a85ec53 & mask
        sums[0] += z ^ z >> 33
        sums[1] += (z ^ z >> 29) * 0x9e3779b97f4a7c15
    return [s & mask for s in sums]


class Tokenizers(unittest.TestCase):
    def setUp(self):
        self.t = dt.Tokenizer("tok.json")

    def test_ids_are_those_of_dt_tokenize(self):
        for threads in (1, 2, 3):
            batch = self.t.encode_batch(TEXTS, num_threads=threads)
            self.assertEqual(len(batch), len(TEXTS))
            self.assertEqual(batch.tolist(), IDS)
            self.assertEqual(numbers(batch[7]), IDS[7])
            self.assertEqual([numbers(x) for x in batch[-2:]], IDS[-2:])
        self.assertEqual([self.t.encode(text) for text in TEXTS], IDS)
        with self.assertRaises(IndexError):
            batch[len(TEXTS)]

    def test_a_frame_is_that_of_dt_tokenize(self):
        end = self.t.eot_token
        self.assertEqual(self.t.encode_batch(TEXTS[:9], frame="eot").tolist(),
                         [ids + [end] for ids in IDS[:9]])

    def test_nothing_and_empty_texts(self):
        self.assertEqual(self.t.encode_batch([]).tolist(), [])
        self.assertEqual(self.t.encode_batch(["", "a", ""]).tolist(), [[], self.t.encode("a"), []])
        self.assertEqual(self.t.encode(""), [])
        self.assertEqual(self.t.decode([]), "")

    def test_ids_decode_to_the_text(self):
        for text in TEXTS[:20] + ["\0", "caf\u00e9 \U0001f600", "a\r\n\t b"]:
            self.assertEqual(self.t.decode(self.t.encode(text)), text)
        batch = self.t.encode_batch(TEXTS)
        self.assertEqual(self.t.decode_batch(batch), TEXTS)
        self.assertEqual(self.t.decode(batch[3]), TEXTS[3])
        self.assertEqual(self.t.decode_bytes(b"".join([])), b"")

    def test_bytes_and_surrogates(self):
        self.assertEqual(self.t.decode_bytes(self.t.encode_ordinary(b"\xff\xfe")), b"\xff\xfe")
        self.assertEqual(self.t.encode("\ud83d\ude00"), self.t.encode("\U0001f600"))
        self.assertEqual(self.t.encode("\ud83d"), self.t.encode("\ufffd"))

    def test_special_tokens_are_refused_allowed_or_text(self):
        text, end = f"a{END}b", self.t.eot_token
        a, b = self.t.encode("a"), self.t.encode("b")
        self.assertEqual(self.t.special_tokens[END], end)
        for call in (self.t.encode, lambda x: self.t.encode_batch([x])):
            with self.assertRaisesRegex(ValueError, "special token"):
                call(text)
        self.assertEqual(self.t.encode(text, allowed_special="all"), a + [end] + b)
        self.assertEqual(self.t.encode(text, allowed_special={END}), a + [end] + b)
        self.assertEqual(self.t.encode_batch([text], allowed_special="all").tolist(),
                         [a + [end] + b])
        self.assertEqual(self.t.encode(text, disallowed_special=()), self.t.encode_ordinary(text))
        self.assertNotIn(end, self.t.encode_ordinary(text))

    def test_single_tokens(self):
        self.assertEqual(self.t.encode_single_token(END), self.t.eot_token)
        for i in IDS[0]:
            self.assertEqual(self.t.encode_single_token(self.t.decode_single_token_bytes(i)), i)
        with self.assertRaises(KeyError):
            self.t.encode_single_token("no such token")
        self.assertEqual(len(self.t.token_byte_values()) + len(self.t.special_tokens),
                         self.t.n_vocab)

    def test_errors_are_the_lines_of_the_programs(self):
        with self.assertRaisesRegex(dt.InputError, "unknown pattern ''"):
            dt.Tokenizer("tok.json", pattern="")
        for name in ("none.json", "docs.jsonl"):
            with self.assertRaises(dt.Error) as raised:
                dt.Tokenizer(name)
            self.assertEqual(str(raised.exception), line_of("dt-tokenize", "-t", name, "docs.jsonl"))
        with self.assertRaisesRegex(dt.InputError, "99999"):
            self.t.decode([99999])
        with self.assertRaises(dt.MissingError):
            dt.Tokenizer.from_pretrained("owner/name")
        for ids in ([-1], [2**32]):
            with self.assertRaises(OverflowError):
                self.t.decode(ids)
        for beyond in (-1, self.t.n_vocab, 2**32 + self.t.eot_token):
            self.assertFalse(self.t.is_special_token(beyond))
            with self.assertRaises(KeyError):
                self.t.decode_single_token_bytes(beyond)
        for wrong in (-1, 2**32):
            with self.assertRaisesRegex(dt.InputError, "^num_threads"):
                self.t.encode_batch(["a"], num_threads=wrong)

    def test_bytes_are_ids_like_any_other_numbers(self):
        self.assertEqual(self.t.decode_bytes(bytes([5, 6, 7, 8])), self.t.decode_bytes([5, 6, 7, 8]))

    def test_strings_are_not_cut_at_a_zero(self):
        for call in (lambda: dt.Tokenizer("tok.json", pattern="gpt2\0"),
                     lambda: self.t.encode_batch(["a"], frame="eot\0"),
                     lambda: dt.Dataset("data", "train\0"),
                     lambda: dt.clean("a", rule_text="gopher-words-min: 1\n\0"),
                     lambda: dt.clean("a", id="http://a\0")):
            with self.assertRaisesRegex(dt.InputError, "holds a NUL byte"):
                call()

    def test_threads_and_pickle(self):
        found, copy = [None] * 4, pickle.loads(pickle.dumps(self.t))
        def work(i):
            found[i] = [copy.encode(text) for text in TEXTS[i::4]]
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [IDS[i::4] for i in range(4)])

    def test_a_batch_outlives_its_tokenizer(self):
        batch = dt.Tokenizer("tok.json").encode_batch(TEXTS)
        one = batch[5]
        del batch
        gc.collect()
        self.assertEqual(numbers(one), IDS[5])

    def test_calls_of_tokenizers(self):
        t = dt.tokenizers.Tokenizer.from_file("tok.json")
        self.assertEqual(t.encode(TEXTS[0]).ids, IDS[0])
        self.assertEqual([e.ids for e in t.encode_batch(TEXTS[:5])], IDS[:5])
        e = t.encode("the \u00e9\U0001f600")
        self.assertEqual(len(e.tokens), len(e))
        self.assertEqual((e.offsets[0][0], e.offsets[-1]), (0, (5, 6)))
        self.assertEqual(t.decode(IDS[0] + [self.t.eot_token]), TEXTS[0])
        self.assertEqual(t.id_to_token(t.token_to_id(END)), END)
        self.assertEqual(t.get_vocab_size(), self.t.n_vocab)

    def test_memory_does_not_grow(self):
        def work(n):
            for _ in range(n):
                self.t.encode("the cat")
                self.t.decode([1, 2, 3])
                self.t.encode_batch(["the", "cat"])
        work(2000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        work(int(os.environ.get("CALLS", 6000)))
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before,
                        int(os.environ.get("MOST_KIB", 1000)))


class Data(unittest.TestCase):
    def loader(self, **options):
        return dt.Loader("data", 32, 4, **options)

    def test_documents_are_those_of_dt_tokenize(self):
        d = dt.Dataset("data")
        self.assertEqual(d.tokenizer_fingerprint, dt.Tokenizer("tok.json").fingerprint)
        self.assertEqual((d.num_documents, d.num_documents + len(dt.Dataset("data", "val"))),
                         (len(d), len(TEXTS)))
        mine = sorted(numbers(d[i]) for i in range(len(d)))
        rest = sorted(numbers(x) for x in (lambda v: [v[i] for i in range(len(v))])(
            dt.Dataset("data", "val")))
        self.assertEqual(sorted(mine + rest), sorted(ids + [d.eot_token] for ids in IDS))
        self.assertEqual(numbers(d[-1]), numbers(d[len(d) - 1]))
        for wrong in (len(d), -len(d) - 1):
            with self.assertRaises(IndexError):
                d[wrong]
        with self.assertRaises(IndexError):
            d.tokens(d.num_tokens - 1, 2)

    def test_batches_are_those_that_dt_train_read(self):
        metrics = dt.read_metrics("run")
        hashes = [h for h in metrics["batch_hash"] if h]
        self.assertEqual(len(hashes), 3)
        for expected, batch in zip(hashes, self.loader()):
            ids = rows(batch)
            sums = zip(sum_hash(0x2295a93498e678d4, [x for row in ids for x in row[:-1]]),
                       sum_hash(0xe707603eca47c6bc, [x for row in ids for x in row[1:]]))
            self.assertEqual("".join(f"{sum(pair) % 2**64:016x}" for pair in sums), expected)

    def test_ranks_have_parts_of_the_same_batches(self):
        whole = [rows(b) for b, _ in zip(self.loader(), range(200))]
        for world in (2, 3):
            ranks = [self.loader(rank=r, world_size=world, workers=r) for r in range(world)]
            for batch in whole:
                self.assertEqual(sum((rows(next(r)) for r in ranks), []), batch)

    def test_a_state_resumes_after_its_batch_with_other_ranks(self):
        loader = self.loader(workers=2)
        for _ in range(5):
            next(loader)
        state = json.loads(json.dumps(loader.state_dict()))
        expected = [rows(next(loader)) for _ in range(3)]
        again = self.loader(workers=0)
        next(again)
        again.load_state_dict(state)
        self.assertEqual([rows(next(again)) for _ in range(3)], expected)
        halves = [self.loader(rank=r, world_size=2, position=state["position"]) for r in (0, 1)]
        self.assertEqual(sum((rows(next(h)) for h in halves), []), expected[0])

    def test_a_state_of_another_order_is_refused(self):
        state = self.loader().state_dict()
        for other in ({"seed": 5}, {"shuffle": False}, {"split": "val"}):
            with self.assertRaisesRegex(dt.InputError, "the state was saved with"):
                self.loader(**other).load_state_dict(state)
        with self.assertRaises(dt.InputError):
            dt.Loader("data", 32, 8).load_state_dict(state)
        blocks = {"shuffle_block": 100, "shuffle_window": 3}
        in_blocks = self.loader(**blocks)
        self.loader(**blocks).load_state_dict(in_blocks.state_dict())
        for loader, other in ((self.loader(), in_blocks), (in_blocks, self.loader())):
            with self.assertRaisesRegex(dt.InputError, "the state was saved with shuffle_block"):
                loader.load_state_dict(other.state_dict())
        self.assertNotEqual(rows(next(in_blocks)), rows(next(self.loader())))

    def test_a_state_that_is_refused_leaves_the_loader_open(self):
        loader = self.loader()
        expected, state = rows(next(self.loader())), loader.state_dict()
        for wrong in ({"position": -1}, {"position": 2**64}, {"seed": 5}):
            with self.assertRaises(dt.InputError):
                loader.load_state_dict({**state, **wrong})
        del state["position"]
        with self.assertRaisesRegex(dt.InputError, "no position"):
            loader.load_state_dict(state)
        self.assertEqual(rows(next(loader)), expected)

    def test_batches_outlive_the_loader_and_differ_in_memory(self):
        loader = self.loader(workers=1)
        kept = [next(loader) for _ in range(10)]
        loader.close()
        again = self.loader(workers=0)
        self.assertEqual([rows(b) for b in kept], [rows(next(again)) for _ in range(10)])
        with self.assertRaises(dt.InputError):
            next(loader)

    def test_wrong_options_are_refused(self):
        for wrong in ({"rank": 4, "world_size": 4}, {"world_size": 5}, {"scope": "all"},
                      {"to": "jax"}, {"workers": -1}):
            with self.assertRaises((dt.Error, ImportError)):
                self.loader(**wrong)
        for name, most in (("seed", 64), ("position", 64), ("world_size", 32), ("rank", 32),
                           ("workers", 31), ("memory", 64), ("shuffle_block", 64)):
            for wrong in (-1, 2**most, 2**most + 1):
                with self.assertRaisesRegex(dt.InputError, f"^{name.replace('world_size', 'ranks')} "):
                    self.loader(**{name: wrong})
        for wrong in (-1, 2**32 + 8):
            for call in (lambda: dt.Loader("data", wrong, 4), lambda: dt.Loader("data", 8, wrong),
                         lambda: dt.Dataset("data").num_samples(wrong),
                         lambda: dt.clean("a", min_chars=wrong * 2**32)):
                with self.assertRaisesRegex(dt.InputError, "must not be negative|is too large"):
                    call()
        with self.assertRaises(dt.MissingError) as raised:
            dt.Dataset("data", "test")
        self.assertIn("split 'test' does not exist", str(raised.exception))

    def test_memory_does_not_grow(self):
        loader = self.loader()
        for _ in range(3000):
            next(loader)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(int(os.environ.get("CALLS", 6000))):
            next(loader)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before,
                        int(os.environ.get("MOST_KIB", 1000)))

    def test_batches_without_numpy_have_ids_alone(self):
        batch = next(dt.Loader("data", 32, 4))
        self.assertEqual(tuple(batch.ids.shape), (4, 33))
        if isinstance(batch.ids, memoryview):
            with self.assertRaisesRegex(ImportError, "inputs and targets of a batch.*needs numpy"):
                iter(batch)

    def test_a_loader_is_closed_while_threads_read(self):
        code = """
import sys; sys.path.insert(0, sys.argv[1])
import dt, os, threading, time
def read(loader):
    try:
        for batch in loader: pass
    except dt.InputError: pass
for i in range(40):
    loader = dt.Loader("data", 32, 4, workers=i % 3)
    threads = [threading.Thread(target=read, args=(loader,)) for _ in range(3)]
    for t in threads: t.start()
    time.sleep(0.003)
    if i % 8 == 7:
        child = os.fork()
        if child == 0: loader.close(); os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    loader.load_state_dict(loader.state_dict())
    loader.close()
    for t in threads: t.join()
"""
        done = subprocess.run([sys.executable, "-c", code, sys.path[0]], timeout=600, check=False)
        self.assertEqual(done.returncode, 0)


class Others(unittest.TestCase):
    def test_a_document_is_cleaned_as_by_dt_clean(self):
        options = ["--rules", "gopher", "--normalize", "nfc", "--space", "trim", "--mask", "email",
                   "--identify"]
        cleaner = dt.Cleaner("gopher", normalize="nfc", space="trim", mask="email", identify=True)
        texts = TEXTS[:40] + ["short", "  e\u0301 a@b.org ", "same " * 400]
        with open("in.jsonl", "w", encoding="utf-8") as file:
            for text in texts:
                file.write(json.dumps({"text": text}) + "\n")
        subprocess.run(["dt-clean", "-q", *options, "--allow-empty", "--rejects", "no.jsonl", "-o",
                        "yes.jsonl", "in.jsonl"], check=True)
        kept, dropped = documents("yes.jsonl"), documents("no.jsonl")
        mine = [cleaner(text) for text in texts]
        self.assertEqual([c.text for c in mine if c], [d["text"] for d in kept])
        self.assertEqual([c.meta for c in mine if c], [d["meta"] for d in kept])
        self.assertEqual([c.rule for c in mine if not c],
                         [d["meta"]["reject"]["rule"] for d in dropped])
        self.assertTrue(any(not c for c in mine))

    def test_threads_may_use_objects_at_the_end_of_the_program(self):
        code = """
import sys; sys.path.insert(0, sys.argv[1])
import dt, threading, time
tokenizer, cleaner, data = dt.Tokenizer("tok.json"), dt.Cleaner("gopher"), dt.Dataset("data")
texts = ["the cat " * 2000] * 40
def forever(function, *arguments):
    def call():
        while True: function(*arguments)
    threading.Thread(target=call, daemon=True).start()
forever(tokenizer.encode_ordinary_batch, texts)
forever(cleaner, texts[0])
forever(data.tokens, 0, data.num_tokens)
time.sleep(0.2)
"""
        for _ in range(4):
            done = subprocess.run([sys.executable, "-c", code, sys.path[0]], check=False)
            self.assertEqual(done.returncode, 0)

    def test_clean_is_a_function_too(self):
        self.assertEqual(dt.clean("", "gopher").rule, "min-chars")
        self.assertEqual(dt.clean("a b", rule_text="gopher-words-min: 3").rule, "gopher-words-min")
        self.assertTrue(dt.clean("a b", id="u", meta={"x": 1}).meta == {"x": 1})
        self.assertTrue(dt.clean("a b", id="").kept)
        for meta in ([1], "s", 5, []):
            with self.assertRaisesRegex(dt.InputError, "meta must be a dict"):
                dt.clean("a b", identify=True, meta=meta)
        for score in (-0.5, 40, float("nan")):
            with self.assertRaisesRegex(dt.InputError, "language_score must be from 0 to 1"):
                dt.clean("a b", identify=True, language_score=score)
        with self.assertRaisesRegex(dt.InputError, "rules:1: unknown rule"):
            dt.clean("a", rule_text="nothing: 3")
        with self.assertRaisesRegex(dt.Error, "'nothing': not found"):
            dt.clean("a", "nothing")

    def test_metrics_are_columns(self):
        columns = dt.read_metrics("run/metrics.jsonl")
        self.assertEqual([s for s, loss in zip(columns["step"], columns["loss"]) if loss], [1, 2, 3])
        self.assertEqual(len({len(c) for c in columns.values()}), 1)
        self.assertIsNotNone(columns["val_loss"][-1])

    def test_metrics_that_are_cut_lost_or_wrong(self):
        with open("cut.jsonl", "w", encoding="utf-8") as file:
            file.write('{"run":"a"}\n{"step":1,"loss":2}\n{"lost":{"lines":3,"until":60}}\n{"st')
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            self.assertEqual(dt.read_metrics("cut.jsonl"), {"step": [1], "loss": [2]})
        self.assertIn("3 lines up to step 60", str(found[0].message))
        with self.assertRaisesRegex(dt.InputError, "docs.txt:1"):
            with open("docs.txt", "w", encoding="utf-8") as file:
                file.write("text\n")
            dt.read_metrics("docs.txt")
        with self.assertRaisesRegex(dt.Error, "cannot open 'none': No such file or directory"):
            dt.read_metrics("none")


class Locale(unittest.TestCase):
    def setUp(self):
        import locale
        locale.setlocale(locale.LC_NUMERIC, "C")

    def use_commas(self):
        import locale
        locale.setlocale(locale.LC_NUMERIC, "de_DE.UTF-8")
        self.assertEqual(locale.localeconv()["decimal_point"], ",")

    def test_weights_of_mixtures_have_decimal_points(self):
        with open("mix.json", "w", encoding="utf-8") as file:
            file.write('{"version": 1, "mixture": [{"data": "data", "weight": 2.75},'
                       ' {"data": "prompts", "weight": 1.25}]}')
        expected = dt.Dataset("mix.json")
        self.use_commas()
        self.assertEqual(dt.Dataset("mix.json").hash, expected.hash)
        self.assertEqual(dt.Dataset("mix.json")._weights, expected._weights)
        self.assertEqual(len(next(dt.Loader("mix.json", 32, 4)).ids), 4)

    def test_numbers_of_tokenizers_have_decimal_points(self):
        with open("tok.json", encoding="utf-8") as file:
            tokenizer = json.load(file)
        tokenizer["model"]["dropout"] = 0.5
        with open("drops.json", "w", encoding="utf-8") as file:
            json.dump(tokenizer, file)
        with self.assertRaises(dt.InputError):
            dt.Tokenizer("drops.json")
        self.use_commas()
        with self.assertRaises(dt.InputError):
            dt.Tokenizer("drops.json")

    def test_rules_and_meta_have_decimal_points(self):
        text = "the cat is here and the dog"
        expected = dt.Cleaner("gopher", identify=True)(text)
        self.use_commas()
        found = dt.Cleaner("gopher", identify=True)(text)
        self.assertEqual((found.rule, found.value, found.meta),
                         (expected.rule, expected.value, expected.meta))
        self.assertGreater(found.meta["lang_score"], 0.1)


class Numpy(unittest.TestCase):
    def test_arrays_are_of_numpy(self):
        import numpy
        t, d = dt.Tokenizer("tok.json"), dt.Dataset("data")
        batch = t.encode_batch(TEXTS)
        self.assertEqual((batch.ids.dtype, batch.offsets.dtype), (numpy.uint32, numpy.uint64))
        self.assertEqual(batch[0].base is not None, True)
        self.assertEqual(t.decode(batch[0].astype(numpy.int64)), TEXTS[0])
        self.assertEqual(t.encode_to_numpy(TEXTS[1]).tolist(), IDS[1])
        with self.assertRaises(OverflowError):
            t.decode(numpy.array([-1]))
        self.assertEqual(d[0].dtype, numpy.uint32)

    def test_numbers_may_be_of_numpy(self):
        import numpy
        d, loader = dt.Dataset("data"), dt.Loader("data", numpy.int64(32), numpy.uint8(200),
                                                  seed=numpy.uint64(7), workers=0)
        self.assertGreater(len(d), 256)
        self.assertEqual(d[numpy.uint8(200)].tolist(), d[200].tolist())
        self.assertEqual(d[numpy.int8(-1)].tolist(), d[-1].tolist())
        self.assertEqual(d.tokens(numpy.int8(100), numpy.int8(100)).tolist(),
                         d.tokens(100, 100).tolist())
        next(loader), next(loader)
        self.assertEqual(json.loads(json.dumps(loader.state_dict()))["position"], 400)

    def test_inputs_and_targets_are_views(self):
        import numpy
        loader = dt.Loader("data", 32, 4)
        batch = next(loader)
        inputs, targets = batch
        self.assertEqual((batch.ids.shape, inputs.shape, inputs.dtype), ((4, 33), (4, 32),
                                                                        numpy.int32))
        self.assertTrue(numpy.shares_memory(inputs, batch.ids))
        self.assertTrue(numpy.shares_memory(targets, batch.ids))
        self.assertTrue((inputs[:, 1:] == targets[:, :-1]).all())

    def test_masked_targets_are_ignored(self):
        loader = dt.Loader("masked", 32, 4, ignore_index=-7, scope="document")
        batch = next(loader)
        inputs, targets = batch
        none = batch.ids[:, 1:] >> 31 == 1
        self.assertTrue(none.any())
        self.assertTrue((targets[none] == -7).all())
        self.assertTrue((targets[~none] == batch.ids[:, 1:][~none]).all())
        self.assertTrue((inputs == batch.ids[:, :-1] & 0x7fffffff).all())
        self.assertTrue((batch.begins < batch.ends).all())

    def test_inputs_are_ids_where_all_targets_of_a_masked_batch_count(self):
        data, whole = dt.Dataset("prompts"), 0
        self.assertTrue(data.masked)
        for _, batch in zip(range(data.num_samples(4)), dt.Loader(data, 4, 1, shuffle=False)):
            self.assertTrue(((0 <= batch.inputs) & (batch.inputs < data.vocab_size)).all())
            whole += bool(batch.ids[0, 0] >> 31) and not (batch.ids[:, 1:] >> 31).any()
        self.assertGreater(whole, 0)


class Torch(unittest.TestCase):
    def test_tensors_have_the_memory_of_the_library(self):
        import torch
        from dt import _data
        seen = []
        own, _data.own = _data.own, lambda at, *rest: (seen.append(at), own(at, *rest))[1]
        loader = dt.Loader("data", 32, 4, to="torch")
        plain = dt.Loader("data", 32, 4)
        for _ in range(5):
            batch = next(loader)
            self.assertEqual(batch.ids.data_ptr(), seen[-1])
            inputs, targets = batch
            self.assertEqual((inputs.data_ptr(), targets.data_ptr()), (seen[-1], seen[-1] + 4))
            self.assertEqual((inputs.dtype, tuple(inputs.shape)), (torch.int32, (4, 32)))
            self.assertEqual(rows(batch), rows(next(plain)))
        _data.own = own

    def test_masked_targets_are_ignored(self):
        numpy_batch = next(dt.Loader("masked", 32, 4))
        batch = next(dt.Loader("masked", 32, 4, to="torch"))
        self.assertEqual(batch.targets.tolist(), numpy_batch.targets.tolist())
        self.assertEqual(batch.inputs.tolist(), numpy_batch.inputs.tolist())


class Peers(unittest.TestCase):
    """Ids, offsets and names are those of tiktoken and tokenizers, with GPT-2's files."""
    data = os.environ.get("TESTDATA", "")

    def texts(self):
        with open(os.path.join(self.data, "wikitext2.test.txt"), encoding="utf-8",
                  newline="") as file:
            text = file.read(600000)
        return [text[i:i + 3001] for i in range(0, len(text), 3001)] + [
            "", " ", "caf\u00e9 \U0001f468\u200d\U0001f469 \u4f60\u597d", f"a{END}b", "\0\r\n  x"]

    def test_tiktoken(self):
        import base64
        import tiktoken
        path = os.path.join(self.data, "gpt2.tiktoken")
        with open(path, encoding="ascii") as file:
            ranks = {base64.b64decode(a): int(b) for a, b in map(str.split, file)}
        pattern = (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$"
                   r"|\s+(?!\S)|\s")
        theirs = tiktoken.Encoding("gpt2", pat_str=pattern, mergeable_ranks=ranks,
                                   special_tokens={END: 50256})
        t = dt.Tokenizer(path, pattern="gpt2")
        texts = self.texts()
        self.assertEqual(t.encode_ordinary_batch(texts).tolist(),
                         theirs.encode_ordinary_batch(texts))
        for text in texts:
            for special in ({"allowed_special": "all"}, {"disallowed_special": ()}):
                self.assertEqual(t.encode(text, **special), theirs.encode(text, **special))
        ids = theirs.encode_ordinary(texts[0])
        for name in ("n_vocab", "eot_token", "max_token_value", "special_tokens_set"):
            self.assertEqual(getattr(t, name), getattr(theirs, name))
        for name, arguments in (("decode", ids), ("decode_bytes", ids), ("decode_tokens_bytes", ids),
                                ("decode_single_token_bytes", 300), ("encode_single_token", " the"),
                                ("decode_batch", [ids, ids]),
                                ("encode_ordinary", "\ud83d x")):
            self.assertEqual(getattr(t, name)(arguments), getattr(theirs, name)(arguments))
        self.assertEqual(t.token_byte_values(), theirs.token_byte_values())
        self.assertTrue(t.is_special_token(50256) and not t.is_special_token(300))

    def test_tokenizers(self):
        import tokenizers
        theirs = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(
            *(os.path.join(self.data, f"gpt2.{name}") for name in ("vocab.json", "merges.txt"))))
        theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        theirs.decoder = tokenizers.decoders.ByteLevel()
        theirs.add_special_tokens([END])
        theirs.save("theirs.json")
        t = dt.tokenizers.Tokenizer.from_file("theirs.json")
        texts = self.texts()
        for mine, other in zip(t.encode_batch(texts), theirs.encode_batch(texts)):
            for name in ("ids", "offsets", "tokens", "attention_mask", "type_ids"):
                self.assertEqual(getattr(mine, name), getattr(other, name))
            self.assertEqual(t.decode(mine.ids), theirs.decode(other.ids))
        self.assertEqual(t.get_vocab(), theirs.get_vocab())
        self.assertEqual(t.get_vocab_size(), theirs.get_vocab_size())
        for name in (END, "\u0120the", "nothing at all"):
            self.assertEqual(t.token_to_id(name), theirs.token_to_id(name))


if __name__ == "__main__":
    unittest.main()
