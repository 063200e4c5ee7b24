# SPDX-License-Identifier: MIT
#
# From raw files to shards, on one machine or many:
#
#   make -f pipelines/corpus.mk -j 8 INPUTS='a.jsonl b.jsonl.gz' OUT=build/corpus
#   make -f pipelines/corpus.mk slurm TASKS=64 INPUTS=... OUT=...        job arrays of Slurm
#   make -f pipelines/corpus.mk kubernetes TASKS=64 IMAGE=... CLAIM=...  indexed Jobs, as files
#
#   INPUTS ──part 0──> clean/0.jsonl ─sign─> sign/0.sig ─┐            ┌─> shards/0 ─┐
#      ├─────part 1──> clean/1.jsonl ─sign─> sign/1.sig ─┼─match──────┼─> shards/1 ─┼─join─> data
#      └── ...                └──count─> counts/1 ────────┴─vocab──────┴─> ...       ┘
#
# The documents are always divided into CHUNKS parts, and machines make any of them: task I of TASKS
# makes chunks I, I + TASKS and so on. So data has the same bytes whatever the number of tasks. Each
# part is recorded in OUT/ledger, and the summary names those that failed: the same command makes
# them again, and nothing that is done. Interrupting is safe at any time.
#
# Settings, on the command line:
INPUTS      ?= $(error set INPUTS to the files to read)
OUT         ?= build/corpus
CHUNKS      ?= 64
# a command that writes documents for --part I/N FILE ...; default: dt-extract -q for WARC files
EXTRACT     ?= $(if $(warc),dt-extract -q)
CLEAN_FLAGS ?= --normalize nfc
# bad lines: stop, skip, or quarantine, in OUT/bad
ON_ERROR    ?= quarantine
# near: drop near duplicates; none
DEDUP       ?= near
DEDUP_FLAGS ?=
# a tokenizer to use instead of training one on the clean documents
TOKENIZER   ?=
VOCAB_SIZE  ?= 32000
VOCAB_FLAGS ?=
SHARD_FLAGS ?= --split val=0.01
# of each command; -j of make runs several commands
THREADS     ?= 1
# I/N: the chunks that a task makes
TASK        ?= 0/1
# --- clusters: tasks, commands at a time in each, and what the cluster needs
TASKS       ?= 1
JOBS        ?= 1
SBATCH      ?= sbatch
SLURM_FLAGS ?=
IMAGE       ?= $(error set IMAGE to a container image with dt and make)
CLAIM       ?= $(error set CLAIM to the PersistentVolumeClaim with INPUTS and OUT)
MOUNT       ?= $(CURDIR)
NAME        ?= corpus

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := summary
B           ?= build
export PATH := $(abspath $B/bin):$(PATH)
here        := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
this        := $(abspath $(lastword $(MAKEFILE_LIST)))
$(if $(filter-out near none,$(DEDUP)),$(error DEDUP='$(DEDUP)': near or none))
$(if $(filter-out stop skip quarantine,$(ON_ERROR)),$(error ON_ERROR='$(ON_ERROR)': stop, skip or quarantine))

names := $(foreach i,$(INPUTS),$(or $(wildcard $i),$i))
warc  := $(filter %.warc $(addprefix %.warc.,gz zst xz bz2 lz4),$(names))
other := $(firstword $(filter-out $(warc),$(names)))
$(if $(and $(filter file,$(origin EXTRACT)),$(warc),$(other)),$(error INPUTS has WARC files, as \
  $(firstword $(warc)), and others, as $(other): make a corpus of each, or set EXTRACT to a command that reads both))

# Names, sizes and times of the inputs, so that one that was added, removed or replaced is noticed.
inputs_hash := $(firstword $(shell stat -L -c '%n %s %.Y' -- $(INPUTS) 2>/dev/null | sha256sum))

SETTINGS_clean = $(strip $(INPUTS) $(inputs_hash) $(CHUNKS) $(EXTRACT) $(CLEAN_FLAGS) $(ON_ERROR))
SETTINGS_match = $(strip $(DEDUP) $(DEDUP_FLAGS))
SETTINGS_vocab = $(strip $(TOKENIZER) $(VOCAB_SIZE) $(VOCAB_FLAGS))
SETTINGS_shard = $(strip $(SHARD_FLAGS))
include $(here)/settings.mk

