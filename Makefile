# dt: raw text to a trained, measured language model.
# SPDX-License-Identifier: MIT
#
#   make          build the programs and engines into build/
#   make help     list the targets
#   make V=1      show whole command lines

CC       ?= cc
CFLAGS   ?= -O2 -g
PREFIX   ?= /usr/local
DESTDIR  ?=
OBJCOPY  ?= objcopy
PYTHON   ?= python3
JOBS     ?= $(shell nproc 2>/dev/null || echo 1)
-include config.mk

# A directory with gpt2.vocab.json and real corpora; tests that need it are skipped without.
TESTDATA ?=

# STATIC=1: programs that need no file of the system, with engines and some plug-ins in them.
STATIC ?=
ifneq ($(filter-out 0 1,$(STATIC)),)
$(error STATIC is '$(STATIC)': 1 links programs statically)
endif
STATIC_BUILD := $(filter 1,$(STATIC))

B := build$(STATIC_BUILD:1=/static)
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(JOBS) # a -j of the command line wins
endif

say = @$(if $V,,echo '  $1  $@' &&)
# compile COMMAND: keeps its warnings beside the object, for check-warnings.
compile = $1 2>$@.warnings; status=$$?; cat $@.warnings >&2; exit $$status

# Initializers leave out fields that are 0.
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wvla -Wundef -Wno-missing-field-initializers -Werror=switch
# As Debian builds its packages; objects do not name the directory that they were built in.
HARDENED := -ffile-prefix-map='$(CURDIR)'=. -fstack-protector-strong -Wformat -Werror=format-security \
            $(if $(or $(findstring _FORTIFY_SOURCE,$(CFLAGS)),$(findstring -fsanitize,$(CFLAGS))),,$(if $(filter -O1 -O2 -O3,$(CFLAGS)),-D_FORTIFY_SOURCE=2))
# Target of the compiler, or the system if a compiler is yet to be installed.
ifneq ($(findstring linux,$(shell $(CC) -dumpmachine 2>/dev/null || uname -s | tr A-Z a-z)),)
override LDFLAGS += -Wl,-z,relro,-z,now
endif
# No contraction: results must agree between machines that have FMA and compilers that use it.
DT_CFLAGS := -std=c11 -D_GNU_SOURCE -Ilib -I$B/include -fPIC -fno-math-errno -ffp-contract=off $(HARDENED) $(WARNINGS) $(STATIC_BUILD:1=-DDT_STATIC)
LIBS      := -lzstd -lz -ljson-c -lyaml -lxxhash -lnettle -lm -ldl -lpthread

MODULES  := base math encoding options hash unicode json template language http remote io document warc extract settings experiment hub track plot report dedup repair clean synth pretokenize gguf steps token tokenizer-files vocab \
            shard foreign parts api device doctor comm elastic model formats chat optim prefer parallel checkpoint train eval tasks plan verify bench
LIB_SRC  := $(foreach m,$(MODULES),$(wildcard lib/$m/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$B/obj/%.o)
LIBDT    := $B/lib/libdt.a
# The library for other programs: functions of lib/api/dt.h.
SHARED   := $B/lib/libdt.so.0
TOOLS    := $(patsubst tools/%.c,%,$(wildcard tools/dt.c tools/dt-*.c))
PROGRAMS := $(TOOLS:%=$B/bin/%)

# --- engines: one plug-in per instruction set -----------------------------------------------------
# Target of the compiler, or the machine if a compiler is yet to be installed.
SYSROOT := $(patsubst --sysroot=%,%,$(filter --sysroot=%,$(CC)))
ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null || uname -m)))
CPU_SRC := $(wildcard lib/device/cpu/*.c lib/device/cpu/*/*.c)
ifeq ($(ARCH),x86_64)
CPU_ISAS   := generic avx2 avx512
ISA_avx2   := -march=x86-64-v3
ISA_avx512 := -march=x86-64-v4 -mprefer-vector-width=512
LIBS_avx512 := -ldnnl # products of bf16
else
CPU_ISAS := generic
endif
# Without trapping math, branches on comparisons of floats vectorize; values are the same.
ENGINE_CFLAGS := $(DT_CFLAGS) -fno-trapping-math -fopenmp -fvisibility=hidden -O3
ENGINES := $(if $(CPU_SRC),$(CPU_ISAS:%=$B/lib/dt/cpu-%.so))

# --- packages that make check also installs, unless MPI=0, CURL=0 or DATA=0 -----------------------
DEPS_PLUGINS := $(if $(filter 0,$(MPI)),,deps-mpi) $(if $(filter 0,$(CURL)),,deps-track) \
                $(if $(filter 0,$(DATA)),,deps-data)

