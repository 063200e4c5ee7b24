# SPDX-License-Identifier: MIT
"""Trains SentencePiece models and writes ids and texts of `sentencepiece`.

  sentencepiece_oracle.py make FOLDER CORPUS             small models, without published maps
  sentencepiece_oracle.py published FOLDER CORPUS        models of SentencePiece's own options
  sentencepiece_oracle.py json MODEL TOKENIZER.json      the same with the parts of `tokenizers`
  sentencepiece_oracle.py ids MODEL DOCUMENTS            ids, a line for each document
  sentencepiece_oracle.py texts MODEL IDS                texts of lines of ids, as JSON Lines
  sentencepiece_oracle.py likelihood TRAIN TEST TOKENIZER.json SIZE
      trains SIZE pieces on TRAIN, too, and fails if the lines of TEST are less probable by
      TOKENIZER.json
"""
import json
import os
import sys

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

RULES = """41	61
E9	65 301
FB01	66 69
65 301	E8
2003	20
200B
"""


def train(folder, name, corpus, **options):
    sentencepiece.SentencePieceTrainer.train(
        **{**dict(input=corpus, model_prefix=os.path.join(folder, name), minloglevel=2, num_threads=1,
                  hard_vocab_limit=False, normalization_rule_name="identity"), **options})
    os.remove(os.path.join(folder, name + ".vocab"))


def make(folder, corpus):
    rules = os.path.join(folder, "rules.tsv")
    with open(rules, "w") as out:
        out.write(RULES)
    train(folder, "unigram", corpus, vocab_size=400, normalization_rule_tsv=rules,
          normalization_rule_name="own", user_defined_symbols=["<sep>", "the ring", "an", "and"],
          control_symbols=["<2en>"])
    with open(rules, "w") as out:
        out.write("A\t20\nD\n41\t61\n")
    train(folder, "unigram-lines", corpus, vocab_size=300, normalization_rule_tsv=rules, normalization_rule_name="own")
    os.remove(rules)
    train(folder, "unigram-bytes", corpus, vocab_size=560, byte_fallback=True,
          remove_extra_whitespaces=False, add_dummy_prefix=False, allow_whitespace_only_pieces=True)
    train(folder, "unigram-suffix", corpus, vocab_size=300, treat_whitespace_as_suffix=True)
    train(folder, "unigram-across", corpus, vocab_size=300, split_by_whitespace=False)
    train(folder, "bpe", corpus, vocab_size=400, model_type="bpe",
          user_defined_symbols=["<sep>", "an"])
    train(folder, "bpe-bytes", corpus, vocab_size=600, model_type="bpe", byte_fallback=True,
          remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, split_digits=True)
    tie(folder, "bpe-bytes", "bpe-ties")


def tie(folder, name, result):
    """Adds pieces of spaces with one score, the lowest, as the models of Llama 2 and Mistral have."""
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(open(os.path.join(folder, name + ".model"), "rb").read())
    own = [p for p in proto.pieces if len(p.piece) > 1 and not p.piece.strip("\u2581")]
    for piece in own:
        proto.pieces.remove(piece)
    for size in (2, 4, 8, 5, 6, 3, 7):
        proto.pieces.add(piece="\u2581" * size, score=-1e9)
    with open(os.path.join(folder, result + ".model"), "wb") as f:
        f.write(proto.SerializeToString())


def published(folder, corpus):
    common = dict(vocab_size=4000, character_coverage=0.9995)
    train(folder, "t5", corpus, normalization_rule_name="nmt_nfkc", **common)
    train(folder, "xlnet", corpus, normalization_rule_name="nmt_nfkc_cf", **common,
          user_defined_symbols=["<sep>", "<cls>", "foo bar", "ab", "abc"], control_symbols=["<2ja>"])
    train(folder, "nfkc", corpus, normalization_rule_name="nfkc", byte_fallback=True, **common)
    train(folder, "llama", corpus, model_type="bpe", byte_fallback=True, split_digits=True,
          remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, **common)
    train(folder, "gemma", corpus, model_type="bpe", byte_fallback=True, split_digits=True,
          remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, add_dummy_prefix=False,
          user_defined_symbols=["<mask>", "\n", "\n\n", "<h1>"], **common)


    tie(folder, "llama", "llama-ties")


def write_json(model, path):
    """As the converters of `transformers`, without regular expressions."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(open(model, "rb").read())
    t = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], proto.trainer_spec.unk_id,
                                 proto.trainer_spec.byte_fallback))
    steps = [normalizers.Strip(left=False, right=True)]
    if proto.normalizer_spec.precompiled_charsmap:
        steps.insert(0, normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap))
    t.normalizer = normalizers.Sequence(steps)
    scheme = "always" if proto.normalizer_spec.add_dummy_prefix else "never"
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Metaspace(prepend_scheme=scheme)])
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    t.save(path)


def documents(path):
    return (json.loads(line)["text"] for line in open(path))


def ids(model, path):
    for text in documents(path):
        print(*model.encode(text))


def texts(model, path):
    for line in open(path):
        print(json.dumps({"text": model.decode([int(x) for x in line.split()])}))


def likelihood(train_path, test_path, path, size):
    """Each byte of a byte token counts as an unknown character of -20."""
    from tokenizers import Tokenizer
    train(".", "likelihood", train_path, vocab_size=int(size), byte_fallback=True,
          remove_extra_whitespaces=False, add_dummy_prefix=False, split_by_unicode_script=False,
          split_by_number=False, character_coverage=1.0, max_sentence_length=1000000)
    model = sentencepiece.SentencePieceProcessor(model_file="likelihood.model")
    tokenizer = Tokenizer.from_file(path)
    scores = [score for _, score in json.load(open(path))["model"]["vocab"]]
    size = theirs = ours = 0
    for line in open(test_path):
        text = line.rstrip("\n")
        size += len(text.encode())
        theirs += sum(-20 if model.is_byte(i) else model.get_score(i) for i in model.encode(text))
        ours += sum(max(scores[i], -20) for i in tokenizer.encode(text).ids)
    print("log-likelihood of a byte: dt %.4f, sentencepiece %.4f" % (ours / size, theirs / size))
    if ours < theirs:
        sys.exit("less probable")


def main():
    name, path, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    if name == "json":
        write_json(path, *rest)
    elif name == "likelihood":
        likelihood(path, *rest)
    elif name in ("make", "published"):
        globals()[name](path, *rest)
    else:
        globals()[name](sentencepiece.SentencePieceProcessor(model_file=path), *rest)


main()