# --- chunks -------------------------------------------------------------------------------------
chunks := $(shell seq 0 $$(($(CHUNKS) - 1)))
mine   := $(shell seq $(firstword $(subst /, ,$(TASK))) $(lastword $(subst /, ,$(TASK))) $$(($(CHUNKS) - 1)))
$(if $(chunks),,$(error CHUNKS='$(CHUNKS)': a number above 0))

# STAGE.I of each part whose record does not say that it is done: one that was killed after its output
# was complete is made again, for its record.
undone := $(shell grep -L '"state": "done"' $(OUT)/ledger/*.json 2>/dev/null | \
            sed -nE 's,.*/([^/]+)-0*([0-9]+)-of-0*($(CHUNKS)|1)\.json$$,\1.\2,p')
again   = $(if $(filter $1,$(undone)),FORCE)

# $(call part,STAGE,I/N,OPTIONS,COMMAND): runs it with the ledger.
part = dt-part run --ledger $(OUT)/ledger --stage $1 --part $2 $3 -- \
	  bash -eu -o pipefail -c '$(subst ','\'',$4)'

bad  = $(if $(filter quarantine,$(ON_ERROR)),quarantine=$(OUT)/bad/$*.jsonl,$(ON_ERROR))
read = $(if $(EXTRACT),$(EXTRACT) --part $*/$(CHUNKS) --on-error $(bad) $(INPUTS) | dt-clean,\
	  dt-clean --part $*/$(CHUNKS) --on-error $(bad))

$(OUT)/clean/%.jsonl: $(INPUTS) $(OUT)/settings/clean $$(call again,clean.$$*)
	@mkdir -p $(@D) $(OUT)/bad
	$(call part,clean,$*/$(CHUNKS),--produces $@ --stats $(@:.jsonl=.json),$(read) -q -j $(THREADS) \
	  --allow-empty $(CLEAN_FLAGS) --stats $(@:.jsonl=.json) -o $@ $(if $(EXTRACT),,$(INPUTS)))

# A part without documents has an empty file instead of signatures.
$(OUT)/sign/%.sig: $(OUT)/clean/%.jsonl $(OUT)/settings/match $$(call again,sign.$$*)
	@mkdir -p $(@D)
	$(call part,sign,$*/$(CHUNKS),--produces $@,if [ -s $< ]; then \
	  dt-dedup sign -q -j $(THREADS) $(DEDUP_FLAGS) -o $@ $<; else : >$@; fi)

# A list for each chunk, empty for one without documents; all are made again if one is missing.
lists := $(chunks:%=$(OUT)/drop/%.drop)
$(OUT)/drop/matched: $(chunks:%=$(OUT)/sign/%.sig) $(call again,match.0) \
  $(if $(filter-out $(wildcard $(lists)),$(lists)),FORCE)
	@mkdir -p $(@D) && rm -f $(@D)/*.drop
	$(call part,match,0/1,--produces $@,files=(); \
	  for sig in $(filter %.sig,$^); do [ ! -s $$sig ] || files+=($$sig); done; \
	  [ $${#files[@]} -eq 0 ] || dt-dedup match -q -o $(@D) $${files[@]}; \
	  for i in $(chunks); do [ -e $(@D)/$$i.drop ] || echo end 0 of 0 >$(@D)/$$i.drop; done; echo $${#files[@]} >$@)

ifneq ($(TOKENIZER),)
$(OUT)/tokenizer.json: $(TOKENIZER) $(OUT)/settings/vocab
	cp '$<' $@.new && mv $@.new $@
else
counted := yes
$(OUT)/counts/%.counts: $(OUT)/clean/%.jsonl $(OUT)/settings/vocab $$(call again,count.$$*)
	@mkdir -p $(@D)
	$(call part,count,$*/$(CHUNKS),--produces $@,dt-vocab -q -j $(THREADS) $(VOCAB_FLAGS) --count -o $@ $<)

$(OUT)/tokenizer.json: $(chunks:%=$(OUT)/counts/%.counts) $(call again,vocab.0)
	$(call part,vocab,0/1,--produces $@,dt-vocab -q $(VOCAB_FLAGS) -s $(VOCAB_SIZE) -o $@ --counts \
	  $(chunks:%=$(OUT)/counts/%.counts))
endif