# --- the MPI transport: a plug-in, built if MPI is installed; MPI=0 leaves it out -----------------
MPICC   ?= mpicc
MPI     ?= $(if $(STATIC_BUILD),0,$(if $(shell command -v $(MPICC) 2>/dev/null),1,0))
MPI_SRC := $(wildcard lib/comm/mpi/*.c)
ifeq ($(MPI),1)
ENGINES += $B/lib/dt/mpi.so
endif

# --- authentication of the TCP transport: a plug-in -----------------------------------------------
CRYPTO_SRC := $(wildcard lib/comm/openssl/*.c)
ENGINES += $B/lib/dt/crypto.so

# --- the cuda engine: a plug-in, built if nvcc is installed; CUDA=0 leaves it out -----------------
NVCC      ?= nvcc
CUDA      ?= $(if $(STATIC_BUILD),0,$(if $(shell command -v $(NVCC) 2>/dev/null),1,0))
CUDA_HOME ?= $(patsubst %/bin/,%,$(dir $(realpath $(shell command -v $(NVCC) 2>/dev/null))))
CUDA_LIB  := $(CUDA_HOME)/lib64
# Machine code for each of these, as far as this nvcc knows it, and PTX of the first for all others.
CUDA_ARCHITECTURES ?= $(foreach a,80 86 89 90a 100 120,$(if $(filter sm_$(a:a=),$(NVCC_KNOWS)),$a))
NVCC_KNOWS = $(eval NVCC_KNOWS := $$(shell $(NVCC) --list-gpu-code 2>/dev/null))$(NVCC_KNOWS)
SM_90A     := -gencode=arch=compute_90a,code=sm_90a
GENCODE     = $(foreach a,$(CUDA_ARCHITECTURES),-gencode=arch=compute_$a,code=sm_$a) \
              $(foreach a,$(firstword $(CUDA_ARCHITECTURES)),-gencode=arch=compute_$a,code=compute_$a)
NVCC_FLAGS  = -std=c++17 -O3 -Ilib $(GENCODE) -Werror all-warnings \
              -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-missing-field-initializers,-Werror
ifeq ($(CUDA),1)
ENGINES += $B/lib/dt/cuda.so
endif

# --- CUDA kernels, whose sources the tests run on the processor: tests/cuda/emulator.h ------------
CUDA_SRC      := $(wildcard lib/device/cuda/*.cu lib/device/cuda/*/*.cu lib/device/cuda/*/*.c)
EMULATOR_SRC  := $(filter-out tests/cuda/test-%,$(wildcard tests/cuda/*.cpp))
EMULATED_OBJ  := $(patsubst %,$B/emulated/%.o,$(CUDA_SRC) $(EMULATOR_SRC))
EMULATED      := -Ilib -Itests -Itests/cuda/toolkit -fPIC -fvisibility=hidden
NCCL_EMULATED := $B/tests/cuda/nccl/libnccl.so.2
CUDA_EMULATED := $B/lib/dt/cuda-emulated.so $(NCCL_EMULATED)
# Every load and store of a kernel calls tests/cuda/traffic, with the width of the source.
TRAFFIC_OBJ   := $(patsubst %,$B/traffic/%.o,$(filter %.cu,$(CUDA_SRC)) tests/cuda/test-traffic.cpp)
TRAFFIC_FLAGS := -O1 -fno-tree-sra -fsanitize=thread --param tsan-instrument-func-entry-exit=0
CXX_WARNINGS  := $(filter-out -Wstrict-prototypes -Wmissing-prototypes,$(WARNINGS))
# FMA instructions instead of calls of fmaf; without contraction results keep their bits.
EMULATED_ISA  := $(if $(and $(filter x86_64,$(ARCH)),$(shell grep -wm 1 fma /proc/cpuinfo)),-mavx2 -mfma)
EMULATED_CXXFLAGS := -std=c++17 -D_GNU_SOURCE $(EMULATED) $(EMULATED_ISA) -ffp-contract=off $(CXX_WARNINGS) -Wno-unknown-pragmas

# --- plug-ins over libraries, each built if the library is installed; CURL=0 leaves out the HTTP ---
# --- client, DATA=0 the others, which programs of documents load ----------------------------------
# plugin NAME,SOURCES,HEADER,LIBRARY[,FLAGS[,CONDITION]]: the condition is of the preprocessor
define plugin
ifeq ($$(shell printf '\043include <$3>\n\043if !($(or $6,1))\n\043error\n\043endif\n' | $$(CC) $5 -E -x c - >/dev/null 2>&1 && echo 1),1)
ENGINES += $B/lib/dt/$1.so
endif
SOURCES_$1 := $2
$(patsubst %.c,$B/obj/%.o,$(filter %.c,$2)): DT_CFLAGS += $5
$B/lib/dt/$1.so: $2 $$(LIBDT) $B/flags
	@mkdir -p $$(@D)
	$$(call say,LD) $$(CC) $$(DT_CFLAGS) $5 -fvisibility=hidden $$(CFLAGS) $$(LDFLAGS) -shared $$(filter %.c,$$^) $$(LIBDT) -Wl,-z,defs -Wl,--as-needed $4 $$(LIBS) -o $$@
endef
ifneq ($(CURL),0)
$(eval $(call plugin,http,$(wildcard lib/http/curl/*.c) lib/http/http.h,curl/curl.h,-lcurl))
endif
ifneq ($(DATA),0)
$(eval $(call plugin,codec-gzip,lib/io/codecs/gzip.c lib/io/codec.h,isa-l/igzip_lib.h,-lisal))
$(eval $(call plugin,codec-xz,lib/io/codecs/xz.c lib/io/codec.h,lzma.h,-llzma,,LZMA_VERSION >= 50040002))
$(eval $(call plugin,codec-bzip2,lib/io/codecs/bzip2.c lib/io/codec.h,bzlib.h,-lbz2))
$(eval $(call plugin,codec-lz4,lib/io/codecs/lz4.c lib/io/codec.h,lz4frame.h,-llz4))
$(eval $(call plugin,html,lib/extract/libxml2/html.c lib/extract/html-parser.h,libxml/HTMLparser.h,-lxml2,-I$(SYSROOT)/usr/include/libxml2))
$(eval $(call plugin,charset,lib/extract/uchardet/charset.c lib/extract/charset-detector.h,uchardet/uchardet.h,-luchardet))
$(eval $(call plugin,brotli,lib/warc/brotli/brotli.c lib/warc/coding.h,brotli/decode.h,-lbrotlidec))
$(eval $(call plugin,icu,lib/language/icu/icu.c lib/language/icu.h,unicode/ubrk.h,-licuuc))
$(eval $(call plugin,suffixes,lib/dedup/divsufsort/suffixes.c lib/dedup/suffixes.h,divsufsort64.h,-ldivsufsort -ldivsufsort64))
endif

# --- STATIC=1: of each plug-in an object whose only global name is that of its table --------------
PLUGIN_KINDS   := brotli charset_detector codec crypto engine html_parser http icu suffixes transport
KIND_brotli           := brotli
KIND_charset_detector := charset
KIND_codec            := codec-xz codec-bzip2 codec-lz4
KIND_crypto           := crypto
KIND_engine           := $(CPU_ISAS:%=cpu-%)
KIND_html_parser      := html
PROGRAM_LIBS           = $(LIBDT) -Wl,--as-needed $(LIBS)
ifneq ($(STATIC_BUILD),)
ifneq ($(filter 1,$(MPI) $(CUDA)),)
$(error STATIC=1 goes without MPI=1 and CUDA=1: their libraries are shared)
endif
ENGINES   :=
SHARED    :=
GROUPS    := data
PROGRAM_LIBS = -s -static -Wl,--start-group $(LIBDT) $B/lib/libplugins.a $(LIBS) -lgomp -lcrypto -llzma -lbz2 -llz4 \
               -lbrotlidec -lbrotlicommon -lxml2 -licuuc -licudata -luchardet -lstdc++ -Wl,--end-group
# The linker warns that some names of hosts and all engines of other devices need shared libraries.
STATIC_LOG = 2>$B/obj/$(@F).log || { cat $B/obj/$(@F).log >&2; exit 1; }
endif

# --- files that are installed besides programs and engines ----------------------------------------
SHARE := $(patsubst share/%,%,$(shell find share -type f -not -path 'share/setup/*' -not -path 'share/packaging/*' -not -path 'share/results/*'))
MAN   := $(wildcard man/man*/*.[1-9])
DEST   = $(DESTDIR)$(PREFIX)
BASH_COMPLETIONS := share/bash-completion/completions
ZSH_COMPLETIONS  := share/zsh/site-functions
FISH_COMPLETIONS := share/fish/vendor_completions.d

# --- tests ----------------------------------------------------------------------------------------
UNIT_SRC := $(wildcard tests/*/test-*.c)
UNIT_CXX := $(wildcard tests/*/test-*.cpp)
UNITS    := $(UNIT_SRC:tests/%.c=$B/tests/%) $(UNIT_CXX:tests/%.cpp=$B/tests/%)
SLOW     := $(filter $B/tests/full/%,$(UNITS)) $(wildcard tests/full/*.bats)
UNITS    := $(filter-out $(SLOW),$(UNITS))
PRELOADS := $(patsubst %,$B/tests/%.so,comm/no-mac/crypto faults/fail-call tools/count-allocations \
              tools/log-durability tools/skip-sleeps)
# Only programs of tests can inject faults: base/fault.h.
FAULTS   := $B/obj/tests/fault-injection.o
FAULTY   := $B/tests/bin/dt-train
ANSWERS  := $B/tests/oracles/answers
BATS     := $(filter-out $(SLOW),$(wildcard tests/*/*.bats))
# Do the tests find planted mistakes, do fuzzers find others? Of 10 minutes these take 2.
APART    := tests/planted/% tests/fuzz/%
ASAN     := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined \
            -fno-omit-frame-pointer
