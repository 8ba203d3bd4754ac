# SPDX-License-Identifier: BSD-3-Clause
#
# The whole build. Everything is found by wildcard: a new file needs no edit here. What a source says in its first lines:
#	/* pkg-config: LIB */	a fabric, or a program's folder, that is left out, aloud, where pkg-config does not know LIB
#	/* libs: -lFOO */	more libraries for the program, the test or libslmpm itself
#	/* helper */		a program in a test folder that tests start; it is not itself a test
#	/* program */		one of several programs of a folder of apps; they share what else lies there
# and to tests/run:  /* timeout: SECONDS */  /* native-only */  /* one-thread */  /* waits */  /* has-time */
#
# Variables: CC BUILD PREFIX LIBDIR DESTDIR; CPPFLAGS CFLAGS LDFLAGS LDLIBS are added to what is needed and replace none of it;
# V=1 shows the commands, LTO=1 optimizes across files, WERROR=-Werror, MAN= installs no man pages,
# SAN=address,undefined|thread builds with sanitizers, CROSS=aarch64-linux-gnu|s390x-linux-gnu for that machine.
# FABRIC=tcp, or a list of links as in tcp,tcp or shm,tcp, has tests go that way (tests/README.md).
# QUICK=1 builds tests, and all that is for a CROSS machine, in half of the time: optimized little, with nothing for debuggers;
# with SAN most tests and the programs, not optimized, and each test tries a third of its settings (tests/README.md).
# UNCHECKED=1 leaves out the checks of what a peer wrote: what they cost, for the bench and nothing else.

version = $(shell sed -n 's/^\#define SLMPM_VERSION_$(1) //p' include/slmpm.h)
VERSION := $(call version,MAJOR).$(call version,MINOR).$(call version,PATCH)
SONAME  := libslmpm.so.$(firstword $(subst ., ,$(VERSION)))

BUILD  ?= build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
Q      := $(if $(V),,@)

# Where fabrics are: FABRIC_DIRS='fabrics tests/fabrics/pipe' has one for tests as well, in a build of its own.
FABRIC_DIRS ?= fabrics

# One build, one folder: its objects, gen, lib, bin and tests.
comma := ,
OUT   := $(BUILD)$(patsubst %,/with-%,$(notdir $(filter-out fabrics,$(FABRIC_DIRS))))$(if $(CROSS),/$(CROSS))$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))$(if $(UNCHECKED),/unchecked)
OBJ   := $(OUT)/obj

