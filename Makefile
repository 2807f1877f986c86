# SPDX-License-Identifier: GPL-2.0-or-later
#
# `make help` says what there is.  Everything that is made goes to BUILD.

ARCH ?= x86_64
export ARCH
BUILD ?= build
# What make takes for several directories, `make clean` would, too.
ifneq ($(words $(abspath $(BUILD))),1)
$(error BUILD is "$(BUILD)" in "$(CURDIR)", which has to be one path without a space)
endif
# As scripts/lib.sh finds it.
QEMU_SERIES ?= $(or $(shell expr '$(notdir $(abspath $(BUILD)))' : '\([0-9]*\.[0-9.]*\)$$'),$(if $(QEMU_SRC),$(shell sed -E 's/^([0-9]+\.[0-9]+)\.[0-4]?[0-9]$$/\1/' '$(QEMU_SRC)/VERSION')),10.0)
export QEMU_SERIES
SERIES_BUILD = $(if $(filter-out 10.0,$(QEMU_SERIES)),$(patsubst %/$(QEMU_SERIES),%,$(abspath $(BUILD)))/$(QEMU_SERIES),$(abspath $(BUILD)))
# For what does not find it by scripts/lib.sh.
with_build = BUILD=$(SERIES_BUILD)
SECONDS ?= 60

help:
	@echo 'make run          boot Linux and show the PMU at work'
	@echo 'make shell        boot the same guest, and give you its shell'
	@echo 'make check        test all of it; the last line has the total'
	@echo 'make check-more   run tests that would make a check too long'
	@echo 'make check-sanitized'
	@echo '                  run tests in QEMU built for sanitizers'
	@echo 'make soak         run for hours what fails rarely'
	@echo 'make check-hosts  run tests with QEMUs for other machines, emulated'
	@echo 'make check-builds run tests with QEMUs that are built in other ways'
	@echo 'make check-consumers'
	@echo '                  optimize a program by profiles of guests'
	@echo 'make fuzz         run random programs on all PMUs, and change streams'
	@echo 'make bench        measure what counting costs; writes docs/'
	@echo 'make bench-instructions'
	@echo '                  count what counting costs, on a busy machine, too'
	@echo 'make bench-cachegrind'
	@echo '                  compare vpmu-perf with Cachegrind; writes docs/'
	@echo 'make experiment   profile a guest that receives; writes docs/'
	@echo 'make conformance  compare all PMUs, by tests; writes docs/'
	@echo 'make mutants      look whether the tests notice faults; takes hours'
	@echo 'make series       write patches for QEMU 10.0, as git am takes them'
	@echo 'make check-series apply, build and test them one by one'
	@echo 'make build        only build QEMU and the guest'
	@echo '                  QEMU_SERIES=10.2, here and elsewhere: another QEMU than 10.0'
	@echo 'make vpmu-perf    build what contrib/vpmu-perf/vpmu-perf needs'
	@echo 'make install      put QEMU and vpmu-perf below DESTDIR/PREFIX'
	@echo 'make uninstall    remove them from there'
	@echo 'make deb          make a package for Debian of the same, in BUILD/deb'
	@echo 'make check-deb    try the package in clean systems, Debian 12 and 13'
	@echo 'make clean        remove what was built; keep what was downloaded'
	@echo 'make distclean    remove all that was made and downloaded'
	@echo
	@echo 'ARCH=ppc64          run a Power guest, not one of x86_64'
	@echo "AUTHOR='Name <mail>'"
	@echo "                    make deb: the package's maintainer"
	@echo 'SECONDS=60          make fuzz: for how long'
	@echo 'PREFIX=DIR          make install: there, not in /usr/local; see DESTDIR'
	@echo "ARCHES=x86_64       make install: only this guest's, not both"
	@echo "AUTHOR='N <A>'      make series: whose patches they are, if not git's user"
	@echo 'OUT=DIR             make series: there, not in build/series/out'
	@echo 'STEP=N LAST=N       make check-series: from this step, up to that one'
	@echo "QEMU_SRC=DIR        use this QEMU source tree, not Debian's of 10.0"
	@echo "QEMU_OPTIONS=...    more options for QEMU's configure"
	@echo 'DEBIAN_MIRROR=URL   use this mirror of Debian'
	@echo 'BUILD=DIR           make and download everything there, not in build'

packages:
	@scripts/install-packages

