# SPDX-License-Identifier: MIT
#
# From raw files to shards, on one machine or many:
#
#   make -f pipelines/corpus.mk -j 8 INPUTS='a.jsonl b.jsonl.gz' OUT=build/corpus
#   make -f pipelines/corpus.mk slurm TASKS=64 INPUTS=... OUT=...        job arrays of Slurm
#   make -f pipelines/corpus.mk kubernetes TASKS=64 IMAGE=... CLAIM=...  indexed Jobs, as files
#   share/tasks/corpus-tasks.py ray --tasks 64 INPUTS=... OUT=...        on Ray, or dask on Dask
#
#   INPUTS ──part 0──> clean/0.jsonl ─sign─> sign/0.sig ─┐            ┌─> shards/0 ─┐
#      ├─────part 1──> clean/1.jsonl ─sign─> sign/1.sig ─┼─match──────┼─> shards/1 ─┼─join─> data
#      └── ...                └──count─> counts/1 ────────┴─vocab──────┴─> ...       ┘
#
# The documents are always divided into CHUNKS parts, and machines make any of them: task I of TASKS
# makes chunks I, I + TASKS and so on. So data has the same bytes whatever the number of tasks. Each
# part is recorded in OUT/ledger, and the summary names those that failed: the same command makes
# them again, and nothing that is done. Interrupting is safe at any time. A second make in the same
# OUT is refused, but tasks share it; they keep the settings that it has.
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
# seconds to wait for another make in OUT to end
WAIT        ?= 10
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
.SUFFIXES:
.DEFAULT_GOAL := summary
B           ?= build
export PATH := $(abspath $B/bin):$(PATH)
here        := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
this        := $(abspath $(lastword $(MAKEFILE_LIST)))
$(if $(filter-out near none,$(DEDUP)),$(error DEDUP='$(DEDUP)': near or none))
$(if $(filter-out stop skip quarantine,$(ON_ERROR)),$(error ON_ERROR='$(ON_ERROR)': stop, skip or quarantine))
wrong := $(shell while IFS== read -r name value; do \
           [[ $$value =~ ^[1-9][0-9]{0,5}$$ ]] || echo "$$name='$$value': a number from 1 to 999999"; \
         done < <(printf '%s\n' 'CHUNKS=$(CHUNKS)' 'THREADS=$(THREADS)' 'TASKS=$(TASKS)' 'JOBS=$(JOBS)'); \
         [[ '$(TASK)' =~ ^(0|[1-9][0-9]{0,5})/([1-9][0-9]{0,5})$$ ]] && ((BASH_REMATCH[1] < BASH_REMATCH[2])) || \
           echo "TASK='$(TASK)': I/N, task I of N, counted from 0")
$(if $(wrong),$(error $(wrong)))
$(if $(word 2,$(OUT)),$(error OUT='$(OUT)': make takes no blanks in a name))

goals  := $(or $(MAKECMDGOALS),summary)
shared := $(if $(filter-out first second,$(goals)),,yes)
ifneq ($(if $(locked)$(findstring n,$(firstword -$(MAKEFLAGS))),,$(filter-out ledger slurm kubernetes,$(goals))),)
# The lock is held by make and all that it starts.
$(goals): with-lock ; @:
with-lock:
	+@mkdir -p '$(OUT)' || exit 1; exec 9>>'$(OUT)/lock'; status=0; \
	flock -E 75 -w $(WAIT) $(if $(shared),-s,-x) 9 2>/dev/null || status=$$?; \
	if [ $$status -eq 75 ]; then \
	  echo "$(OUT) is in use, by $$(cat '$(OUT)/lock'): wait for its end, or end it" >&2; exit 1; \
	fi; \
	echo "make, process $$PPID on $$(hostname) since $$(date -u +%FT%TZ)" >'$(OUT)/lock'; \
	$(MAKE) --no-print-directory -f $(this) locked=yes $(goals)
.PHONY: $(goals) with-lock
else

names := $(foreach i,$(INPUTS),$(or $(wildcard $i),$i))
missing := $(firstword $(foreach i,$(names),$(if $(wildcard $i),,$i)))
$(if $(missing),$(error INPUTS: $(missing) does not exist; make takes no blanks in a name))
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
differs := $(strip $(foreach s,$(if $(shared),$(wildcard $(settings))),$(if $(call changed,$s,$(call setting,$(notdir $s))),$s)))
$(if $(differs),$(error $(firstword $(differs)) has other settings, which `make ... settings` replaces for all tasks))

# --- chunks -------------------------------------------------------------------------------------
last   := $(shell echo $$(($(CHUNKS) - 1)))
chunks := $(shell seq 0 $(last))
mine   := $(shell seq $(subst /, ,$(TASK)) $(last))
# In a command, which the system limits to 128 KiB, bash lists the chunks.
all    := {0..$(last)}

# STAGE.I of each part whose record does not say that it is done: one that was killed after its output
# was complete is made again, for its record.
undone := $(shell grep -L '"state": "done"' $(OUT)/ledger/*.json 2>/dev/null | \
            sed -nE 's,.*/([^/]+)-0*([0-9]+)-of-0*($(CHUNKS)|1)\.json$$,\1.\2,p')
again   = $(if $(filter $1,$(undone)),FORCE)

# $(call part,STAGE,I/N,OPTIONS,COMMAND): runs it with the ledger.
part = dt-part run --ledger $(OUT)/ledger --stage $1 --part $2 $3 -- \
	  bash -eu -o pipefail -c '$(subst ','\'',$4)'