# MSan does not see that the dynamic linker clears thread-local variables which it allocates later.
MSAN     := -O1 -g -fsanitize=memory -fno-omit-frame-pointer -ftls-model=initial-exec

# --- fuzzers: clang's libFuzzer, with AddressSanitizer and UBSan ----------------------------------
FUZZ_SRC     := $(wildcard tests/fuzz/fuzz-*.c)
FUZZERS      := $(FUZZ_SRC:tests/fuzz/%.c=$B/fuzz/%)
FUZZ_CFLAGS  := -std=c11 -D_GNU_SOURCE -Ilib -I$B/include -Itests/fuzz $(FUZZ_OPT) -fsanitize=address,undefined \
                -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FUZZ_OPT     ?= -O1 -g1
FUZZ_SECONDS ?= 60
FUZZ_FLAGS   ?=

all: $(PROGRAMS) $(ENGINES) $(SHARED) share ## build programs and engines into build/
ifeq ($(MAKELEVEL)$(MAKECMDGOALS),0)
	@echo 'dt is built: programs in $B/bin'
endif

# Programs in $B/bin and tests in $B/tests/MODULE find engines and share/ as installed programs do.
share:
	@mkdir -p $B/share $B/lib $B/tests
	@ln -sfn '$(CURDIR)/share' $B/share/dt
	@ln -sfn '$(CURDIR)/man' $B/share/man
	@ln -sfn ../lib $B/tests/lib && ln -sfn ../share $B/tests/share

# --- packages: make names missing ones, and installs them with DEPS=1 or where a goal is deps or ---
# --- deps-GROUP; DEPS=0 does not look for them ----------------------------------------------------
DEPS ?=
ifneq ($(filter-out 0 1,$(DEPS)),)
$(error DEPS is '$(DEPS)': 1 installs missing packages, 0 does not look for them, and without it make names them)
endif
DEPS_GOALS := $(filter deps deps-%,$(MAKECMDGOALS))
ifeq ($(DEPS)$(if $(DEPS_GOALS),-goals),0-goals)
$(error '$(DEPS_GOALS)' installs packages, which DEPS=0 forbids)
endif
INSTALL_PACKAGES := CC='$(CC)' LIBS='$(LIBS) -ldnnl -lcrypto' share/setup/install-packages $(if $(DEPS)$(DEPS_GOALS),,--ask)

# Prints nothing if no package is missing, and else names those of all GROUPS of the goal at once.
# Looks again only when Debian's packages, the compiler or PATH change.
DEPS_RULES := deps-build deps-demo deps-download deps-check deps-oracles deps-mpi deps-track deps-data deps-deb deps-container
ifneq ($(DEPS),0)
$(DEPS_RULES): deps-%:
	@wanted= key="$(CC) $(LIBS) $$PATH"; \
	for group in $(sort $* $(GROUPS)); do \
	  found='$B/deps/'$$group changed=; for file in /var/lib/dpkg/status share/setup/install-packages; do \
	    [ ! -e $$file ] || [ $$file -ot "$$found" ] || changed=1; done; \
	  [ -z "$$changed" ] && [ "$$(cat "$$found" 2>/dev/null)" = "$$key" ] || wanted="$$wanted $$group"; done; \
	[ -z "$$wanted" ] || { $(INSTALL_PACKAGES) $$wanted && mkdir -p '$B/deps' && \
	  for group in $$wanted; do echo "$$key" >'$B/deps/'$$group; done; }
endif

demo pretokenize mlm: GROUPS := demo
tinystories: GROUPS := demo download
corpus: GROUPS := data
deb: GROUPS := deb mpi track data
check: GROUPS := check demo download $(DEPS_PLUGINS:deps-%=%)

$(filter-out deps-build deps-oracles,$(DEPS_RULES)): | deps-build # whose compiler they use

deps: ## install the packages that building, the demo and the tests need
	@$(INSTALL_PACKAGES) build demo download check mpi track data

# Rewritten when the commit changes; then only version.o is compiled.
$B/include/dt-version.h: always
	@mkdir -p $(@D)
	@echo "#define DT_VERSION \"$$(share/setup/version)\"" >$@.new
	@echo "#define DT_COMMIT \"$$(share/setup/version --commit)\"" >>$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$B/obj/lib/base/version.o $B/fuzz/lib/base/version.o: $B/include/dt-version.h

# recorded FILE,VARIABLE,ALWAYS: the file has the flags; where they change it is written, and what
# depends on it is compiled again.
define recorded
ifneq ($$(strip $$(file <$1)),$$(strip $$($2)))
$1: $3
endif
$1:
	@mkdir -p $$(@D) && printf '%s\n' '$$(subst ','\'',$$($2))' >$$@
endef
BUILD_FLAGS := $(subst -I$B/include,,$(CC) $(CFLAGS) $(LDFLAGS) $(ENGINE_CFLAGS) $(ISA_avx2) $(ISA_avx512) $(NVCC) \
               $(CXX) $(EMULATED_CXXFLAGS) $(KERNEL_CFLAGS) $(EMULATOR_CFLAGS) $(TRAFFIC_FLAGS) \
               $(if $(filter-out file,$(origin CUDA_ARCHITECTURES)),$(CUDA_ARCHITECTURES)))
FUZZ_FLAGS_OF_BUILD := $(subst -I$B/include,,$(FUZZ_CFLAGS))
# Tests set it: they run make without the flags of the build, which must stay as it is.
KEEP_FLAGS  ?=
$(eval $(call recorded,$B/flags,BUILD_FLAGS,$(if $(KEEP_FLAGS),,always)))
$(eval $(call recorded,$B/fuzz/flags,FUZZ_FLAGS_OF_BUILD,always))

