# SPDX-License-Identifier: GPL-2.0-or-later
"""Names in documents and comments name something.

* documents (.md, .rst): what is marked as code names files, functions, types,
  options, variables and targets of make that there are; links lead to a file, a
  label, or a title of the same page;
* comments: the same for names of files, words with an underscore, and words
  with () behind them;
* kernel-doc: its name, and each of its @parameters, is declared behind it.

A name has to be a file's, or a word of code that is no comment, in this tree
or in QEMU's below it (as scripts/overlay leaves it, with our patches).
"""

import ast
import functools
import pathlib
import re
import subprocess

import pytest

from linux_guest import BUILD, ROOT
from tree import our_files

QEMU = BUILD / 'qemu-src'
THIS = str(pathlib.Path(__file__).resolve().relative_to(ROOT))

# Where QEMU's names are.
QEMU_PARTS = ['VERSION', 'MAINTAINERS', 'configure', 'meson.build',
              'meson_options.txt', 'qemu-options.hx', 'hmp-commands.hx',
              'accel', 'audio', 'chardev', 'configs', 'disas', 'docs', 'fpu',
              'gdb-xml', 'gdbstub', 'hw', 'include', 'linux-headers',
              'migration', 'monitor', 'plugins', 'qapi', 'replay', 'scripts',
              'stubs', 'system', 'target', 'tcg', 'tests/qtest', 'tests/unit',
              'util']

# Names that are others', and whose.  One that is not needed is an error.
OTHERS = {
    "Intel's": r'IA32_\w+|MSR_(LBR_INFO|LASTBRANCH)_x(_FROM_IP)?|'
               r'PERF_CAPABILITIES|(ALL|MEM_INST|MEM_UOPS|L1D_CACHE|'
               r'BR_INST|MISS_CAUSES|WALK)_\w+',
    "AMD's": r'PERF_CTLx?|LBR_SELECT|DBG_EXTN_CFG|SAMP_BR_TO',
    "Power's": r'(PM|SAMP)_\w+|FC(1_4|5_6)',
    "Linux's": r'(Documentation|arch|tools)/.*|check_hw_exists|'
               r'(power|p4)_pmu_\w+|(core|thread|trace)_imc|hv_(24x7|gpci)|'
               r'exit_group|(CHILD|PARENT)_\w+TID|perf_sample',
    "GLib's": r'G_MAXUINT64',
    "perf's": r'PERF_RECORD_\w+|call-graph|switch-output',
    "Valgrind's": r'trace-mem',
    "Node's and Perl's": r'(hash|random)-seed|PERL_\w+',
    "Rust's": r'BuildHasherDefault|DefaultHasher|HashMap',
    "an example's": r'counts\.json|counter\.py|malloc\.c',
    'made by a macro': r'step_[01]|signal_EVENT',
}

FILE = re.compile(r'(?<![\w.])(?:[\w.-]+/)*[\w*-][\w.*-]*\.'
                  r'(?:[chS]|inc|py|md|rst|sh|json|mak|patch|ld)\b(?!\()')
PATH = re.compile(r'(?<![\w./-])(?:\.\./)*[\w.*-]+(?:/[\w.*-]+)*/[\w.*-]*')
CALL = re.compile(r'\b([A-Za-z_]\w*)\(\)')
UNDERSCORE = re.compile(r'(?<![\w./$<-])[A-Za-z]\w*_\w+(?![\w*]|\.\w)')
TYPE = re.compile(r'\b[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+\b')
OPTION = re.compile(r'(?<![\w-])--?([a-z][a-z0-9]+(?:-[a-z0-9]+)*)\b')
PROPERTY = re.compile(r'(?<![\w-])((?:[a-z]+-)*v?pmu(?:-[a-z]+)+|x-[a-z-]+|'
                      r'[a-z]+(?:-[a-z]+)+(?==))(?![\w-]|\.(?:[ch]|rst)\b)')
TARGET = re.compile(r'\bmake ([a-z][a-z-]*)\b')