bad  = $(if $(filter quarantine,$(ON_ERROR)),quarantine=$(OUT)/bad/$*.jsonl,$(ON_ERROR))
# Statistics of pages; a command of the user may have none.
pages = $(if $(filter file,$(origin EXTRACT)),$(addprefix --stats ,$(if $(EXTRACT),$(@:.jsonl=.pages.json))))
read = $(if $(EXTRACT),$(strip $(EXTRACT) $(pages)) --part $*/$(CHUNKS) --on-error $(bad) $(INPUTS) | dt-clean,\
	  dt-clean --part $*/$(CHUNKS) --on-error $(bad))

$(OUT)/clean/%.jsonl: $(INPUTS) $(OUT)/settings/clean $$(call again,clean.$$*)
	@mkdir -p $(@D) $(OUT)/bad
	$(call part,clean,$*/$(CHUNKS),--produces $@ $(strip --stats $(@:.jsonl=.json) $(pages)),$(read) -q -j $(THREADS) \
	  --allow-empty $(CLEAN_FLAGS) --stats $(@:.jsonl=.json) -o $@ $(if $(EXTRACT),,$(INPUTS)))

$(OUT)/sign/%.sig: $(OUT)/clean/%.jsonl $(OUT)/settings/match $$(call again,sign.$$*)
	@mkdir -p $(@D)
	$(call part,sign,$*/$(CHUNKS),--produces $@,dt-dedup sign -q -j $(THREADS) --allow-empty $(DEDUP_FLAGS) -o $@ $<)

# A list for each chunk; all are made again if one is missing.
lists := $(chunks:%=$(OUT)/drop/%.drop)
$(OUT)/drop/matched: $(chunks:%=$(OUT)/sign/%.sig) $(call again,match.0) \
  $(if $(filter-out $(wildcard $(lists)),$(lists)),FORCE)
	@mkdir -p $(@D)
	$(call part,match,0/1,--produces $@,rm -f $(@D)/*.drop && dt-dedup match -q -o $(@D) $(OUT)/sign/$(all).sig && \
	  echo $(CHUNKS) >$@)

ifneq ($(TOKENIZER),)
$(OUT)/tokenizer.json: $(TOKENIZER) $(OUT)/settings/vocab
	cp '$<' $@.new && mv $@.new $@
else
counted := yes
# What decides the pieces; the rest of VOCAB_FLAGS is for the tokenizer, and --count refuses it.
count_flags := $(shell set +eu -- $(VOCAB_FLAGS); while [ "$$1" ]; do case $$1 in \
    (--special|--alphabet|--min-frequency) shift ;; \
    (--special=*|--alphabet=*|--min-frequency=*) ;; \
    (*) printf '%q ' "$$1" ;; esac; shift; done)
$(OUT)/counts/%.counts: $(OUT)/clean/%.jsonl $(OUT)/settings/vocab $$(call again,count.$$*)
	@mkdir -p $(@D)
	$(call part,count,$*/$(CHUNKS),--produces $@,dt-vocab -q -j $(THREADS) $(count_flags) --count -o $@ $<)

$(OUT)/tokenizer.json: $(chunks:%=$(OUT)/counts/%.counts) $(call again,vocab.0)
	$(call part,vocab,0/1,--produces $@,dt-vocab -q $(VOCAB_FLAGS) -s $(VOCAB_SIZE) -o $@ --counts $(OUT)/counts/$(all).counts)
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
	$(call part,join,0/1,--produces $(@D),dt-shard -o $(@D) --join $(OUT)/shards/$(all))

# --- what to make -------------------------------------------------------------------------------
first:  $(mine:%=$(OUT)/clean/%.jsonl) $(if $(matched),$(mine:%=$(OUT)/sign/%.sig)) \
        $(if $(counted),$(mine:%=$(OUT)/counts/%.counts)) ## the chunks of TASK: clean, sign, count
middle: $(matched) $(OUT)/tokenizer.json                                          ## find duplicates, train the tokenizer
second: $(mine:%=$(OUT)/shards/%/index.json)                                      ## the chunks of TASK: shards

stages := clean/$(CHUNKS) $(if $(matched),sign/$(CHUNKS) match/1) $(if $(counted),count/$(CHUNKS) vocab/1) shard/$(CHUNKS) join/1

summary: $(OUT)/data/index.json ## all of it, and a table
	@dt-part list $(OUT)/ledger $(stages)

ledger: ## what is done, failed and missing
	@dt-part list $(OUT)/ledger $(stages)

settings: $(settings) ## change the settings of OUT, for tasks that follow

remove: ## remove all that was made
	rm -rf $(OUT)

# --- clusters -----------------------------------------------------------------------------------
# The settings of this call, for the tasks.
passed := INPUTS OUT CHUNKS EXTRACT CLEAN_FLAGS ON_ERROR DEDUP DEDUP_FLAGS TOKENIZER VOCAB_SIZE VOCAB_FLAGS \
          SHARD_FLAGS THREADS B
quoted  = '$(subst ','\'',$($1))'
task    = env -u MAKEFLAGS -u MAKELEVEL make -C $(call quoted,CURDIR) -f $(this) --no-print-directory -k -j $(JOBS) \
          $(foreach v,$(passed),$v=$(call quoted,$v))

# Four jobs, each after the one before; the middle one and the last are not arrays.
slurm: export TASK_COMMAND = exec $(task) "$$@"
slurm: ## submit job arrays with dependencies
	+@$(MAKE) --no-print-directory -f $(this) settings
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

kubernetes: ## write indexed Jobs, one file for each phase, and a script that runs them
	+@$(MAKE) --no-print-directory -f $(this) settings
	@$(here)/../share/kubernetes/corpus-jobs $(call quoted,OUT) $(call quoted,NAME) $(TASKS) \
	  $(call quoted,IMAGE) $(call quoted,CLAIM) $(call quoted,MOUNT) \
	  '$(subst ','\'',$(task))'

.PHONY: first middle second summary ledger settings remove slurm kubernetes
endif
