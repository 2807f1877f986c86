# SPDX-License-Identifier: GPL-2.0-or-later
"""The symbols of Debian's perf that perf's own tests look for.

Debian's perf is stripped, and the symbols that belong to it are not in
Debian's archive.  They can be told from what it has: a table of its workloads,
by name, and one of its functions, which is for unwinding.  What a workload
consists of is compiled without optimization, so that each call is there.

They are written as Debian's would be: to a file without code, which perf finds
by the name that the program has of it.
"""

import functools
import re
import subprocess

from harness import BUILD, require_equal

TREE = BUILD / 'download' / 'guest-x86_64'
PERF = TREE / 'usr' / 'bin' / 'perf'
SYMBOLS = BUILD / 'tests' / 'guest' / 'perf.debug'


def output_of(*command):
    return subprocess.run([*map(str, command)], check=True, text=True,
                          capture_output=True).stdout


class Program:
    """What there is in a program without symbols."""

    def __init__(self, path):
        self.path = path
        self.image = path.read_bytes()
        self.pointers = {
            int(at, 16): int(to, 16) for at, to in re.findall(
                r'^([0-9a-f]+) +[0-9a-f]+ R_X86_64_RELATIVE +([0-9a-f]+)$',
                output_of('readelf', '-rW', path), re.M)}
        self.functions = {
            int(start, 16): int(end, 16) for start, end in re.findall(
                r' FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)',
                output_of('readelf', '-W', '--debug-dump=frames', path))}
        self.sections = {
            name: (int(address, 16), int(size, 16))
            for name, address, size in re.findall(
                r'\] (\.\S+) +\S+ +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) ',
                output_of('readelf', '-SW', path))}

    def workload(self, name):
        """The function behind a pointer to this name.

        Constant strings are where the file has them.
        """
        found = [self.pointers[at + 8] for at, to in self.pointers.items()
                 if self.image[to:to + len(name) + 1] == name.encode() + b'\0'
                 and self.pointers.get(at + 8) in self.functions]
        require_equal(len(found), 1, f'functions of the workload {name}')
        return found[0]

    def code(self, function):
        return output_of('objdump', '-d', '--no-show-raw-insn',
                         f'--start-address={function:#x}',
                         f'--stop-address={self.functions[function]:#x}',
                         self.path)

    def called_by(self, function):
        """The functions of its own that a function calls, each once."""
        found = (int(to, 16) for to in re.findall(
            r'\tcall +([0-9a-f]+) ', self.code(function)))
        return list(dict.fromkeys(to for to in found if to in self.functions))

    def data_of(self, function):
        """The lowest address of what a function has in memory."""
        return min(int(to, 16) for to in re.findall(
            r'\(%rip\).* # ([0-9a-f]+) ', self.code(function)))

    def section(self, address):
        """Its name, and how far in it an address is."""
        return next((name, address - start)
                    for name, (start, size) in self.sections.items()
                    if 0 < start <= address < start + size)


def symbols_of_workloads(program):
    """Addresses of functions and of data, by name."""
    workload = {name: program.workload(name)
                for name in ('brstack', 'datasym', 'noploop', 'thloop')}
    bench, = program.called_by(workload['brstack'])
    foo, bar = program.called_by(bench)
    require_equal(program.called_by(foo), [bar], 'what brstack_foo calls')
    loop, = program.called_by(workload['thloop'])
    functions = {**workload, 'brstack_bench': bench, 'brstack_foo': foo,
                 'brstack_bar': bar, 'test_loop': loop}
    return functions, {'buf1': program.data_of(workload['datasym'])}


@functools.lru_cache
def perf_symbols():
    """Write them; return what to add to a guest."""
    program = Program(PERF)
    build_id = re.search(r'Build ID: (\w\w)(\w+)',
                         output_of('readelf', '-n', PERF)).groups()
    functions, data = symbols_of_workloads(program)
    # A symbol ends where the next one begins.
    ends = {program.functions[start] for start in functions.values()}
    for end in ends - set(functions.values()):
        functions[f'behind_{end:x}'] = end
    options = []
    for kind, symbols in (('function', functions), ('object', data)):
        for name, address in symbols.items():
            section, offset = program.section(address)
            options += ['--add-symbol',
                        f'{name}={section}:{offset:#x},local,{kind}']
    with_code = SYMBOLS.with_suffix('.part')
    output_of('objcopy', *options, PERF, with_code)
    output_of('objcopy', '--only-keep-debug', with_code, SYMBOLS)
    with_code.unlink()
    place = '/usr/lib/debug/.build-id/' + '/'.join(build_id) + '.debug'
    return [(SYMBOLS, place)]