matched := $(if $(filter near,$(DEDUP)),$(OUT)/drop/matched)
drop     = $(if $(matched),--drop $(OUT)/drop/$*.drop)

# The index is the file that make compares; dt-shard replaces the directory as a whole.
$(OUT)/shards/%/index.json: $(OUT)/clean/%.jsonl $(matched) $(OUT)/tokenizer.json $(OUT)/settings/shard \
  $(OUT)/settings/match $$(call again,shard.$$*)
	$(call part,shard,$*/$(CHUNKS),--produces $(@D),dt-clean -q -j $(THREADS) --allow-empty $(drop) $< | \
	  dt-tokenize -q -j $(THREADS) --allow-empty -t $(OUT)/tokenizer.json | \
	  dt-shard -j $(THREADS) --allow-empty $(SHARD_FLAGS) -o $(@D))

$(OUT)/data/index.json: $(chunks:%=$(OUT)/shards/%/index.json) $(call again,join.0)
	$(call part,join,0/1,--produces $(@D),dt-shard -o $(@D) --join $(chunks:%=$(OUT)/shards/%))

# --- what to make -------------------------------------------------------------------------------
first:  $(mine:%=$(OUT)/clean/%.jsonl) $(if $(matched),$(mine:%=$(OUT)/sign/%.sig)) \
        $(if $(counted),$(mine:%=$(OUT)/counts/%.counts)) ## the chunks of TASK: clean, sign, count
middle: $(matched) $(OUT)/tokenizer.json                                          ## find duplicates, train the tokenizer
second: $(mine:%=$(OUT)/shards/%/index.json)                                      ## the chunks of TASK: shards

stages := clean $(if $(matched),sign match) $(if $(counted),count vocab) shard join

summary: $(OUT)/data/index.json ## all of it, and a table
	@dt-part list $(OUT)/ledger $(stages)

ledger: ## what is done, failed and missing
	@dt-part list $(OUT)/ledger $(stages)

remove: ## remove all that was made
	rm -rf $(OUT)

# --- clusters -----------------------------------------------------------------------------------
# The settings of this call, for the tasks.
passed := INPUTS OUT CHUNKS EXTRACT CLEAN_FLAGS ON_ERROR DEDUP DEDUP_FLAGS TOKENIZER VOCAB_SIZE VOCAB_FLAGS \
          SHARD_FLAGS THREADS B
quoted  = '$(subst ','\'',$($1))'
task    = make -C $(call quoted,CURDIR) -f $(this) --no-print-directory -k -j $(JOBS) \
          $(foreach v,$(passed),$v=$(call quoted,$v))

# Four jobs, each after the one before; the middle one and the last are not arrays.
slurm: export TASK_COMMAND = exec $(task) "$$@"
slurm: $(settings) ## submit job arrays with dependencies
	@mkdir -p $(OUT)/logs; printf '%s\n' '#!/bin/bash' "$$TASK_COMMAND" >$(OUT)/logs/task
	@submit() { \
	  $(SBATCH) --parsable --kill-on-invalid-dep=yes --output=$(OUT)/logs/%x-%A-%a.log $(SLURM_FLAGS) "$$@"; \
	}; \
	task='bash $(abspath $(OUT))/logs/task'; of='TASK=$$SLURM_ARRAY_TASK_ID/$(TASKS)'; \
	array=--array=0-$$(($(TASKS) - 1)); \
	one=$$(submit --job-name=$(NAME)-first $$array --wrap "$$task first $$of"); \
	two=$$(submit --job-name=$(NAME)-middle --dependency=afterok:$$one --wrap "$$task middle"); \
	three=$$(submit --job-name=$(NAME)-second --dependency=afterok:$$two $$array --wrap "$$task second $$of"); \
	four=$$(submit --job-name=$(NAME)-summary --dependency=afterok:$$three --wrap "$$task summary"); \
	echo "submitted jobs $$one, $$two, $$three and $$four; make ... ledger shows what is done"

kubernetes: $(settings) ## write indexed Jobs, one file for each phase, and say how to run them
	@$(here)/../share/kubernetes/corpus-jobs $(call quoted,OUT) $(call quoted,NAME) $(TASKS) \
	  $(call quoted,IMAGE) $(call quoted,CLAIM) $(call quoted,MOUNT) \
	  '$(subst ','\'',$(task))'

.PHONY: first middle second summary ledger remove slurm kubernetes