source: packages
	@scripts/fetch-qemu
	@scripts/overlay

qemu: source
	@scripts/build-qemu

guest: packages
	@scripts/build-guest

build: qemu guest

vpmu-perf: qemu
	@scripts/build-vpmu-perf

ARCHES ?= x86_64 ppc64
export ARCHES PREFIX DESTDIR

install:
	@for arch in $(ARCHES); do \
	    $(MAKE) --no-print-directory vpmu-perf ARCH=$$arch || exit; \
	done
	@scripts/install

uninstall:
	@scripts/install --uninstall

deb:
	@for arch in x86_64 ppc64; do \
	    $(MAKE) --no-print-directory vpmu-perf ARCH=$$arch || exit; \
	done
	@scripts/build-deb

check-deb: deb
	@scripts/install-packages python3-yaml
	@$(with_build) /usr/bin/python3 -m pytest tests/deb

run: build
	@$(with_build) scripts/demo/run

shell: build
	@$(with_build) scripts/guest-run

check: packages
	@scripts/check

check-more: source
	@ARCH=ppc64 scripts/build-nested
	@scripts/check --suite more

check-sanitized: packages
	@scripts/check-elsewhere sanitized threads

soak: packages
	@scripts/check --suite soak

check-hosts: packages
	@scripts/check-elsewhere arm64 s390x ppc64el-tcg armhf i386

check-builds: packages
	@scripts/check-elsewhere no-tcg least interpreter clang default

check-consumers: vpmu-perf
	@scripts/build-consumers
	@$(with_build) /usr/bin/python3 -m pytest -rP tests/consumers

fuzz: source
	@scripts/fuzz --seconds $(SECONDS)

bench:
	@$(MAKE) --no-print-directory build ARCH=x86_64
	@$(MAKE) --no-print-directory build ARCH=ppc64
	@scripts/build-qemu contrib-plugins
	@$(with_build) scripts/bench
	@$(MAKE) --no-print-directory bench-cachegrind

bench-instructions:
	@$(MAKE) --no-print-directory build ARCH=x86_64
	@$(MAKE) --no-print-directory build ARCH=ppc64
	@scripts/install-packages valgrind
	@$(with_build) scripts/bench-instructions

bench-cachegrind: vpmu-perf
	@scripts/install-packages valgrind luajit nodejs
	@$(with_build) scripts/bench-cachegrind

experiment:
	@$(MAKE) --no-print-directory build ARCH=x86_64
	@$(MAKE) --no-print-directory build ARCH=ppc64
	@scripts/experiment

conformance:
	@$(MAKE) --no-print-directory build ARCH=x86_64
	@$(MAKE) --no-print-directory build ARCH=ppc64
	@scripts/build-qemu tests/qtest/vpmu-test
	@$(with_build) scripts/conformance --write

mutants:
	@$(MAKE) --no-print-directory build ARCH=x86_64
	@$(MAKE) --no-print-directory build ARCH=ppc64
	@$(with_build) scripts/mutants

series: source
	@scripts/series $(if $(OUT),'$(OUT)')

check-series: qemu
	@STEP=$(STEP) LAST=$(LAST) scripts/check-series

# What is only half unpacked is nothing to keep.
clean:
	@mkdir -p $(SERIES_BUILD)
	cd $(SERIES_BUILD) && rm -rf qemu qemu.stamp qemu-[!p]* qemu-pp* \
	    tests check check-* snapshots guest-* functional-* nested-* vpmu-perf deb \
	    deb-* consumers benchmark mutants patches series logs *.part download/*.part
	cd $(SERIES_BUILD) && { [ -e qemu-pristine.stamp ] || rm -rf qemu-pristine; }

distclean: clean
	cd $(SERIES_BUILD) && rm -rf apt download firmware tools stock-* valgrind-* qemu-pristine* keyring [0-9]*.[0-9]*
	[ -L $(SERIES_BUILD) ] || rmdir --ignore-fail-on-non-empty $(SERIES_BUILD)

# What builds uses all CPUs by itself, and shows how far it is.
.NOTPARALLEL:

.PHONY: help packages source qemu guest build vpmu-perf install uninstall deb \
        check-deb run shell check check-more check-hosts check-builds check-sanitized \
        check-consumers fuzz soak bench bench-instructions bench-cachegrind \
        experiment conformance mutants series check-series clean distclean