$B/obj/%.o: %.c $B/flags | deps-build
	@mkdir -p $(@D)
	$(call say,CC) $(call compile,$(CC) $(DT_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@)

# The library has the text scanners and the hash once per instruction set.
$B/obj/%-avx2.o: DT_CFLAGS += $(ISA_avx2)
$B/obj/%-avx512.o: DT_CFLAGS += $(ISA_avx512)

$(LIBDT): $(LIB_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR) $(AR) rcs $@ $^

$(SHARED): $(patsubst %.c,$B/obj/%.o,$(wildcard lib/api/*.c)) $(LIBDT) lib/api/libdt.map
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(CFLAGS) $(LDFLAGS) -shared $(filter-out %.map,$^) -Wl,-soname,$(@F) -Wl,--version-script=lib/api/libdt.map -Wl,-z,defs -Wl,--as-needed $(LIBS) -o $@

$B/bin/%: $B/obj/tools/%.o $(LIBDT)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(CFLAGS) $(LDFLAGS) $< $(PROGRAM_LIBS) -o $@ $(STATIC_LOG)

# linked KIND,NAME,OBJECTS
define linked
$B/plugins/$2.o: $3
	@mkdir -p $$(@D)
	$$(call say,LD) $$(LD) -r $$^ -o $$@ && $$(OBJCOPY) --redefine-sym dt_$1=$(call table,$2) $$@ && \
	  $$(OBJCOPY) --keep-global-symbol=$(call table,$2) $$@
endef
table = dt_plugin_table_$(subst -,_,$1)
# kind KIND,NAMES
define kind
$B/plugins/kind-$1.c: Makefile
	@mkdir -p $$(@D)
	@printf '#include "base/plugin.h"$(foreach p,$2,\nextern const int $(call table,$p);)\nconst struct dt_plugin_builtin dt_plugin_$1[] = {$(foreach p,$2,{"$p", &$(call table,$p)},) {0, 0}};\n' >$$@
endef
ifneq ($(STATIC_BUILD),)
$(foreach k,$(PLUGIN_KINDS),$(eval $(call kind,$k,$(KIND_$k))))
$(foreach i,$(CPU_ISAS),$(eval $(call linked,engine,cpu-$i,$(CPU_SRC:lib/device/cpu/%.c=$B/obj/cpu-$i/%.o))))
$(eval $(call linked,crypto,crypto,$(CRYPTO_SRC:%.c=$B/obj/%.o)))
$(foreach k,brotli charset_detector codec html_parser,$(foreach p,$(KIND_$k),$(eval \
  $(call linked,$k,$p,$(patsubst %.c,$B/obj/%.o,$(filter %.c,$(SOURCES_$p)))))))
$B/plugins/kind-%.o: $B/plugins/kind-%.c $B/flags
	$(call say,CC) $(CC) $(DT_CFLAGS) $(CFLAGS) -c $< -o $@
$B/lib/libplugins.a: $(PLUGIN_KINDS:%=$B/plugins/kind-%.o) $(foreach k,$(PLUGIN_KINDS),$(KIND_$k:%=$B/plugins/%.o))
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR) $(AR) rcs $@ $^
$(PROGRAMS): $B/lib/libplugins.a
endif

define engine_rules
$B/obj/cpu-$1/%.o: lib/device/cpu/%.c $B/flags | deps-build
	@mkdir -p $$(@D)
	$$(call say,CC) $$(call compile,$$(CC) $$(ENGINE_CFLAGS) $$(filter-out -O%,$$(CFLAGS)) $$(ISA_$1) -DDT_ISA='"$1"' -MMD -MP -c $$< -o $$@)
$B/lib/dt/cpu-$1.so: $(CPU_SRC:lib/device/cpu/%.c=$B/obj/cpu-$1/%.o) $(LIBDT)
	@mkdir -p $$(@D)
	$$(call say,LD) $$(CC) $$(CFLAGS) $$(LDFLAGS) -shared -fopenmp $$^ -Wl,-z,defs $$(LIBS_$1) -lm -ldl -lpthread -o $$@
endef
$(foreach i,$(CPU_ISAS),$(eval $(call engine_rules,$i)))

$B/lib/dt/mpi.so: $(MPI_SRC) lib/comm/transport.h $(LIBDT) $B/flags
	@mkdir -p $(@D)
	$(call say,LD) $(MPICC) $(DT_CFLAGS) -fvisibility=hidden $(CFLAGS) $(LDFLAGS) -shared $(MPI_SRC) $(LIBDT) -Wl,-z,defs -o $@

$B/lib/dt/crypto.so: $(CRYPTO_SRC) lib/comm/crypto.h $(LIBDT) $B/flags | deps-build
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(DT_CFLAGS) -fvisibility=hidden $(CFLAGS) $(LDFLAGS) -shared $(CRYPTO_SRC) $(LIBDT) -Wl,-z,defs -lcrypto -o $@

$B/obj/lib/device/cuda/%.cu.o: lib/device/cuda/%.cu $B/flags | deps-build
	@mkdir -p $(@D)
	$(call say,NVCC) $(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
# Only sm_90a has wgmma.
$B/obj/lib/device/cuda/%-wgmma.cu.o: GENCODE = $(SM_90A)
# Bits of every engine: no contraction.
$(patsubst %,$B/obj/lib/device/cuda/%.cu.o,combine exact-sum update) \
$(patsubst %,$B/obj/%.o,$(wildcard lib/device/cuda/canonical/*.cu)): NVCC_FLAGS += -fmad=false
$B/obj/lib/device/cuda/%.o: DT_CFLAGS += -fvisibility=hidden -isystem $(CUDA_HOME)/include
$B/lib/dt/cuda.so: $(patsubst %.c,$B/obj/%.o,$(filter %.c,$(CUDA_SRC))) \
                   $(patsubst %.cu,$B/obj/%.cu.o,$(filter %.cu,$(CUDA_SRC))) $(LIBDT)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(CFLAGS) $(LDFLAGS) -shared $^ -Wl,-z,defs -L$(CUDA_LIB) -lcudart_static \
	  -lcublasLt -lnettle -lstdc++ -lm -ldl -lrt -lpthread -Wl,-rpath,$(CUDA_LIB) -o $@

$B/emulated/%.c.o: %.c $B/flags | deps-build
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(EMULATED) $(DT_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@
$B/emulated/%.cu.o: %.cu $B/flags | deps-check
	@mkdir -p $(@D)
	$(call say,CXX) $(CXX) -x c++ $(EMULATED_CXXFLAGS) $(CFLAGS) $(KERNEL_CFLAGS) -MMD -MP -c $< -o $@
$B/emulated/%.cpp.o: %.cpp $B/flags | deps-check
	@mkdir -p $(@D)
	$(call say,CXX) $(CXX) $(EMULATED_CXXFLAGS) $(CFLAGS) $(EMULATED_SPEED) -MMD -MP -c $< -o $@

# After CFLAGS, whose -O2 would undo it.
$B/emulated/tests/cuda/blas.cpp.o $B/emulated/tests/cuda/asynchronous.cpp.o: EMULATED_SPEED := -O3
$B/emulated/tests/cuda/emulator.cpp.o: EMULATED_CXXFLAGS += $(EMULATOR_CFLAGS)
$B/emulated/tests/cuda/visible-copy.cpp.o: EMULATED_CXXFLAGS += $(KERNEL_CFLAGS)

# The emulated engine is a plug-in, as the engine is.
$B/lib/dt/cuda-emulated.so: $(EMULATED_OBJ) $(LIBDT)
	@mkdir -p $(@D)
	$(call say,LD) $(CXX) $(CFLAGS) $(LDFLAGS) -shared $^ $(if $(RUNTIME_OUTSIDE),,-Wl,-z,defs) -lnettle -lm -lpthread -o $@

$(NCCL_EMULATED): $B/emulated/tests/cuda/nccl/nccl.cpp.o
	@mkdir -p $(@D)
	$(call say,LD) $(CXX) $(CFLAGS) $(LDFLAGS) -shared $^ -Wl,-z,defs -lrt -lpthread -o $@

$B/tests/cuda/%: $B/emulated/tests/cuda/%.cpp.o $(EMULATED_OBJ) $(LIBDT)
	@mkdir -p $(@D)
	$(call say,LD) $(CXX) $(CFLAGS) $(LDFLAGS) -rdynamic $^ -Wl,--as-needed $(LIBS) -lcmocka -o $@

$B/traffic/%.o: % $B/flags | deps-check
	@mkdir -p $(@D)
	$(call say,CXX) $(CXX) -x c++ $(EMULATED_CXXFLAGS) $(TRAFFIC_FLAGS) -MMD -MP -c $< -o $@

$B/tests/cuda/test-traffic: $(TRAFFIC_OBJ) $B/emulated/tests/cuda/traffic/traffic.cpp.o \
                            $(filter-out %.cu.o,$(EMULATED_OBJ)) $(LIBDT)
	@mkdir -p $(@D)
	$(call say,LD) $(CXX) $(CFLAGS) $(LDFLAGS) $^ -Wl,--as-needed $(LIBS) -lcmocka -o $@

$(PRELOADS): $B/%.so: %.c $B/flags | deps-check
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(DT_CFLAGS) $(CFLAGS) -shared -MMD -MP $< -ldl -o $@

$B/obj/tests/%.o: DT_CFLAGS += -Itests
$B/obj/tests/%.o: tests/%.c $B/flags | deps-check
	@mkdir -p $(@D)
	$(call say,CC) $(call compile,$(CC) $(DT_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@)

$(FAULTY): $B/tests/bin/%: $B/obj/tools/%.o $(FAULTS) $(LIBDT)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(CFLAGS) $(LDFLAGS) $< $(FAULTS) $(LIBDT) -Wl,--as-needed $(LIBS) -o $@

# Tests of the shared library make their files with the other.
$B/tests/api/%: $B/obj/tests/api/%.o $(SHARED) $(FAULTS) $(LIBDT)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(CFLAGS) $(LDFLAGS) $^ -Wl,-rpath,'$$ORIGIN/../../lib' -Wl,--as-needed $(LIBS) -lcmocka -o $@

$B/tests/%: $B/obj/tests/%.o $(FAULTS) $(LIBDT)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(CFLAGS) $(LDFLAGS) $< $(FAULTS) $(LIBDT) -Wl,--as-needed $(LIBS) -lcmocka -o $@

# exec: signals of make reach tests/run.
RUN_TESTS = exec env KEEP_FLAGS=1 DT_BUILD='$(abspath $B)' TESTDATA='$(TESTDATA)' PYTHON='$(PYTHON)' JOBS='$(TEST_JOBS)' tests/run
# More than there are cores, since tests of ranks, signals and servers often wait.
TEST_JOBS ?= $(shell echo $$((2 * $(JOBS) + 1)))
FAST_SECONDS ?= 2

# The bundle's program, so that it still compiles where no GPU is.
OP_SPEED := $B/gpu/op-speed
build-tests: all $(UNITS) $(PRELOADS) $(FAULTY) $(ANSWERS) $(CUDA_EMULATED) $(OP_SPEED) ## build everything that the tests run

# A second make finds the plug-ins that can be built with the installed packages.
check: deps-check deps-demo deps-download $(DEPS_PLUGINS) ## run the tests; ends with "N passed, M failed, K skipped"; APART= adds planted mistakes and fuzzers
	@exec $(MAKE) --no-print-directory check-installed

check-installed: build-tests
	@$(RUN_TESTS) $(MAN) $(filter-out $(APART),$(BATS)) $(UNITS)

check-fast: build-tests ## tests that take up to FAST_SECONDS, and two cases of each program
	@$(RUN_TESTS) --fast '$(FAST_SECONDS)' $(MAN) $(filter-out $(APART),$(BATS)) $(UNITS)

test-seconds: ## copy measured wall times to tests/seconds
	@cp $B/seconds tests/seconds

# check-MODULE runs the tests in tests/MODULE, or without that directory those that include a header
# of the module, and tests/tools/MODULE.bats.
TESTED := $(sort $(filter-out full faults,$(notdir $(patsubst %/,%,$(dir $(BATS) $(UNIT_SRC) $(UNIT_CXX))))))
covering = $(filter $(if $(filter $1,$(TESTED)),$B/tests/$1/%,$(patsubst tests/%.c,$B/tests/%,\
           $(shell grep -l '^#include "$1/' $(UNIT_SRC)))),$(UNITS))
CHECKED := $(sort $(TESTED) $(MODULES))
$(foreach m,$(CHECKED),$(eval check-$m: $(call covering,$m)))
# Kernels are tested by cuda-emulated, so that nvcc, which is slow, need not compile what changed.
ALL_BUT_CUDA := $(PROGRAMS) $(filter-out %/cuda.so,$(ENGINES)) $(SHARED) share
$(CHECKED:%=check-%): check-%: $(ALL_BUT_CUDA) $(PRELOADS) $(FAULTY) $(ANSWERS)
	@$(RUN_TESTS) $(filter tests/$*/% tests/tools/$*.bats,$(BATS)) $(call covering,$*)
check-cuda check-device check-tools: $(CUDA_EMULATED)

CUDA_UNITS := $(filter $B/tests/cuda/%,$(UNITS))
CUDA_TESTS := $(CUDA_EMULATED) $(CUDA_UNITS) $(filter $B/tests/device/%,$(UNITS))
check-planted: $(CUDA_EMULATED) $(CUDA_UNITS)

T_FILES    := $(patsubst tests/%.c,$B/tests/%,$(patsubst tests/%.cpp,$B/tests/%,$T))
test: $(ALL_BUT_CUDA) $(PRELOADS) $(FAULTY) $(ANSWERS) $(if $(filter tests/cuda/%,$T),$(CUDA_TESTS)) $(filter $B/tests/%,$(T_FILES)) ## one test: T=tests/shard/test-loader.c, .bats or man/...
	@$(RUN_TESTS) $(T_FILES)

check-faults: all $(PRELOADS) ## each call of each program fails in turn (hours); POINTS=N: N calls of each command
	@rm -rf $B/faults && mkdir -p $B/faults && \
	  export PATH='$(abspath $B)/bin':"$$PATH" DT_ENGINES='$(abspath $B)/lib/dt' OMP_WAIT_POLICY=passive LC_ALL=C.UTF-8 && \
	  (cd $B/faults && '$(CURDIR)/tests/faults/make-inputs') && \
	  exec tests/faults/inject $(POINTS:%=--points %) -j $(JOBS) $B '$(abspath $B)/faults'

check-full: all $(SLOW) $(PRELOADS) $(FAULTY) ## the tests that take long
	@export TEST_TIMEOUT=7200 && $(RUN_TESTS) $(SLOW)

coverage: ## lines and branches per module that the tests execute (gcov); ONLY='MODULE ...': of these, by file
	@$(MAKE) --no-print-directory B=build/coverage CFLAGS='-g $(GCOV_CFLAGS) -fprofile-update=atomic' LDFLAGS=--coverage CC='$(GCOV_CC)' \
	  check-covered
	@tests/coverage build/coverage $(ONLY)
GCOV_CC := $(filter-out ccache,$(CC)) # whose files of counts have other names
# Without the branches of glibc's checks of sizes.
GCOV_CFLAGS := -O1 --coverage -fno-inline -U_FORTIFY_SOURCE

COVERING := $(if $(ONLY),$(foreach m,$(ONLY),$(filter tests/$m/% tests/tools/$m.bats,$(BATS)) $(call covering,$m)),$(BATS) $(UNITS))
check-covered: $(if $(ONLY),$(ALL_BUT_CUDA) $(filter $B/%,$(COVERING)),build-tests)
	@find $B -name '*.gcda' -delete
	-@$(RUN_TESTS) $(COVERING)

# Only the readers of input from outside are instrumented, so that this takes minutes.
READERS      := $(shell sed -nE 's|^(lib/.*)\.c.*|\1|p' tests/unreached)
READER_OBJ   := $(READERS:%=$B/readers/obj/%.o)
READER_TESTS := $(patsubst $B/%,$B/readers/%,$(sort $(foreach m,$(sort $(foreach r,$(READERS),$(word 2,$(subst /, ,$r)))),$(call covering,$m))))

# These run in several threads at once.
$(filter $B/readers/obj/lib/comm/% $B/readers/obj/lib/document/% %/shard/shard.o,$(READER_OBJ)): GCOV_CFLAGS += -fprofile-update=atomic

$(READER_OBJ): $B/readers/obj/%.o: %.c $B/flags | deps-check
	@mkdir -p $(@D)
	$(call say,CC) $(GCOV_CC) $(DT_CFLAGS) $(CFLAGS) $(GCOV_CFLAGS) -MMD -MP -c $< -o $@

$(READER_TESTS): $B/readers/%: $B/obj/%.o $(FAULTS) $(READER_OBJ) $(LIBDT)
	@mkdir -p $(@D)
	$(call say,LD) $(CC) $(CFLAGS) $(LDFLAGS) --coverage $^ -Wl,--as-needed $(LIBS) -lcmocka -o $@

check-readers: $(READER_TESTS) $(ALL_BUT_CUDA) ## branches that unit tests take in readers of input from outside, against tests/unreached
	@find $B/readers -name '*.gcda' -delete
	@($(RUN_TESTS) $(READER_TESTS)) && tests/coverage --readers $B/readers

asan: ## run unit and program tests under AddressSanitizer and UBSan, in build/asan
	@$(MAKE) --no-print-directory B=build/asan CFLAGS='$(ASAN)' LDFLAGS='$(ASAN)' check-built

asan-cuda: ## asan of the emulated cuda engine, as memcheck on a GPU
	@$(MAKE) --no-print-directory B=build/asan CFLAGS='$(ASAN)' LDFLAGS='$(ASAN)' CUDA=0 check-emulated

# ThreadSanitizer sees the accesses of kernels; the emulator tells it about barriers.
tsan-cuda: ## the emulated cuda engine's ops under ThreadSanitizer, as racecheck on a GPU
	@$(MAKE) --no-print-directory B=build/tsan KERNEL_CFLAGS='-O1 -g -fsanitize=thread' \
	  EMULATOR_CFLAGS=-DEMULATOR_RACES LDFLAGS=-fsanitize=thread CUDA=0 check-kernels

# Only the program contains clang's runtime, so engines are linked with undefined symbols.
msan-cuda: ## the same under MemorySanitizer (needs clang), as initcheck on a GPU
	@$(MAKE) --no-print-directory B=build/msan CC=clang CXX=clang++ CFLAGS='$(MSAN)' LDFLAGS='$(MSAN)' \
	  RUNTIME_OUTSIDE=1 CUDA=0 KERNEL_TESTS= check-kernels

RUN_SANITIZED = export LSAN_OPTIONS='use_tls=0:suppressions=$(CURDIR)/tests/leaks-not-ours:print_suppressions=0' && \
                $(RUN_TESTS)

check-built: build-tests deps-check deps-demo
	@$(RUN_SANITIZED) $(MAN) $(filter-out tests/house/%,$(BATS)) $(UNITS)

GPU_TESTS := $(foreach t,adamw attention cross-entropy dropout elements largest matmul norms \
               orthonormalize rows types update,$B/tests/device/test-$t)

# Also on the canonical kernels, with DT_TEST_CANONICAL=1.
CANONICAL_TESTS := $(foreach t,matmul rows attention,$B/tests/device/test-canonical-$t)

# These also need the cpu engine, whose libraries are not instrumented.
KERNEL_TESTS := $B/tests/cuda/test-ops $B/tests/cuda/test-attention

# test-update compares with the cpu engine.
KERNELS_TESTED = $(filter-out $(if $(KERNEL_TESTS),,%/test-update),$(GPU_TESTS)) $(KERNEL_TESTS)

check-kernels: $(KERNELS_TESTED) $B/lib/dt/cuda-emulated.so $(if $(KERNEL_TESTS),$(filter $B/lib/dt/cpu-%,$(ENGINES)))
	@export CUDA_EMULATOR=eager DT_TEST_ENGINE=cuda-emulated && \
	  export TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1 && \
	  $(RUN_TESTS) $(KERNELS_TESTED)

check-emulated: all $(FAULTY) $(CUDA_UNITS) $(filter $B/tests/device/%,$(UNITS)) $(CUDA_EMULATED) deps-check deps-demo
	@$(RUN_SANITIZED) $(filter tests/cuda/%,$(BATS)) $(CUDA_UNITS)

# On a GPU: build/gpu is a bundle that may be carried to a machine without compilers.
$B/gpu/op-speed: tests/gpu/op-speed.c $(LIBDT)
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(DT_CFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP $< $(LIBDT) -Wl,--as-needed $(LIBS) -o $@

$B/gpu/host-memory.so: tests/gpu/host-memory.c $B/flags | deps-build
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(DT_CFLAGS) -isystem $(CUDA_HOME)/include $(CFLAGS) -shared $< -L$(CUDA_LIB) -lcudart_static -ldl -lrt -lpthread -o $@

$B/gpu/conformance: tests/cuda/conformance.cu $B/flags | deps-build
	@mkdir -p $(@D)
	$(call say,NVCC) $(NVCC) $(NVCC_FLAGS) $< -o $@

gpu-bundle: all $(GPU_TESTS) $(CANONICAL_TESTS) $B/gpu/op-speed $B/gpu/host-memory.so $B/gpu/conformance ## bundle of the next three targets, in build/gpu
	@tests/gpu/bundle $B $B/gpu

check-gpu: ## tests on the GPU of this machine, with build/gpu; OUT=DIRECTORY for the results
	@[ -e $B/gpu/commit ] || $(MAKE) --no-print-directory gpu-bundle
	@OUT='$(OUT)' tests/gpu/check $B/gpu

bench-gpu: ## GPU speed: ops and measured peaks, attention and steps of GPT-2 compared with PyTorch
	@[ -e $B/gpu/commit ] || $(MAKE) --no-print-directory gpu-bundle
	@OUT='$(OUT)' tests/gpu/bench $B/gpu

losses-gpu: ## 500 training steps in each precision, compared with PyTorch
	@[ -e $B/gpu/commit ] || $(MAKE) --no-print-directory gpu-bundle
	@OUT='$(OUT)' tests/gpu/losses $B/gpu

check-deps: ## modules include each other only as lib/layers says
	@tests/check-deps

check-words: ## no text has a phrase of tests/phrases
	@tests/check-words

check-names: ## public names say where they are declared; no two headers declare the same name
	@CC='$(CC)' $(PYTHON) tests/check-names

check-cycles: all build-tests ## no two files of a module use each other, but those of tests/cycles
	@$(PYTHON) tests/check-cycles $B

# A header that a source includes first has been compiled alone.
check-headers: | deps-build ## each header compiles alone
	@for h in $$( (find lib -name '*.h' | sort -u; \
	    find lib -name '*.c' | xargs grep -m 1 -h '^#include' | sed -n 's/#include "\(.*\)"$$/lib\/\1/p' | sort -u | \
	    sed p) | sort | uniq -u); do printf '#include "%s"\nextern int not_empty;\n' "$${h#lib/}" | \
	  $(CC) $(DT_CFLAGS) -Itests/cuda/toolkit -Werror -fsyntax-only -x c - || exit 1; done
	@echo 'headers: each compiles alone'

COMPILED = $(LIB_OBJ) $(TOOLS:%=$B/obj/tools/%.o) $(UNIT_SRC:%.c=$B/obj/%.o) \
           $(foreach i,$(CPU_ISAS),$(CPU_SRC:lib/device/cpu/%.c=$B/obj/cpu-$i/%.o))

check-warnings: ## no compiler warning in any source
	@for object in $(COMPILED); do [ -e $$object.warnings ] || rm -f $$object; done
	@$(MAKE) --no-print-directory $(COMPILED)
	@if cat $(COMPILED:%=%.warnings) | grep .; then exit 1; fi
	@echo 'warnings: none'

FORMATTED := -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp'

check-format: ## sources are formatted by clang-format 14
	@find lib tools tests $(FORMATTED) | xargs clang-format --dry-run 2>&1 | \
	  sed -nE 's/:.*code should be clang-formatted.*/ is not formatted: make format/p' | uniq | \
	  if grep .; then exit 1; fi
	@echo 'format: as clang-format formats it'

$B/fuzz/%.o: %.c $B/fuzz/flags | deps-build
	@mkdir -p $(@D)
	$(call say,CC) clang $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

# The part of the library that fuzzers link, as the linker takes it from $(LIBDT); file names of two
# modules are both in it.
$B/fuzz/libdt.a: $(FUZZ_SRC) $(LIBDT) $B/fuzz/flags
	@mkdir -p $(@D)
	@objects=$$($(CC) $(DT_CFLAGS) -w -Itests/fuzz -r -nostdlib -Wl,-z,muldefs,-M $(filter-out %/flags,$^) -o $@.o | \
	  sed -nE 's|^[^ ]*libdt\.a\(([^)]*)\.o\).*|\1|p' | sort -u | while read -r name; do \
	    for source in lib/*/$$name.c; do echo "$B/fuzz/$${source%.c}.o"; done; done) && \
	  rm -f $@ $@.o && $(MAKE) --no-print-directory $$objects && $(AR) rcs $@ $$objects

$B/fuzz/fuzz-%: tests/fuzz/fuzz-%.c $B/fuzz/libdt.a
	$(call say,LD) clang $(FUZZ_CFLAGS) -fsanitize=fuzzer -MMD -MP $< $B/fuzz/libdt.a $(LIBS) -o $@

cuda-registers: ## nvcc's report of each kernel: registers, bytes spilled (slow)
	@NVCC='$(NVCC)' tests/cuda/registers $(filter %.cu,$(CUDA_SRC))

cuda-traffic: $B/tests/cuda/test-traffic ## memory traffic of each op, counted in the emulator
	@$< table

fuzz: $(FUZZERS) ## run every fuzzer for FUZZ_SECONDS (needs clang); findings are kept in build/fuzz
	@for f in $(FUZZERS); do name=$${f##*/} kept=tests/fuzz/kept/$${f##*/}.tar.zst; mkdir -p $$f.found && \
	  { [ ! -e $$kept ] || zstd -dc $$kept | tar -x -C $$f.found; } && \
	  $$f -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=20 -rss_limit_mb=2048 $(FUZZ_FLAGS) \
	    -artifact_prefix=$$f.found/ $$f.found $$(ls -d tests/fuzz/corpus/$$name 2>/dev/null) \
	    >$$f.log 2>&1 || { tail -n 40 $$f.log; echo "$$name: see $$f.found"; exit 1; }; \
	  echo "$$name: nothing found in $(FUZZ_SECONDS) s"; done

oracles: build/oracles/ready ## a Python environment to compare with other implementations
build/oracles/ready: tests/oracles/requirements.txt tests/oracles/requirements-files.txt | deps-oracles
	$(PYTHON) -m venv build/oracles
	tests/oracles/install build/oracles $<
	tests/oracles/install build/oracles tests/oracles/requirements-files.txt --no-deps
	@touch $@

oracles-torch: oracles ## the same with torch and transformers (gigabytes)
	tests/oracles/install build/oracles tests/oracles/requirements-torch.txt

oracles-datatrove: oracles ## the same with datatrove and spaCy (hundreds of megabytes)
	tests/oracles/install build/oracles tests/oracles/requirements-datatrove.txt

oracles-cuda: | deps-oracles ## headers of other CUDA versions, CuTe, and NVIDIA's disassembler (downloads gigabytes)
	PYTHON=$(PYTHON) tests/oracles/cuda build/oracles/cuda

oracles-mlflow: oracles ## the same with an MLflow server, TensorBoard and wandb (hundreds of megabytes)
	tests/oracles/install build/oracles tests/oracles/requirements-mlflow.txt

oracles-scores: oracles-torch ## the same with lm-evaluation-harness and llama.cpp (compiles)
	tests/oracles/install build/oracles tests/oracles/requirements-scores.txt

demo: deps-demo all ## train a small model from text in minutes; CORPUS=FILE for your text
	@$(MAKE) --no-print-directory -f pipelines/demo.mk

pretokenize: deps-demo all ## compare tokenizing before and during training: table and plot
	@$(MAKE) --no-print-directory -f pipelines/pretokenize.mk PYTHON='$(PYTHON)'

mlm: deps-demo all ## masked pretraining of a small DistilBERT: table, plot and JSON of its accuracy
	@$(MAKE) --no-print-directory -f pipelines/mlm.mk

tinystories: deps-demo deps-download all ## the same on the TinyStories corpus: downloads it, or takes CORPUS=FILE
	@$(MAKE) --no-print-directory -f pipelines/tinystories.mk

corpus: deps-data all ## pages of Debian's documentation to shards, and a table; or WARC='FILE ...'
	@$(MAKE) --no-print-directory -f pipelines/web-corpus.mk

html: ## write the website of the manual pages to build/html
	@share/setup/html $B/html

PICTURES := share/results/pictures
FLOOR    := 0.619647 # of the stories that make demo holds out
RESULTS  := share/results/two-cores
pictures: all ## draw README's pictures and those of share/results from the data beside them
	@$B/bin/dt-plot loss $(PICTURES)/loss.jsonl --log y --floor $(FLOOR) --title 'make demo: the loss of a story model; floor: the entropy of its stories' -o $(PICTURES)/loss.svg
	@$B/bin/dt-plot bars $(PICTURES)/speed.jsonl --log y -v 'times as fast' --title 'dt, times as fast as others on the same two cores' -o $(PICTURES)/speed.svg
	@$B/bin/dt-plot scaling -a ranks $(RESULTS)/scaling.json --title 'scaling of dt-train on two cores' -o $(RESULTS)/scaling.svg
	@$B/bin/dt-plot points --log x -v bytes_sent -v val_loss $(RESULTS)/compression.json \
	  --title 'two ranks that send less: loss after 1600 steps, medians and quartiles of 6 seeds' -o $(RESULTS)/compression.svg
	@$B/bin/dt-plot points --log x -v bytes_sent -v val_loss $(RESULTS)/compression-4-ranks.json \
	  --title 'four ranks: loss after 800 steps, medians and extremes of 3 seeds' -o $(RESULTS)/compression-4-ranks.svg
	@$B/bin/dt-plot bars -v val_loss $(RESULTS)/sweep-rate.json --title 'learning rates: medians and quartiles of 6 seeds' -o $(RESULTS)/sweep-rate.svg
	@mkdir -p $B/pictures
	@for kind in reading_tokens_per_core_second training_tokens_per_second; do jq -r --arg kind $$kind \
	  '. as $$all | range(.batches | length) as $$i | [.batches[$$i], ("fly-padded", "fly-list", "pre-padded", "pre-list" | $$all[.][$$kind][$$i])] | join(" ")' \
	  $(RESULTS)/pretokenize.json >$B/pictures/$${kind%%_*}.dat; done
	@jq -r '.checkpoints[] | [(.model | capture("step-0*(?<n>[0-9]+)").n), .accuracy, .loss] | join(" ")' $(RESULTS)/mlm.json >$B/pictures/mlm.dat
	@for plot in pretokenize mlm; do gnuplot -e "format='svg'; directory='$B/pictures'; output='$(RESULTS)/$$plot.svg'" share/plots/$$plot.gnuplot; done

install: all ## install below DESTDIR and PREFIX
	@for f in $(PROGRAMS); do install -D -m 755 $$f '$(DEST)'/bin/$${f##*/}; done
	@for f in $(ENGINES); do install -D -m 644 $$f '$(DEST)'/lib/dt/$${f##*/}; done
	@for f in $(SHARED); do install -D -m 644 $$f '$(DEST)'/lib/$${f##*/} && ln -sfn $${f##*/} '$(DEST)'/lib/libdt.so && \
	  install -D -m 644 lib/api/dt.h '$(DEST)'/include/dt.h && install -d '$(DEST)'/lib/pkgconfig && \
	  printf '%s\n' 'prefix=$(PREFIX)' 'Name: dt' 'Description: tokenizers, shards and rules of dt' "Version: $$(share/setup/version)" \
	    'Cflags: -I$${prefix}/include' 'Libs: -L$${prefix}/lib -ldt' >'$(DEST)'/lib/pkgconfig/dt.pc; done
	@for f in $(SHARE); do install -D -m $$([ -x share/$$f ] && echo 755 || echo 644) share/$$f '$(DEST)'/share/dt/$$f; done
	@for f in $(MAN); do install -D -m 644 $$f '$(DEST)'/share/$$f; done
	@for f in $(TOOLS); do install -D -m 644 share/completions/dt.bash '$(DEST)'/$(BASH_COMPLETIONS)/$$f; done
	@for f in $(TOOLS); do install -D -m 644 share/completions/dt.fish '$(DEST)'/$(FISH_COMPLETIONS)/$$f.fish; done
	@install -D -m 644 share/completions/_dt '$(DEST)'/$(ZSH_COMPLETIONS)/_dt
	@echo "dt is installed in '$(DEST)': programs in '$(DEST)/bin'"

uninstall: ## remove what install put below DESTDIR and PREFIX
	@rm -f $(PROGRAMS:$B/%='$(DEST)'/%) $(MAN:%='$(DEST)'/share/%)
	@rm -f $(TOOLS:%='$(DEST)'/$(FISH_COMPLETIONS)/%.fish)
	@rm -f $(TOOLS:%='$(DEST)'/$(BASH_COMPLETIONS)/%) '$(DEST)'/$(ZSH_COMPLETIONS)/_dt
	@rm -f '$(DEST)'/lib/$(notdir $(SHARED)) '$(DEST)'/lib/libdt.so '$(DEST)'/include/dt.h '$(DEST)'/lib/pkgconfig/dt.pc
	@rm -rf '$(DEST)'/lib/dt '$(DEST)'/share/dt
	@case '$(PREFIX)' in /usr | /usr/local) ;; *) (cd '$(DEST)' 2>/dev/null && \
	  for d in bin include lib/pkgconfig $(sort $(dir $(MAN:%=share/%))) $(BASH_COMPLETIONS) $(FISH_COMPLETIONS) $(ZSH_COMPLETIONS); do \
	    rmdir -p $$d 2>/dev/null; done); rmdir '$(DEST)' 2>/dev/null;; esac; true
	@echo "dt is removed from '$(DEST)'"

# Links of programs to the libraries beside them work on machines whose C library is not older.
wheel: $B/wheel/venv/ready ## Python's wheel and sdist of dt-tools, in build/wheel; SUITE=bullseye MACHINE=aarch64
	@SUITE='$(SUITE)' MACHINE='$(MACHINE)' share/packaging/wheel $B/wheel
$B/wheel/venv/ready: python/requirements-wheel.txt | deps-oracles
	$(PYTHON) -m venv $B/wheel/venv
	tests/oracles/install $B/wheel/venv $<
	@touch $@

container: deps-container ## image localhost/dt and build/container/dt.tar; BASE=debootstrap without a registry
	@BASE='$(BASE)' TARGET='$(TARGET)' FLAGS='$(FLAGS)' share/packaging/container $B/container

deb: deps-deb deps-mpi deps-track deps-data ## Debian packages in build/deb, checked by lintian
	@JOBS='$(JOBS)' share/packaging/deb $B/deb

format: ## reformat the C sources
	find lib tools tests $(FORMATTED) | xargs clang-format -i

clean: ## remove build/
	rm -rf $B

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

.PHONY: all always wheel deb container gpu-bundle check-gpu bench-gpu losses-gpu check-full check-faults coverage check-covered check-readers check-fast test-seconds check-words test $(CHECKED:%=check-%) share deps $(DEPS_RULES) build-tests check check-installed check-built check-emulated check-kernels asan asan-cuda tsan-cuda msan-cuda cuda-registers cuda-traffic \
        demo pretokenize mlm tinystories corpus html pictures fuzz check-deps check-headers check-warnings check-format oracles oracles-torch \
        oracles-datatrove oracles-cuda oracles-mlflow oracles-scores install \
        uninstall format clean help
-include $(shell find $B \( -name 'sysroot*' -o -path $B/container -o -path $B/deb \) -prune -o -name '*.d' -type f -print 2>/dev/null)