C_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*")', re.S)
HASH = re.compile(r'(?:^|(?<=\s))#(?:[ \t][^\n]*)?$', re.M)
KERNEL_DOC = re.compile(r'/\*\*\n \* (.*?)\*/(.*?)(?=/\*|\Z)', re.S)
LITERAL = {'.rst': re.compile(r'``(.+?)``', re.S),
           '.md': re.compile(r'(?<!`)`([^`]+)`(?!`)', re.S)}
BLOCK = {'.rst': re.compile(r'(?:^|\n)(?:\.\. code-block::.*|.*::)\n\n'
                            r'((?:[ \t]+.*\n|\n)+)'),
         '.md': re.compile(r'\n\n((?: {4}.*\n|\n)+)')}
LABEL = re.compile(r'^\.\. _([^`\n]+):$', re.M)
REFERENCE = re.compile(r':ref:`(?:[^`<]*<)?([^`>]+)>?`')
TITLE = re.compile(r'^(\S.*)\n([=~-])\2+$', re.M)
TO_TITLE = re.compile(r'(?<![`:])`([^`<]+)`_(?!_)')
LINK = {'.rst': re.compile(r':doc:`(?:[^`<]*<)?([^`>]+)>?`'),
        '.md': re.compile(r'\]\(([^)#:]+)\)')}


class Tree:
    """The files of this repository and, below it, of QEMU."""

    def __init__(self):
        self.files = {name: (ROOT / name).read_text(errors='replace')
                      for name in our_files()}
        self.paths = [pathlib.PurePath(name) for name in self.files]
        self.words = set()
        for name, text in self.files.items():
            # Not this file, which lists names.
            if kind_of(name, text) != 'document' \
                    and name != THIS:
                self.words.update(words_of(code_of(name, text)))

    def has_file(self, name, beside):
        """A path, or the end of one; @beside is that of who names it."""
        name = name.removeprefix('./').rstrip('/')
        if name.split('/')[0] == 'build' or not name.strip('*.'):
            return True                 # what is made
        for path in self.paths:
            for one in (path, *path.parents):
                if one.match(name):
                    return True
        return any(True for _ in QEMU.glob(name)) \
            or any(True for _ in (ROOT / beside).parent.glob(name)) \
            or in_qemu_by_name(name)


def in_qemu_by_name(name, found={}):
    """Whether a file of QEMU's ends so."""
    if not found:
        for part in QEMU_PARTS:
            for path in [QEMU / part, *(QEMU / part).rglob('*')]:
                found.setdefault(path.name, []).append(path)
    return any(path.match(name)
               for path in found.get(name.rsplit('/', 1)[-1], []))


def kind_of(name, text):
    if name.endswith(('.md', '.rst')):
        return 'document'
    if name.endswith(('.c', '.h', '.S', '.ld', '.inc')):
        return 'C'
    if name.endswith('.py') or re.match(r'#!.*python', text):
        return 'Python'
    if name.endswith('.patch'):
        return 'patch'
    return 'other'


