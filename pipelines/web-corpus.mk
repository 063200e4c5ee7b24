# SPDX-License-Identifier: MIT
#
# From web pages to shards:
#
#   make corpus                              HTML documentation of Debian, in eight languages
#   make corpus WARC='a.warc.gz b.warc.gz'   your WARC files
#   make -f pipelines/web-corpus.mk compare  the pages of one file also by datatrove
#
# It writes the pages of Debian packages, which apt-get downloads, to WARC files, runs corpus.mk on
# them, and prints a table: pages, documents that each step kept, tokens, seconds. Settings of
# corpus.mk may be given, too.
WARC        ?=
OUT         ?= build/web-corpus
PACKAGES    ?= python3.11-doc python3.13-doc postgresql-doc-15 postgresql-doc-17 git-doc debian-policy \
               debian-reference-de debian-reference-fr debian-reference-ja debian-reference-zh-cn \
               developers-reference-ru aptitude-doc-ru debian-faq-ko maint-guide-vi libreoffice-help-hi
CLEAN_FLAGS ?= --normalize nfc --identify --rules fineweb2
CHUNKS      ?= 16
VOCAB_SIZE  ?= 16384
THREADS     ?= $(shell nproc)
export CLEAN_FLAGS CHUNKS VOCAB_SIZE THREADS

$(if $(filter 1,$(words $(OUT))),,$(error OUT='$(OUT)': a directory is needed; make takes no blanks in a name))

# of compare: Python with datatrove, and a model of fastText such as lid.176.ftz
PYTHON      ?= build/oracles/bin/python
MODEL       ?=

here := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
B    ?= build

# A dry run has no inputs yet.
dry := $(if $(findstring n,$(firstword -$(MAKEFLAGS))),echo)

corpus: ## pages to shards, and a table
	$(if $(WARC),,@$(here)/packages-to-warc $(OUT)/warc $(PACKAGES))
	@$(dry) $(MAKE) --no-print-directory -f $(here)/corpus.mk OUT='$(OUT)' INPUTS='$(or $(WARC),$(OUT)/warc/*.warc.gz)' \
	  '$(OUT)/data/index.json'
	@PATH="$(abspath $B/bin):$$PATH" $(here)/corpus-table '$(OUT)'

compare: ## the same pages by datatrove with trafilatura: seconds, what both keep, languages
	@PATH="$(abspath $B/bin):$$PATH" $(PYTHON) $(here)/../share/bench/extract-vs-datatrove.py --rounds 1 \
	  $(if $(MODEL),--identifier '$(MODEL)') '$(or $(firstword $(WARC)),$(OUT)/warc/git-doc.warc.gz)'

remove: ## remove all that was made
	rm -rf '$(OUT)'

.PHONY: corpus compare remove