.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
DRY := $(findstring n,$(firstword -$(MAKEFLAGS)))
ifeq ($(MAKELEVEL)$(filter clean,$(MAKECMDGOALS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
MAKEFLAGS += --no-print-directory

# ---- tools and flags ----

ifneq ($(filter default undefined,$(origin CC)),)
CC := $(if $(CROSS),$(CROSS)-)gcc
endif
ifneq ($(filter default undefined,$(origin AR)),)
AR := $(if $(CROSS),$(CROSS)-)$(if $(LTO),gcc-)ar
endif
CXX ?= g++
OBJCOPY ?= $(if $(CROSS),$(CROSS)-)objcopy
NM ?= $(if $(CROSS),$(CROSS)-)nm

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(if $(SAN),,$(WERROR))	# with a sanitizer gcc sees ghosts
QUICKLY := $(if $(QUICK),$(if $(SAN),-O0,-O1 -g0))
OPT  ?= $(if $(SAN),-O1 -g1 -fno-omit-frame-pointer,$(or $(if $(CROSS),$(QUICKLY)),-O3 $(if $(QUICK),-g0,-g)))
LTO_FLAGS := $(if $(LTO),-flto=auto -ffat-lto-objects)
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -DSLMPM_COMPARE)
SAN_FLAGS += $(if $(filter thread,$(SAN)),-Wno-tsan)	# fences: the tests that need them say so

# CPPFLAGS, CFLAGS, LDFLAGS and LDLIBS are the user's: given to make they would replace what is assigned to them here.
INCLUDE  := -D_GNU_SOURCE= -I. -Iinclude -I$(OUT)/gen -MMD -MP $(if $(UNCHECKED),-DSLMPM_UNCHECKED)
# Functions that happen to begin amid 32 bytes cost an 8-byte round trip up to a fifth, whatever they do.
BASE     := -std=gnu11 $(OPT) $(LTO_FLAGS) $(WARN) $(SAN_FLAGS) -pthread -fPIC -fvisibility=hidden -fno-semantic-interposition -falign-functions=64
COMPILE   = $(CC) $(BASE) $(INCLUDE) $(CPPFLAGS) $(CFLAGS)
LINK      = $(CC) $(OPT) $(LTO_FLAGS) $(SAN_FLAGS) $(CFLAGS) -pthread $(FOREIGN_LIB) $(LDFLAGS)

# A cross build finds foreign libraries in a folder of its own (deps-cross fills it) and runs under qemu.
PKG_CONFIG ?= pkg-config
PKG_CONFIG_PROGRAM := $(PKG_CONFIG)
ifdef CROSS
SYSROOT   := $(BUILD)/sysroot-$(CROSS)
INCLUDE   += -isystem $(SYSROOT)/usr/include -isystem $(SYSROOT)/usr/include/$(CROSS)
FOREIGN_LIB := -L$(SYSROOT)/usr/lib/$(CROSS) -Wl,-rpath,$(abspath $(SYSROOT)/usr/lib/$(CROSS))
PKG_CONFIG := PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(CROSS)/pkgconfig $(PKG_CONFIG)
EMULATOR  := qemu-$(firstword $(subst -, ,$(CROSS))) -L /usr/$(CROSS)
endif

# $(call note,WORD,FILES): what the files say after WORD in a comment among their first lines.
note = $(if $(2),$(shell sed -sn '1,12s|^/\* $(1): *\(.*[^ ]\) *\*/.*|\1|p' $(2)))
say  = @printf '  %-5s %s\n' $(1) $(patsubst $(OUT)/%,%,$(2))

# ---- sources ----

# fabrics/NAME.c is a fabric, fabrics/NAME_part.c a part of it; so in each of these folders.
FABRIC_SRC := $(wildcard $(FABRIC_DIRS:%=%/*.c))
FABRIC_ALL := $(foreach f,$(basename $(notdir $(FABRIC_SRC))),$(if $(findstring _,$(f)),,$(f)))
FABRIC_ALL := $(filter-out registry,$(FABRIC_ALL))
wants       = $(call note,pkg-config,$(filter %/$(1).c,$(FABRIC_SRC)))
lacking     = $(if $(call wants,$(1)),$(shell $(PKG_CONFIG) --exists $(call wants,$(1)) 2>/dev/null || echo $(1)))
LEFT_OUT   := $(foreach f,$(FABRIC_ALL),$(call lacking,$(f)))
FABRICS    := $(filter-out $(LEFT_OUT),$(FABRIC_ALL))
FABRIC_PKG := $(strip $(foreach f,$(FABRICS),$(call wants,$(f))))

LIB_SRC := $(wildcard shm/*.c slmpm/*.c slmpm/*/*.c) \
	$(filter-out $(foreach f,$(LEFT_OUT),$(foreach d,$(FABRIC_DIRS),$(d)/$(f).c $(d)/$(f)_%.c)),$(FABRIC_SRC))
LIB_OBJ := $(LIB_SRC:%.c=$(OBJ)/%.o)
LIB_LIBS = $(sort $(call note,libs,$(LIB_SRC))) $(if $(FABRIC_PKG),$(shell $(PKG_CONFIG) --libs $(FABRIC_PKG)))
SO      := $(OUT)/lib/libslmpm.so
ARCHIVE := $(OUT)/lib/libslmpm.a
INNER   := $(OBJ)/inner.a		# with all names, for tests
MERGED  := $(OBJ)/slmpm.o $(OBJ)/dacs.o	# without those that no header declares

# A program is apps/NAME.c or a folder apps/NAME; in these two folders each file is one.
ONE_FILE := $(wildcard apps/*.c apps/hello/*.c apps/examples/*.c)
MAINS    := $(shell grep -lE '^/\* program \*/' $(wildcard apps/*/*.c))
SEVERAL  := $(sort $(notdir $(patsubst %/,%,$(dir $(MAINS)))))
FOLDERS  := $(filter-out hello examples lib mpi_coll $(SEVERAL),$(notdir $(patsubst %/,%,$(dir $(wildcard apps/*/*.c)))))
FOLDERS  := $(sort $(FOLDERS))
app_wants = $(call note,pkg-config,$(wildcard apps/$(1)/*.c))
APPS_OUT := $(foreach d,$(FOLDERS),$(if $(call app_wants,$(d)),$(shell $(PKG_CONFIG) --exists $(call app_wants,$(d)) 2>/dev/null || echo $(d))))
FOLDERS  := $(filter-out $(APPS_OUT),$(FOLDERS))
APP_LIB  := $(patsubst %.c,$(OBJ)/%.o,$(wildcard apps/lib/*.c))		# what programs share
PROGRAMS := $(addprefix $(OUT)/bin/,$(basename $(notdir $(ONE_FILE) $(MAINS))) $(FOLDERS))

# apps/mpi_coll is a library to preload, one for each MPI that has a compiler here: mpicc.NAME, or mpicc alone. The ":" is for
# dash, whose command -v ends with 127 where there is none: make takes that for a shell that cannot be run, and what it said for an error.
mpicc   = mpicc$(if $(filter-out mpi,$(1)),.$(1))
MPI_SRC := $(wildcard apps/mpi_coll/*.c)
MPIS    := $(if $(CROSS)$(SAN)$(UNCHECKED),,$(shell for m in openmpi mpich; do command -v mpicc.$$m >/dev/null && echo $$m; done; :))
MPIS    := $(or $(MPIS),$(if $(CROSS)$(SAN)$(UNCHECKED),,$(shell command -v mpicc >/dev/null && echo mpi)))
MPI_COLL := $(MPIS:%=$(OUT)/lib/mpi_coll-%.so)

# A test is tests/FOLDER/NAME.c or .sh; tests/model are three programs: one with its own build of the ring, one of boards, one with the library.
TEST_C   := $(filter-out tests/lib/% tests/lint/% tests/bench/% tests/cross/% tests/model/%,$(wildcard tests/*/*.c))
TEST_SH  := $(filter-out tests/lib/% tests/lint/% tests/bench/% tests/cross/%,$(wildcard tests/*/*.sh)) \
	$(wildcard tests/cross/version.sh tests/cross/trace.sh)
TEST_LIB := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/lib/*.c))
TEST_OBJ := $(TEST_C:%.c=$(OBJ)/%.o)
TEST_BIN := $(TEST_C:%.c=$(OUT)/%)
MODEL_OBJ := $(patsubst %.c,$(OBJ)/model/%.o,$(if $(wildcard tests/model/check.c),$(filter-out %/queues.c %/boards.c,$(wildcard tests/model/*.c)) shm/ring.c))
BOARD_OBJ := $(patsubst %.c,$(OBJ)/model/%.o,$(wildcard tests/model/boards.c tests/model/board/*.c tests/model/explore.c tests/model/report.c tests/model/coroutine.c))
SCENE_OBJ := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/model/queues.c tests/model/queue/*.c)) $(addprefix $(OBJ)/model/tests/model/,explore.o report.o)
MODEL     := $(if $(MODEL_OBJ),tests/model/check tests/model/boards tests/model/queues)
HELPERS  := $(if $(TEST_C),$(shell grep -lE '^/\* helper\b' $(TEST_C)))
TESTS     = $(foreach d,unit fabric fault stress fuzz,$(filter tests/$(d)/%,$(TEST_CHOICE))) \
	$(filter-out $(foreach d,unit fabric fault stress fuzz,tests/$(d)/%),$(TEST_CHOICE))
TEST_CHOICE = $(if $(FABRIC),$(filter-out $(foreach d,unit fuzz model cross,tests/$(d)/%),$(TEST_ALL)),$(TEST_ALL))
TEST_ALL  = $(filter-out $(HELPERS),$(TEST_C) $(TEST_SH) $(addsuffix .c,$(MODEL)))

# ---- library and tools ----

all: $(SO) $(ARCHIVE) $(PROGRAMS) $(MPI_COLL)	## libslmpm.so, libslmpm.a and the tools (the default)
	$(if $(MPIS)$(CROSS)$(SAN)$(UNCHECKED),,@echo '  --    mpi_coll left out: no mpicc')
	$(foreach d,$(APPS_OUT),@echo '  --    $(d) left out: no $(call app_wants,$(d))'$(newline))

lib: $(SO) $(ARCHIVE)			## the two libraries alone

# Objects depend on the flags they were built with, so that a changed CFLAGS or LTO rebuilds them.
$(OUT)/gen/flags: FORCE
	$(call update,echo '$(COMPILE) $(LDFLAGS) $(LDLIBS) $(FABRIC_PKG) $(QUICKLY)')

$(OUT)/gen/fabric_list.h: FORCE
	$(call update,printf 'FABRIC(%s)\n' $(FABRICS))

# $(call update,COMMAND): rewrite the target only where COMMAND prints something new.
update = @mkdir -p $(@D); $(1) | cmp -s - $@ 2>/dev/null || $(1) >$@

# What slmpm_build tells. The commit is linked with the library proper alone: nothing is compiled again for another one.
$(OUT)/gen/build_info.h: $(OUT)/gen/flags
	@printf '#define BUILD_FLAGS "%s"\n' '$(subst ",\",$(strip $(COMPILE)))' >$@
$(OUT)/gen/git_id.c: FORCE
	@mkdir -p $(@D); id=$$(git --git-dir=.git describe --tags --always --dirty 2>/dev/null) || { [ ! -e $@ ] || exit 0; id=unknown; }; \
	echo "const char build_git_id[] = \"$$id\";" | cmp -s - $@ || echo "const char build_git_id[] = \"$$id\";" >$@
$(OBJ)/git_id.o: $(OUT)/gen/git_id.c
	@mkdir -p $(@D); $(COMPILE) -c $< -o $@
$(OBJ)/slmpm/base/build.o: $(OUT)/gen/build_info.h
$(OBJ)/slmpm.o $(SO).$(VERSION): $(OBJ)/git_id.o

# What the headers declare, by its visibility. slmpm/abi holds the names of each release that was; "make abi" is about it.
RELEASES := $(shell ls slmpm/abi/[0-9]* 2>/dev/null | sort -V)
$(OUT)/gen/names: $(MERGED)
	@mkdir -p $(@D); $(NM) -g --defined-only $^ | sed -n 's/.* [A-Z] //p' | sort >$@
$(OUT)/gen/libslmpm.map: $(OUT)/gen/names slmpm/abi/map $(RELEASES) include/slmpm.h
	@slmpm/abi/map -v version=$(call version,MAJOR).$(call version,MINOR) $(RELEASES) $< >$@

$(OBJ)/fabrics/registry.o: $(OUT)/gen/fabric_list.h
$(OBJ)/fabrics/%.o: FABRIC_CFLAGS = $(if $(FABRIC_PKG),$(shell $(PKG_CONFIG) --cflags $(FABRIC_PKG)))

$(OBJ)/%.o: %.c $(OUT)/gen/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) $(FABRIC_CFLAGS) -c $< -o $@
# What is measured is not to depend on where a loop happens to lie; the bench's peers are built so, too.
$(addprefix $(OBJ)/apps/slmpm_perftest/,loops.o reads.o): private BASE += -falign-loops=64
# Below -O3 compilers leave most of these loops without vector instructions.
$(OBJ)/slmpm/calc/calc_kernels.o: private BASE += $(if $(SAN),,-O3)

$(SO).$(VERSION): $(LIB_OBJ) $(OUT)/gen/libslmpm.map
	$(foreach f,$(LEFT_OUT),@echo '  --    fabric $(f) left out: no $(call wants,$(f))'$(newline))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) -shared -Wl,-soname,$(SONAME) -Wl,-z,nodelete -Wl,--version-script,$(OUT)/gen/libslmpm.map $(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(LIB_OBJ) $(OBJ)/git_id.o $(LIB_LIBS) $(LDLIBS) -o $@

$(SO): $(SO).$(VERSION)
	@ln -sf $(notdir $<) $(@D)/$(SONAME); ln -sf $(SONAME) $@

# One object, as far as a program that does not use DaCS goes, so that the names between its parts can be local to it.
$(OBJ)/dacs.o: $(filter $(OBJ)/slmpm/dacs/% $(OBJ)/slmpm/dacsbase/%,$(LIB_OBJ))
$(OBJ)/slmpm.o: $(filter-out $(OBJ)/slmpm/dacs/% $(OBJ)/slmpm/dacsbase/%,$(LIB_OBJ))
$(MERGED):
	$(call say,MERGE,$@)
	$(Q)$(CC) $(OPT) $(LTO_FLAGS) $(if $(LTO),-flinker-output=nolto-rel) $(CFLAGS) -r -nostdlib $^ -o $@
	$(Q)$(OBJCOPY) --localize-hidden $@

$(ARCHIVE): $(MERGED)
$(INNER): $(LIB_OBJ)
$(ARCHIVE) $(INNER):
	$(call say,AR,$@)
	@mkdir -p $(@D); rm -f $@
	$(Q)$(AR) rcs $@ $^

# $(eval $(call program,NAME,SOURCES,ARCHIVE)): it finds the library beside it; the one to be installed where the system looks.
$(OUT)/bin/%: RPATH = -Wl,-rpath,'$$ORIGIN/../lib'
define program
$(OUT)/bin/$(1) $(OBJ)/install/$(1): $(2:%.c=$(OBJ)/%.o) $(3) $(APP_LIB) $(SO)
	$$(call say,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(LINK) $(2:%.c=$(OBJ)/%.o) $(3) $(APP_LIB) -L$(OUT)/lib -lslmpm $$(RPATH) $$(call note,libs,$(2) $(wildcard apps/lib/*.c)) $$(if $$(call note,pkg-config,$(2)),$$(shell $$(PKG_CONFIG) --libs $$(call note,pkg-config,$(2)))) $$(LDLIBS) -o $$@
endef
$(foreach f,$(ONE_FILE),$(eval $(call program,$(basename $(notdir $(f))),$(f))))
$(foreach d,$(FOLDERS),$(eval $(call program,$(d),$(wildcard apps/$(d)/*.c))))

# $(eval $(call shared,FOLDER)): what its programs share, each taking what it needs.
shared_of = $(patsubst %.c,$(OBJ)/%.o,$(filter-out $(MAINS),$(wildcard apps/$(1)/*.c)))
define shared
$(OBJ)/apps/$(1)/shared.a: $(call shared_of,$(1))
	@rm -f $$@; $$(AR) rcs $$@ $$^
endef
$(foreach d,$(SEVERAL),$(eval $(call shared,$(d))))
$(foreach f,$(MAINS),$(eval $(call program,$(basename $(notdir $(f))),$(f),$(OBJ)/$(dir $(f))shared.a)))

# Programs that are linked with the library see no names of the one in here.
$(OUT)/lib/mpi_coll-%.so: $(MPI_SRC) $(wildcard apps/mpi_coll/*.h include/*.h) $(ARCHIVE) $(OUT)/gen/flags
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(call mpicc,$*) $(BASE) $(filter-out -MMD -MP,$(INCLUDE)) $(CPPFLAGS) $(CFLAGS) -shared \
		-Wl,--exclude-libs,ALL -Wl,-Bsymbolic $(MPI_SRC) $(ARCHIVE) $(LDFLAGS) $(LIB_LIBS) $(LDLIBS) -o $@ || \
		echo '  --    mpi_coll left out for $*: $(call mpicc,$*) says why'

# ---- tests ----

# Tests link an archive of their own: a unit test sees the inside of the one header it tests. There are hundreds: the linker is
# the quickest that is here, one thread each as make has jobs enough, and what a sanitizer adds is not relocated anew by each process.
LINK_TEST := $(LINK) $(if $(CROSS)$(LTO),,$(if $(shell command -v ld.lld; :),-fuse-ld=lld -Wl$(comma)--threads=1)) $(if $(SAN),-no-pie,$(if $(QUICK),-Wl$(comma)-S))
# What a sanitizer adds takes twice as long to compile where it is optimized; little of what runs is that code. Not so in
# unit tests, which compute much, and have the library's inline functions in them; nor in what tests have in common, nor in
# the two programs that compute.
UNHURRIED := $(if $(SAN),$(filter $(OBJ)/tests/unit/%,$(TEST_OBJ)) $(TEST_LIB))
APP_OBJ   := $(if $(SAN),$(patsubst %.c,$(OBJ)/%.o,$(filter-out apps/jacobi/% apps/slmpm_sim/%,$(wildcard apps/*.c apps/*/*.c))))
$(filter-out $(UNHURRIED),$(TEST_OBJ) $(TEST_LIB)) $(APP_OBJ): private BASE += $(QUICKLY)
$(TEST_BIN): $(OUT)/%: $(OBJ)/%.o $(TEST_LIB) $(INNER)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK_TEST) $< $(TEST_LIB) $(INNER) -lcmocka $(call note,libs,$*.c) $(LIB_LIBS) $(LDLIBS) -o $@

$(OBJ)/model/%.o: %.c $(OUT)/gen/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -DSLMPM_MODEL -fno-stack-protector -c $< -o $@

$(OUT)/tests/model/check: $(MODEL_OBJ)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) $^ $(LDLIBS) -o $@

$(OUT)/tests/model/boards: $(BOARD_OBJ) $(INNER)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) $^ $(LIB_LIBS) $(LDLIBS) -o $@

# Its stand-ins come before the library's own functions. tests/model/mutants.sh links likewise.
$(OUT)/tests/model/queues: $(SCENE_OBJ) $(INNER)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) $^ $(LIB_LIBS) $(LDLIBS) -Wl,-z,muldefs,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free -o $@

RUN = env -u MAKEFLAGS -u MAKELEVEL SLMPM_BUILD=$(abspath $(OUT)) SLMPM_SAN='$(SAN)' SLMPM_EMULATOR='$(EMULATOR)' \
	SLMPM_NATIVE=$(abspath $(BUILD)) CC='$(CC)' $(if $(SAN),SLMPM_TEST_QUICK='$(QUICK)') tests/run

OVER = $(if $(FABRIC),-f $(FABRIC))

# A sanitizer, and TESTS, leave tests out: only what tests/run lists is built then, and what listed scripts start.
LISTED  = $(shell SLMPM_SAN=$(SAN) tests/run -l $(OVER) $(TESTS))
STARTED = $(patsubst SLMPM_BUILD/%,%.c,$(shell grep -ohE 'SLMPM_BUILD/tests/[a-z_]+/[a-z_]+' $(filter %.sh,$(1)) /dev/null))
needed  = $(HELPERS) tests/fabric/link_% $(1) $(STARTED)
BUILT   = $(if $(SAN)$(filter command,$(origin TESTS)),$(patsubst %.c,$(OUT)/%,$(filter $(call needed,$(LISTED)),$(TEST_C))),$(TEST_BIN))

test-programs: $(BUILT) $(if $(SAN)$(CROSS),,$(addprefix $(OUT)/,$(MODEL)))	## build the tests, run none
	@:

test:					## every test; TESTS='FILE…' for some, SAN=… with sanitizers, FABRIC=tcp or FABRIC=shm,tcp over these
	@$(MAKE) all test-programs
	$(if $(SAN)$(CROSS)$(UNCHECKED),,@rm -rf $(OUT)/root; $(MAKE) DESTDIR=$(abspath $(OUT))/root PREFIX=/usr/local LIBDIR=/usr/local/lib64 install)
	@$(RUN) $(OVER) $(TESTS)

# Programs of which one end is another machine's.
CROSS_BOTH := $(addprefix tests/dacs/,swap mem remote_mem mutex mutex_try group) $(addprefix tests/api/workqueue_,apart counter pipe spread) \
	$(filter $(addprefix tests/fabric/,far_end link_% message_% mirror_words am_storm onesided_random),$(TEST_C:%.c=%))
# Those of one process, all of it foreign.
CROSS_ONE := $(addprefix tests/api/,trace_script $(addprefix workqueue_,wait receive calc program text end random))

# An s390x builds all programs, and runs all unit tests but those of ranks, topology, settings, and memory of one machine
# alone, which no byte order changes. An aarch64 has an x86's order and sizes: it runs unit tests of processors, and pairs of
# programs. Under an emulator on an x86 no machine shows a weaker order than that.
CROSS_UNIT := $(filter-out $(HELPERS:%.c=%) $(addprefix tests/unit/,plan network network_deadlock config flat flat_%),$(filter tests/unit/%,$(TEST_C:%.c=%)))
CROSS_HERE := $(CROSS_ONE) $(CROSS_BOTH)
CROSS_BIN  := all
CROSS_MEET := $(wildcard tests/cross/*.sh)
ifneq ($(filter aarch64-%,$(CROSS)),)
CROSS_UNIT := $(filter $(addprefix tests/unit/,calc checksum copy dirty double_mapping lock ring_% sleep_barrier spin wait written),$(CROSS_UNIT))
CROSS_BOTH :=
CROSS_HERE := tests/api/trace_script
CROSS_BIN  := $(addprefix $(OUT)/bin/,hello_host hello_accel disk_copy disk_controller slmpm_perftest)
CROSS_MEET := $(addprefix tests/cross/,pair.sh tcp.sh trace.sh)
endif

cross-programs: deps-cross
	@$(MAKE) CROSS= all $(CROSS_BOTH:%=$(BUILD)/%)
	@$(MAKE) $(CROSS_BIN) $(patsubst %,$(OUT)/%,$(CROSS_HERE) $(CROSS_UNIT))

cross-test: cross-programs		## unit tests, pairs and the suite of links on CROSS=TRIPLE under qemu
	@$(RUN) $(CROSS_UNIT:%=%.c) $(CROSS_MEET)

demo:					## watch a host and two accelerators hash files
	@$(MAKE) $(OUT)/bin/slmpm_demo
	@$(OUT)/bin/slmpm_demo -n 2 >$(OUT)/demo.sha256
	@sha256sum --quiet -c $(OUT)/demo.sha256 && echo "sha256sum agrees with all $$(wc -l <$(OUT)/demo.sha256) digests"

BENCH = @SLMPM_BUILD=$(abspath $(OUT)) tests/bench/run

bench:					## our figures beside every peer's, over TCP, and mode beside mode: twelve minutes; build/bench
	@$(MAKE) all
	@rc=0; for part in near net modes; do $(MAKE) bench-$$part || rc=1; done; exit $$rc

bench-near:				## on one machine; plots in build/bench
	@$(MAKE) all
	$(BENCH)

bench-net:				## over loopback TCP; plots in build/bench/net
	@$(MAKE) all
	$(BENCH) --net

bench-modes:				## fixed modes against the library's own choice; build/bench/modes
	@$(MAKE) all
	$(BENCH) --modes

# ---- lint ----

C_FILES = $(shell find apps fabrics include shm slmpm tests -name '*.[ch]' 2>/dev/null | sort)

abi: $(SO)				## the interface against that of the last release (git tag); without one it is listed
	@tests/lint/abi $(SO) $(OUT)/gen/abi
abi-record: $(OUT)/gen/names		## a release's last step: note the names it exports in slmpm/abi
	cp $< slmpm/abi/$(call version,MAJOR).$(call version,MINOR)

lint:					## include arrows, format, columns, names, every warning an error, headers, man pages
	@$(MAKE) -k --output-sync=target $(addprefix lint-,arrows format columns names headers gcc clang hot floors man)

# The rooms of slmpm/ and what they stand on, from the lowest up. parts.c and packets.c, which hand down what the others do,
# are the highest; core is the files of slmpm/ itself.
FLOORS := shm fabrics base plan network net mode core bond link monitor choice completion engine split loan message am sendrecv region rma emulation share fifo calc board workqueue offload track mirror connect dial launch calls group machine deposit overlay dacsbase dacs parts
lint-arrows:
	@tests/lint/arrows -v order="$(FLOORS)" $(C_FILES)
lint-format:
	@echo '  LINT  format'; clang-format --dry-run -Werror $(C_FILES)
lint-columns:
	@tests/lint/columns $(C_FILES)

lint-names:
	@tests/lint/names $(filter shm/%.c fabrics/%.c slmpm/%.c,$(C_FILES))
# Where WERROR is set this build is held to it, and says what another by gcc would.
GCC_LINTED := $(if $(WERROR),$(OUT),$(BUILD)/lint-gcc)
lint-gcc:
	@$(MAKE) $(if $(WERROR),,BUILD=$(GCC_LINTED) CC=gcc OPT=-O2 WERROR=-Werror) objects
# A cold callee without a way around it makes gcc take its callers for cold, and build them for size.
HOT := slmpm_send|slmpm_sendv|slmpm_recv|slmpm_loan|slmpm_commit|slmpm_hold|slmpm_release|slmpm_put|slmpm_get|slmpm_atomic|shm_post|shm_poll
lint-hot: lint-gcc
	@echo '  LINT  hot'; ! objdump -t $(addprefix $(GCC_LINTED)/obj/,slmpm/*.o slmpm/*/*.o fabrics/*.o) | \
		grep -E '[.]text[.]unlikely.* ($(HOT))$$'
# Who needs whom, by the objects' symbols.
lint-floors: lint-gcc
	@cd $(GCC_LINTED)/obj && nm -A $(LIB_SRC:%.c=%.o) | $(CURDIR)/tests/lint/floors -v rooms="$(FLOORS)" -v page=$(CURDIR)/doc/architecture.md
lint-clang:
	@$(MAKE) BUILD=$(BUILD)/lint-clang CC=clang OPT=-O0 WERROR=-Werror objects
lint-man:
	@echo '  LINT  man'; for m in $(wildcard doc/man/*.scd); do \
		scdoc <$$m >/dev/null || { echo "$$m: scdoc refuses it"; exit 1; }; done
# Each public header stands alone. dacs.h serves old compilers (C++98), slmpm.h C++11; both plain C99.
lint-headers:
	@echo '  LINT  headers'; check() { echo "#include <$$h>" | $$cc $$* -Iinclude -Wall -Wextra -pedantic -Wshadow -Wconversion -Werror -fsyntax-only - || bad=1; }; \
	for h in $(notdir $(wildcard include/*.h)); do \
		for cc in gcc clang; do check -x c -std=c99; check -x c -std=c11; done; \
		case $$h in dacs.h) std=c++98;; *) std=c++11;; esac; \
		for cc in g++ clang++; do check -x c++ -std=$$std; done; \
	done; [ -z "$$bad" ]

objects: $(LIB_OBJ) $(ONE_FILE:%.c=$(OBJ)/%.o) $(patsubst %.c,$(OBJ)/%.o,$(foreach d,$(FOLDERS) $(SEVERAL),$(wildcard apps/$(d)/*.c))) \
	$(APP_LIB) $(TEST_OBJ) $(TEST_LIB) $(MODEL_OBJ) $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/bench/*.c tests/fabrics/*/*.c))