def docstrings(text):
    """Those of a Python program, as they are written."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) \
                and ast.get_docstring(node) is not None:
            first = node.body[0]
            yield '\n'.join(lines[first.lineno - 1:first.end_lineno])


def comments_of(name, text):
    kind = kind_of(name, text)
    if kind == 'C':
        return '\n'.join(match[0] for match in C_CODE.finditer(text)
                         if not match[1])
    if kind == 'patch':
        added = '\n'.join(re.findall(r'^\+(.*)', text, re.M))
        return comments_of('.c', added) + '\n' + text.partition('\n---')[0]
    found = HASH.findall(text)
    if kind == 'Python':
        found += docstrings(text)
    return '\n'.join(found)


def code_of(name, text):
    kind = kind_of(name, text)
    if kind == 'C':
        return C_CODE.sub(lambda match: match[1] or ' ', text)
    if kind == 'patch':
        # A patch may also name what it removes.
        changed = '\n'.join(re.findall(r'^[+-](.*)', text, re.M))
        return code_of('.c', changed)
    for docstring in docstrings(text) if kind == 'Python' else []:
        text = text.replace(docstring, '', 1)
    return HASH.sub('', text)


def words_of(text):
    for word in re.findall(r'[A-Za-z_][\w-]*', text):
        yield word
        yield from word.split('-')


def names_in_comment(text):
    """The names of files, and of what a program has."""
    words = {*CALL.findall(text), *UNDERSCORE.findall(text)}
    return set(FILE.findall(text)), words


def names_in_document(text, suffix):
    """Those of what is marked as code, and targets of make."""
    files, words = set(), set()
    marked = LITERAL[suffix].findall(text)
    for part in marked + BLOCK[suffix].findall(text):
        part = ' '.join(part.split())
        files.update(FILE.findall(part))
        for pattern in CALL, UNDERSCORE, TYPE, OPTION, PROPERTY, TARGET:
            words.update(pattern.findall(part))
    for part in marked:
        if PATH.fullmatch(part) and (ROOT / part.split('/')[0]).is_dir():
            files.add(part)
    return files, words


def undeclared(text):
    """What kernel-doc describes that is not behind it."""
    text = re.sub(r'/\*(?!\*).*?\*/', '', text, flags=re.S)
    before = ''
    for comment, code in KERNEL_DOC.findall(text):
        # Several may stand before the code.
        comment = before + comment
        before = '' if code.strip() else comment
        if before:
            continue
        names = re.findall(r'^(?: \* )?(?:struct |enum )?(\w+) - ', comment,
                           re.M) + re.findall(r'^ \* @(\w+)[:,]', comment, re.M)
        yield from set(names) - set(words_of(code))


def bad_links(name, text, suffix):
    for link in LINK[suffix].findall(text):
        base = ROOT / 'docs' if link.startswith('/') \
            else (ROOT / name).parent
        path = base / link.lstrip('/')
        if suffix == '.rst':
            path = path.with_suffix('.rst')
        if not path.exists():
            yield link


def bad_references(text, labels):
    """Of a page: labels that no page has, and titles that it does not have."""
    yield from set(REFERENCE.findall(text)) - labels
    there = {title.lower() for title, _ in TITLE.findall(text)}
    for title in TO_TITLE.findall(text):
        title = ' '.join(title.split())
        if title.lower() not in there:
            yield f'"{title}"'


def missing_in_qemu(words):
    """Those of some words that QEMU's sources do not have either."""
    found = subprocess.run(
        ['grep', '-rohwF', '-f', '-', *QEMU_PARTS], cwd=QEMU, text=True,
        input='\n'.join(words), capture_output=True).stdout
    return words - set(found.splitlines())


@functools.lru_cache
def missing():
    """What there is not, by the path of the file that names it."""
    tree = Tree()
    labels = {label for name, text in tree.files.items()
              if name.endswith('.rst') for label in LABEL.findall(text)}
    wanted, wrong = {}, {}
    for name, text in tree.files.items():
        suffix = pathlib.PurePath(name).suffix
        wrong[name] = set()
        if kind_of(name, text) == 'document':
            files, words = names_in_document(text, suffix)
            wrong[name].update(bad_links(name, text, suffix))
            if suffix == '.rst':
                wrong[name].update(bad_references(text, labels))
        else:
            files, words = names_in_comment(comments_of(name, text))
            if suffix in ('.c', '.h'):
                wrong[name].update(undeclared(text))
        wrong[name].update(file for file in files
                           if not tree.has_file(file, name))
        wanted[name] = {word for word in words if word not in tree.words}
    nowhere = missing_in_qemu(set().union(*wanted.values()))
    return {name: wrong[name] | (wanted[name] & nowhere) for name in wrong}


def is_others(word):
    return any(re.fullmatch(names, word) for names in OTHERS.values())


def unknown_in(name):
    return {word for word in missing()[name] if not is_others(word)}


DOCUMENTS = [name for name in our_files() if kind_of(name, '') == 'document']


@pytest.mark.parametrize('name', DOCUMENTS)
def test_names_in(name):
    assert not unknown_in(name)


def test_names_in_comments():
    assert not {name: words for name in missing()
                if name not in DOCUMENTS and (words := unknown_in(name))}


@pytest.mark.parametrize('owner', OTHERS)
def test_names_of_others(owner):
    """They are needed."""
    assert any(re.fullmatch(OTHERS[owner], word)
               for words in missing().values() for word in words)
