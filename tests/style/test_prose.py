# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns of phrase that readers stumble over are rare.

They are counted in the comments and messages of C code and in documents.  A few
are good English; each has a limit in 10,000 words of a group.
"""

import re

import pytest

from linux_guest import ROOT
from tree import our_files

# Each turn of phrase, and its limit in 10,000 words.
PHRASES = {
    r'\bbehind\b': 1,
    r'\b(?:somebody|nobody|whoever)\b': 1,
    r'\bwhat (?:is|was|has|it|they|the|a)\b': 6,
    r'\bthose (?:of|that)\b': 3,
    r'\b(?:(?:is|has|have) none|has not)\b': 1.5,
    r'(?<![,;:]\n)(?:^|(?<=\. ))Of [a-z]': 1,
}
COMMENT = re.compile(r'/\*.*?\*/', re.S)
MESSAGE = re.compile(r'\b(?:error|warn|info)_(?:setg|append|report)\w*\([^;]*;')
DOCUMENT = re.compile(r'.+', re.S)
# What begins the lines of a comment, and none of its words.
MARK = re.compile(r'^[ \t]*(?:/\*+|\*/?) ?', re.M)
LITERAL = re.compile(r'"([^"\n]*)"')


def text_of(match):
    """The words for readers in a comment, a message or a document."""
    if match.re is MESSAGE:
        return ' '.join(LITERAL.findall(match[0]))
    return MARK.sub('', match[0])


def found_in(paths, pattern):
    """Of each place that matches, its path, its line, and its words."""
    for path in paths:
        text = (ROOT / path).read_text(errors='replace')
        for match in pattern.finditer(text):
            yield (path, text.count('\n', 0, match.start()) + 1,
                   text_of(match))


def texts_of(group):
    code = our_files('*.[ch]')
    if group == 'comments':
        return found_in(code, COMMENT)
    if group == 'messages':
        return found_in([path for path in code
                         if 'tests' not in path.split('/')], MESSAGE)
    return found_in(our_files('*.md', 'docs/*.rst', 'qapi/*.json'), DOCUMENT)


def places_of(phrase, texts):
    """Where it is, and how it goes on."""
    flags = re.M if 'Of' in phrase else re.M | re.I
    return [f'{path}:'
            f'{line + text.count(chr(10), 0, match.start())}: '
            + ' '.join(text[match.start():match.end() + 40].split())
            for path, line, text in texts
            for match in re.finditer(phrase, text, flags)]


@pytest.mark.parametrize('group', ['comments', 'messages', 'documents'])
def test_prose_of(group):
    texts = list(texts_of(group))
    words = sum(len(re.findall(r"[A-Za-z']+", text)) for *_, text in texts)
    assert words
    for phrase, limit in PHRASES.items():
        places = places_of(phrase, texts)
        assert len(places) * 10000 <= limit * words, '\n'.join(places)
