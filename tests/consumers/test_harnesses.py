# SPDX-License-Identifier: GPL-2.0-or-later
"""Harnesses of benchmarks that count by themselves, under `vpmu-perf run`.

Each calls `known`, and has to report as many instructions as it executes, and
some of its own.

scripts/build-consumers and scripts/build-vpmu-perf make what is needed.
"""

import json
import os
import pathlib
import re
import subprocess
import textwrap

import pytest

from linux_guest import BUILD, ROOT

pytestmark = pytest.mark.arch('x86_64')

TREE = BUILD / 'consumers'
LIBRARIES = TREE / 'usr' / 'lib' / 'x86_64-linux-gnu'
GOOGLE = BUILD / 'google-benchmark'
HERE = pathlib.Path(__file__).resolve().parent
PAGE = ROOT / 'docs' / 'system' / 'vpmu-perf-ci.rst'
VPMU_PERF = ROOT / 'contrib' / 'vpmu-perf' / 'vpmu-perf'

INSTRUCTIONS = 2000008
BRANCHES = 1000004


def run(*command, cwd, **environment):
    result = subprocess.run([str(word) for word in command], cwd=cwd,
                            env={**os.environ, **environment}, text=True,
                            capture_output=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def on_page(name):
    """The block of code that the page calls by a file's name."""
    block = re.search(rf'``{name}``.*?\n\.\. code-block:: \w+\n\n(.*?)\n\S',
                      PAGE.read_text(), re.S)
    return textwrap.dedent(block[1])


def with_papi(place):
    run('gcc', '-O1', f'-I{TREE}/usr/include', '-o', 'counted',
        HERE / 'counted.c', HERE / 'known.S', LIBRARIES / 'libpapi.so.7.0',
        cwd=place)
    counts = run(VPMU_PERF, 'run', './counted', cwd=place,
                 LD_LIBRARY_PATH=str(LIBRARIES))
    return map(int, counts.split())


def with_google(place):
    run('g++', '-O1', f'-I{GOOGLE}/include', '-o', 'counted',
        HERE / 'counted.cc', HERE / 'known.S', GOOGLE / 'libbenchmark.a',
        LIBRARIES / 'libpfm.a', cwd=place)
    said = run(VPMU_PERF, 'run', './counted', '--benchmark_format=json',
               '--benchmark_perf_counters=INSTRUCTIONS,BRANCHES',
               '--benchmark_min_time=10x', cwd=place)
    counts = json.loads(said)['benchmarks'][0]
    return counts['INSTRUCTIONS'], counts['BRANCHES']


def with_pytest(place):
    run('gcc', '-shared', '-o', 'libknown.so', HERE / 'known.S', cwd=place)
    (place / 'counter.py').write_text(on_page('counter.py'))
    (place / 'test_known.py').write_text('''
import ctypes
KNOWN = ctypes.CDLL('./libknown.so').known
def test_known(benchmark):
    benchmark.pedantic(KNOWN, rounds=3, warmup_rounds=1)
''')
    run(VPMU_PERF, '--write', 'run', '/usr/bin/python3', '-m', 'pytest',
        '--benchmark-timer=counter.instructions', '--benchmark-json=counts',
        'test_known.py', cwd=place, PYTHONHASHSEED='0',
        PYTHONPATH=f'.:{TREE}/usr/lib/python3/dist-packages')
    counts = json.loads((place / 'counts').read_text())
    return round(counts['benchmarks'][0]['stats']['min'] * 1e9), None


def with_criterion(place):
    """Debian has the crate with all that it needs; so no network is asked."""
    (place / 'src').mkdir()
    (place / 'src' / 'main.rs').write_text((HERE / 'counted.rs').read_text())
    (place / 'Cargo.toml').write_text('''
[package]
name = "counted"
version = "0.1.0"
edition = "2021"
[dependencies]
criterion = { version = "0.3", default-features = false }
libc = "0.2"
''')
    (place / '.cargo').mkdir()
    (place / '.cargo' / 'config.toml').write_text(f'''
[source.crates-io]
replace-with = "debian"
[source.debian]
directory = "{TREE}/usr/share/cargo/registry"
''')
    programs = TREE / 'usr' / 'bin'
    target = BUILD / 'criterion'
    run(programs / 'cargo', 'build', '--release', '--offline', cwd=place,
        CARGO_HOME=str(place / 'cargo'), CARGO_TARGET_DIR=str(target),
        KNOWN=str(HERE / 'known.S'), RUSTC=str(programs / 'rustc'),
        LD_LIBRARY_PATH=f'{LIBRARIES}:{TREE}/usr/lib/llvm-14/lib')
    said = run(VPMU_PERF, '--write', 'run', target / 'release' / 'counted',
               cwd=place)
    return float(re.search(r'\[[\d.]+ instructions ([\d.]+)', said)[1]), None


# How many instructions of its own each executes at most.
@pytest.mark.parametrize('count, extra', [
    (with_papi, 2000), (with_google, 100), (with_pytest, 20000),
    (with_criterion, 100)])
def test_counts(tmp_path, count, extra):
    instructions, branches = count(tmp_path)
    assert INSTRUCTIONS <= instructions < INSTRUCTIONS + extra
    if branches is not None:
        assert BRANCHES <= branches < BRANCHES + extra