format:					## let clang-format rewrite the sources
	$(Q)clang-format -i $(C_FILES)

# ---- man pages, installation ----

MAN := $(patsubst doc/man/%.scd,$(BUILD)/man/%,$(wildcard doc/man/*.scd))

man: $(MAN)				## man pages from doc/man, with scdoc, into build/man
	@:

$(BUILD)/man/%: doc/man/%.scd
	@command -v scdoc >/dev/null || { echo '  --    man pages need scdoc: "make deps-man" installs it, "MAN=" leaves them out'; exit 1; }
	$(call say,MAN,$@)
	@mkdir -p $(@D)
	$(Q)scdoc <$< >$@

# $(call calls,PAGE): the calls that a page of section 3 names; each gets a link to it.
calls = $$(case $(1) in *.3.scd) awk '/^\# NAME/ { on = 1; next } on { end = sub(/ -( .*|$$)/, ""); gsub(/,/, ""); print } end { exit }' $(1) ;; esac)

# $(call pc,NAME,DESCRIPTION,REST): the text of a pkg-config file.
pc = 'prefix=$(PREFIX)' 'libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)' 'includedir=$${prefix}/include' '' 'Name: $(1)' 'Description: $(2)' 'Version: $(VERSION)' $(3)

# What DaCS programs' makefiles link with is the same library.
DACS_NAMES := dacs dacs_hybrid
TO_INSTALL := $(patsubst $(OUT)/bin/%,$(OBJ)/install/%,$(filter $(OUT)/bin/slmpm_% $(OUT)/bin/disk_% $(OUT)/bin/mirror_% $(OUT)/bin/jacobi,$(PROGRAMS)))
EXAMPLES   := apps/examples/Makefile $(wildcard apps/examples/*.c apps/examples/*.program apps/examples/*.plan apps/hello/*.c)
EXAMPLEDIR := $(PREFIX)/share/doc/slmpm/examples
MANDIR     := $(PREFIX)/share/man

install: all $(TO_INSTALL) $(MAN)	## into $(DESTDIR)$(PREFIX), libraries into $(DESTDIR)$(LIBDIR): all that a user needs; DESTDIR is for packages
	$(if $(UNCHECKED),$(error this build is for the bench alone))
	$(Q)install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(PREFIX)/include $(LIBDIR)/pkgconfig $(EXAMPLEDIR))
	$(Q)install -m 644 include/*.h $(DESTDIR)$(PREFIX)/include
	$(Q)install -m 644 $(ARCHIVE) $(DESTDIR)$(LIBDIR)
	$(Q)install -m 755 $(SO).$(VERSION) $(DESTDIR)$(LIBDIR)
	$(Q)ln -sf libslmpm.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libslmpm.so
	$(Q)for name in $(DACS_NAMES); do \
		ln -sf libslmpm.so $(DESTDIR)$(LIBDIR)/lib$$name.so; \
		echo '/* SLMPM has the DaCS interface. */ INPUT(-lslmpm $(LIB_LIBS))' >$(DESTDIR)$(LIBDIR)/lib$$name.a; done
	$(Q)printf '%s\n' $(call pc,slmpm,messages between hosts and accelerators, \
		'Libs: -L$${libdir} -lslmpm' 'Libs.private: -pthread $(LIB_LIBS)' 'Cflags: -I$${includedir}') \
		>$(DESTDIR)$(LIBDIR)/pkgconfig/slmpm.pc
	$(Q)printf '%s\n' $(call pc,dacs,the DaCS interface over SLMPM,'Requires: slmpm') >$(DESTDIR)$(LIBDIR)/pkgconfig/dacs.pc
	$(Q)install -m 755 $(TO_INSTALL) $(DESTDIR)$(PREFIX)/bin
	$(if $(MPI_COLL),$(Q)install -D -t $(DESTDIR)$(LIBDIR)/slmpm -m 755 $(MPI_COLL))
	$(Q)install -m 644 $(EXAMPLES) $(DESTDIR)$(EXAMPLEDIR)
	$(Q)for m in $(notdir $(MAN)); do \
		install -D -m 644 $(BUILD)/man/$$m $(DESTDIR)$(MANDIR)/man$${m##*.}/$$m; \
		for call in $(call calls,doc/man/$$m.scd); do [ $$call.3 = $$m ] || \
			ln -sf $$m $(DESTDIR)$(MANDIR)/man3/$$call.3; done; done
	$(if $(DESTDIR),,@ldconfig 2>/dev/null || true)
	@echo '  INST  $(DESTDIR)$(PREFIX)'

# What is empty of the first below the second goes with the rest: of a system's own folders those named slmpm. LIBDIR may lie elsewhere.
FOLDERS = $(addprefix $(DESTDIR),$(PREFIX)/bin $(PREFIX)/include $(LIBDIR)/pkgconfig $(LIBDIR)/slmpm $(EXAMPLEDIR) \
	$(patsubst .%,$(MANDIR)/man%,$(sort $(suffix $(basename $(wildcard doc/man/*.scd))))))
OURS    = $(or $(DESTDIR),$(PREFIX)$(if $(filter /usr /usr/local,$(PREFIX)),/share/doc))

uninstall:				## with the same PREFIX, LIBDIR and DESTDIR: what this version's install put there
	$(Q)rm -f $(addprefix $(DESTDIR)$(PREFIX)/,$(wildcard include/*.h) $(TO_INSTALL:$(OBJ)/install/%=bin/%)) \
		$(addprefix $(DESTDIR)$(LIBDIR)/,libslmpm.a libslmpm.so libslmpm.so.* $(DACS_NAMES:%=lib%.so) $(DACS_NAMES:%=lib%.a) slmpm/mpi_coll-*.so) \
		$(addprefix $(DESTDIR)$(LIBDIR)/pkgconfig/,slmpm.pc dacs.pc) $(addprefix $(DESTDIR)$(EXAMPLEDIR)/,$(notdir $(EXAMPLES)))
	$(Q)for m in $(patsubst doc/man/%.scd,%,$(wildcard doc/man/*.scd)); do rm -f $(DESTDIR)$(MANDIR)/man$${m##*.}/$$m; \
		for call in $(call calls,doc/man/$$m.scd); do rm -f $(DESTDIR)$(MANDIR)/man3/$$call.3; done; done
	$(Q)rmdir --ignore-fail-on-non-empty $(DESTDIR)$(LIBDIR)/slmpm 2>/dev/null || true
	$(Q)cd $(OURS) 2>/dev/null && rmdir -p --ignore-fail-on-non-empty $(patsubst $(OURS)/%,%,$(filter $(OURS)/%,$(FOLDERS))) 2>/dev/null || true
	$(if $(DESTDIR),,@ldconfig 2>/dev/null || true)

define newline


endef

# ---- what has to be installed first ----

DEPS_BUILD := gcc libc6-dev make pkg-config liburing-dev libssl-dev libjansson-dev libncurses-dev libpng-dev
DEPS_MAN   := scdoc
DEPS_TEST  := $(DEPS_BUILD) $(DEPS_MAN) libcmocka-dev iproute2 nftables procps openssh-client dropbear-bin
DEPS_LINT  := $(DEPS_TEST) g++ clang clang-format
DEPS_ABI   := $(DEPS_BUILD) abigail-tools
DEPS_BENCH := $(DEPS_BUILD) gnuplot-nox iperf3
DEPS_CROSS := $(DEPS_TEST) qemu-user gcc-s390x-linux-gnu libc6-dev-s390x-cross gcc-aarch64-linux-gnu libc6-dev-arm64-cross
# Foreign packages are unpacked, not installed: Debian's releases for two machines need not agree in version.
SYSROOT_PACKAGES := libcmocka-dev libcmocka0 libssl-dev libssl3 libjansson-dev libjansson4 liburing-dev liburing2

# These goals install what they lack. The others may be part of something that must not: they stop and name one of these.
asked    = $(if $(filter $(1),$(MAKECMDGOALS)),$(2))
PACKAGES := $(sort $(call asked,deps-build demo,$(DEPS_BUILD)) $(call asked,deps-test test,$(DEPS_TEST)) \
	$(call asked,deps-man man,$(DEPS_MAN)) $(call asked,deps-lint lint lint-% format,$(DEPS_LINT)) \
	$(call asked,deps-bench bench bench-%,$(DEPS_BENCH)) $(call asked,deps-abi abi,$(DEPS_ABI)) \
	$(call asked,deps,$(DEPS_LINT) $(DEPS_BENCH) $(DEPS_ABI)))

deps: ; @:				## apt-get what is missing for all of it; or deps-build, -test, -man, -lint, -abi, -bench, -cross
deps-build deps-test deps-man deps-lint deps-abi deps-bench: ; @:
deps-cross: ; $(if $(CROSS),@:,$(error $(NO_CROSS)))

# It is done for two files that this Makefile includes: make brings these up to date before anything else, however many
# jobs there are, and then reads all of this again, on a machine where pkg-config knows what is there.
ifeq ($(DRY),)
ifneq ($(PACKAGES),)
include $(BUILD)/gen/installed
endif
ifneq ($(and $(CROSS),$(filter-out clean help format lint% man,$(or $(MAKECMDGOALS),all))),)
include $(SYSROOT)/.done
endif
endif

# $(call apt,PACKAGES[,MAKEFILE]): install those that are missing. Where that fails, MAKEFILE, which make reads next, ends make
# with the message: behind a failed rule make would print more.
apt = missing=$$(for p in $(1); do dpkg-query -Wf '$${db:Status-Status}' $$p 2>/dev/null | grep -q '^installed' || echo $$p; done); \
	[ -n "$$missing" ] || exit 0; echo '  APT  ' $$missing; \
	command -v apt-get >/dev/null || { echo "no apt-get here: install these by hand"; exit 0; }; \
	{ $(may-be-root) && { $(apt-get) update; $(apt-get) install --no-install-recommends $$missing >/dev/null; }; } || \
	$(if $(2),{ echo '$$(shell rm -f $(2))$$(error not installed; as root: apt-get install '$$missing')' >$(2); exit 0; },\
	{ echo '  --    not installed; as root:' apt-get install $$missing; exit 1; })
may-be-root = { [ $$(id -u) = 0 ] || command -v sudo >/dev/null; }
as-root = $$([ $$(id -u) = 0 ] || echo sudo)
apt-get = $(as-root) env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 </dev/null

$(BUILD)/gen/installed: FORCE
	@mkdir -p $(@D); [ -e $@ ] || : >$@
	$(if $(MAKE_RESTARTS),,@$(call apt,$(PACKAGES),$@) && touch $@)

# $(OUT)/gen/found-GROUP: the compiler and the headers are there that such sources need.
HEADERS_lib   := stdio.h:libc6-dev liburing.h:liburing-dev
HEADERS_apps  := openssl/evp.h:libssl-dev jansson.h:libjansson-dev
HEADERS_tests := $(HEADERS_lib) $(HEADERS_apps) cmocka.h:libcmocka-dev
$(OUT)/gen/found-lib $(OUT)/gen/found-apps: INSTALLER := deps-build
$(OUT)/gen/found-tests: INSTALLER := deps-test
$(OUT)/gen/found-%: $(OUT)/gen/flags
	@lacking=$$(for c in $(firstword $(CC)) $(firstword $(PKG_CONFIG_PROGRAM)); do command -v $$c >/dev/null || echo $$c; done; \
		! command -v $(firstword $(CC)) >/dev/null || for h in $(HEADERS_$*); do \
			printf '#if !__has_include(<%s>)\n%s\n#endif\n' $${h%%:*} $${h#*:}; done | $(CC) $(INCLUDE) $(CPPFLAGS) $(CFLAGS) -MF /dev/null -E -P - | xargs); \
	[ -z "$$lacking" ] || { echo '  --    not here:' $$lacking'; "make $(if $(CROSS),CROSS=$(CROSS) deps-cross,$(INSTALLER))" installs what is needed'; exit 1; }; touch $@
$(LIB_OBJ): | $(OUT)/gen/found-lib
$(patsubst %.c,$(OBJ)/%.o,$(wildcard apps/*.c apps/*/*.c)): | $(OUT)/gen/found-lib $(OUT)/gen/found-apps
$(sort $(TEST_OBJ) $(TEST_LIB) $(MODEL_OBJ) $(SCENE_OBJ) $(BOARD_OBJ)): | $(OUT)/gen/found-tests

ARCH_s390x-linux-gnu   := s390x
ARCH_aarch64-linux-gnu := arm64
FOREIGN  := $(ARCH_$(CROSS))
NO_CROSS := CROSS is aarch64-linux-gnu or s390x-linux-gnu

.PRECIOUS: $(BUILD)/sysroot-%/packages
$(BUILD)/sysroot-%/packages: FORCE
	$(call update,echo $(SYSROOT_PACKAGES))

$(BUILD)/sysroot-%/.done: $(BUILD)/sysroot-%/packages
	$(if $(FOREIGN),,$(error $(NO_CROSS)))
	@$(call apt,$(DEPS_CROSS))
	@dpkg --print-foreign-architectures | grep -qx $(FOREIGN) || \
		{ $(may-be-root) && $(as-root) dpkg --add-architecture $(FOREIGN) && $(apt-get) update; } || \
		{ echo '  --    no packages of $(FOREIGN); as root: dpkg --add-architecture $(FOREIGN) && apt-get update'; exit 1; }
	@mkdir -p $(@D)/deb; rm -f $(@D)/deb/*; cd $(@D)/deb && apt-get -qq -o APT::Sandbox::User=root download $(SYSROOT_PACKAGES:%=%:$(FOREIGN))
	@for d in $(@D)/deb/*.deb; do dpkg -x $$d $(@D) || exit 1; done; touch $@

clean:					## remove everything built
	rm -rf $(BUILD)

help:					## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r goal text; do printf '  make %-14s %s\n' "$$goal" "$$text"; done

FORCE:
.PHONY: all lib test-programs test cross-programs cross-test demo bench bench-near bench-net bench-modes objects lint $(addprefix lint-,arrows format columns names headers gcc clang hot floors man) format man abi abi-record install uninstall clean help FORCE \
	deps deps-build deps-test deps-man deps-lint deps-abi deps-bench deps-cross

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(TEST_OBJ) $(TEST_LIB) $(MODEL_OBJ) $(SCENE_OBJ) $(BOARD_OBJ)) \
	$(patsubst %.c,$(OBJ)/%.d,$(wildcard apps/*.c apps/*/*.c))
