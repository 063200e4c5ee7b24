# SPDX-License-Identifier: MIT
#
# German to English over Multi30k (Elliott et al. 2016) with a GPT-2-shaped model:
#
#   make -f pipelines/translate.mk DATA=DIR
#
# DIR contains multi30k.{train,val,test_2016_flickr}.{de,en}.gz. A document is a German
# line and its translation below it; only the translation carries loss (dt-shard
# --loss-after the line feed). After each epoch the test set is translated by beam
# search, and scored beside copies of the source.
#
# PAIRS, TEST_PAIRS, EPOCHS, VOCAB_SIZE and SET make it smaller; LAUNCH precedes dt-train,
# as mpirun -n 2.
NAME       := translate
DATA       ?= $(error DATA=DIR must name the folder with multi30k.train.de.gz and the others)
OUT        ?= build/translate
CONFIG     ?= share/configs/text.yaml
VOCAB_SIZE ?= 6000
PAIRS      ?= 29000
TEST_PAIRS ?= 1000
EPOCHS     ?= 4
BATCH      ?= 16
LENGTH     ?= 128
VAL        ?= 0.02
BEAMS      ?= 4
MOST       ?= 60
SET        ?= model.hidden_size=256 model.num_layers=4 model.num_heads=4 training.learning_rate=1e-3

# Documents are separated by lines of a character that does not occur in them.
CLEAN_FLAGS := --from sep --separator "$$(printf '\001')"
SPLIT_FLAGS  = --split val=$(VAL) --loss-after $$(cat $(OUT)/newline)
epoch       := $$(<$(OUT)/epoch)
override SET := model.max_seq_len=$(LENGTH) training.batch_size=$(BATCH) $(SET) \
                training.max_steps=$$(($(epoch)*$(EPOCHS))) training.warmup_steps=$$(($(epoch)/4+1)) \
                training.save_interval=$(epoch) checkpoint.keep_every=$(epoch)
SETTINGS_pairs     = $(DATA) $(PAIRS)
SETTINGS_test      = $(DATA) $(TEST_PAIRS)
SETTINGS_translate = $(EPOCHS) $(BEAMS) $(MOST)

translate:

include pipelines/rules.mk
.DEFAULT_GOAL := translate

source = $(DATA)/multi30k.$1.gz

ifeq ($(origin CORPUS),undefined)
$(OUT)/corpus: $(call source,train.de) $(call source,train.en) $(OUT)/settings/pairs
	@gzip -t $(filter %.gz,$^)
	@[ "$$(zcat $(call source,train.de) | grep -c '')" -eq "$$(zcat $(call source,train.en) | grep -c '')" ] || \
	  { echo '$(call source,train.de), .en: not as many lines in one as in the other' >&2; exit 1; }
	paste -d '\n' <(zcat $(call source,train.de)) <(zcat $(call source,train.en)) | \
	  awk 'NR <= 2 * $(PAIRS) { print; if (NR % 2 == 0) print "\001" }' >$@
endif

# The id of the line feed, after which the targets begin.
$(OUT)/newline: $(OUT)/tokenizer.json
	@sed -nE '/"Ċ": ?[0-9]/ { s/.*"Ċ": ?([0-9]+).*/\1/p; q }' $< >$@

$(OUT)/data/index.json: $(OUT)/newline

# Steps of an epoch: training tokens over those of a batch.
$(OUT)/epoch: $(OUT)/data/index.json $(OUT)/settings/train
	@dt-cat --json $(OUT)/data/train-*.dts | sed -E 's/.*"tokens":([0-9]+).*/\1/' | \
	  awk '{ tokens += $$1 } END { print int(tokens / ($(BATCH) * $(LENGTH))) }' >$@

$(OUT)/run/finished: $(OUT)/epoch

$(OUT)/test.%: $(call source,test_2016_flickr.%) $(OUT)/settings/test
	zcat $< | awk 'NR <= $(TEST_PAIRS)' >$@

# Every checkpoint of an epoch translates the test set.
$(OUT)/translations: $(OUT)/run/finished $(OUT)/test.de $(OUT)/settings/translate
	@rm -rf $@.new; mkdir -p $@.new
	sed 's/[\\"]/\\&/g; s/.*/{"prompt":"&\\n"}/' $(OUT)/test.de >$(OUT)/prompts.jsonl
	for e in $$(seq $(EPOCHS)); do \
	  step=$$(ls -d $(OUT)/run/step-* | sort | sed -n "$${e}p"); \
	  $(call timed,translate-$$e) dt-generate -m "$$step" --prompts $(OUT)/prompts.jsonl \
	    -n $(MOST) --beams $(BEAMS) --stop $$'\n' -o $(OUT)/results.jsonl; \
	  sed -E 's/.*"text":"(.*)","tokens":.*/\1/; s/\\n.*//; s/\\(.)/\1/g' $(OUT)/results.jsonl \
	    >$@.new/epoch-$$e; \
	done
	@rm -rf $@; mv $@.new $@

$(OUT)/bleu.txt: $(OUT)/translations $(OUT)/test.en
	cp $(OUT)/test.de $(OUT)/translations/copy
	cd $(OUT)/translations && dt-eval -r ../test.en bleu copy epoch-* -o ../bleu.txt
	cd $(OUT)/translations && dt-eval -r ../test.en --json bleu copy epoch-* -o ../bleu.json

translate: $(OUT)/bleu.txt ## translate, and show the scores after each epoch
	@cat $<

.PHONY: translate
