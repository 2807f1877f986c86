# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages with flame graphs, which d3-flame-graph draws.

A page is one file: it has the program that draws, and the data.
"""

import html
import json
import os

from .guest import CANNOT_RUN, Failure

FILES = ('d3-selection.min.js', 'd3-flamegraph.min.js',
         'd3-flamegraph-colorMapper.min.js', 'd3-flamegraph.css')

PAGE = '''<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>%(title)s</title>
<style>
%(css)s
body { font-family: sans-serif; margin: 1em; }
table { border-collapse: collapse; }
td, th { padding: 0.1em 0.8em; text-align: right; }
td:nth-child(n+4), th:nth-child(n+4) { text-align: left; }
tr.line { color: #666; }
.more { color: #c00; } .less { color: #06c; }
</style>
</head>
<body>
<h1>%(title)s</h1>
<p>%(about)s</p>
<p><input id="find" type="search" placeholder="find a name">
<button id="reset" type="button">whole graph</button></p>
<div id="chart"></div>
<div id="details">&nbsp;</div>
%(body)s
<script>%(select)s</script>
<script>%(draw)s</script>
<script>%(colors)s</script>
<script>
const data = %(data)s;
const compares = %(compares)s;
const chart = flamegraph().width(document.body.clientWidth).cellHeight(18)
    .selfValue(true).inverted(false).minFrameSize(1);
if (compares) {
    chart.computeDelta(true)
        .setColorMapper(flamegraph.colorMapper.differentialColorMapper);
}
chart.label(node => node.data.name + ': ' + node.value.toLocaleString('en')
    + (compares ? ' (' + (node.delta > 0 ? '+' : '')
                  + node.delta.toLocaleString('en') + ')' : ''));
chart.setDetailsElement(document.getElementById('details'));
d3.select('#chart').datum(data).call(chart);
document.getElementById('find').addEventListener('input',
    event => event.target.value ? chart.search(event.target.value)
                                : chart.clear());
document.getElementById('reset').addEventListener('click',
    () => chart.resetZoom());
</script>
</body>
</html>
'''


def read_parts(guest):
    """The program that draws, by the names of its files."""
    parts = {}
    for name in FILES:
        path = os.path.join(guest.drawing(), name)
        try:
            with open(path, encoding='utf-8') as f:
                parts[name] = f.read()
        except OSError:
            raise Failure(f'{path} is missing; "make vpmu-perf" makes it where '
                          'npm is installed', CANNOT_RUN) from None
    return parts


def write(guest, path, title, about, data, body='', compares=False):
    """Write a page with a flame graph."""
    parts = read_parts(guest)
    text = PAGE % {
        'title': html.escape(title), 'about': html.escape(about), 'body': body,
        'css': parts['d3-flamegraph.css'],
        'select': parts['d3-selection.min.js'],
        'draw': parts['d3-flamegraph.min.js'],
        'colors': parts['d3-flamegraph-colorMapper.min.js'],
        # No name ends the script.
        'data': json.dumps(data).replace('<', '\\u003c'),
        'compares': json.dumps(compares)}
    try:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
    except OSError as e:
        raise Failure(f'{path} cannot be written: {e.strerror}') from None


def node(name, value=0, delta=0):
    return {'name': name, 'value': value, 'delta': delta, 'children': []}


def line_nodes(a, b, key):
    """The lines of a function, with all that they execute."""
    from .diff import merge_lines
    nodes = []
    for old, new, before, now in merge_lines(a.lines(key), b.lines(key)):
        place = new or old
        name = f'{os.path.basename(place[0])}:{place[1]}' if place \
            else 'no line known'
        nodes.append(node(name, max(before, now), now - before))
    return nodes


def difference_data(difference, a, b):
    """Files, their functions, and the lines of functions that differ.

    The width is what is executed by the build that executes more of it.
    """
    changed = {(row['object'], row['function']): row
               for row in difference['functions']}
    objects = {}
    for key in sorted({*a.functions, *b.functions}):
        one = node(key[1])
        if key in changed and changed[key]['lines']:
            one['children'] = line_nodes(a, b, key)
        else:
            before, now = a.count(key), b.count(key)
            one['value'], one['delta'] = max(before, now), now - before
        objects.setdefault(key[0], node(key[0]))['children'].append(one)
    return {**node('all'), 'children': list(objects.values())}


def cells(change, before, now, name, place, kind):
    mark = 'more' if change > 0 else 'less'
    return (f'<tr class="{kind}"><td class="{mark}">{change:+,}</td>'
            f'<td>{before:,}</td><td>{now:,}</td><td>{html.escape(name)}</td>'
            f'<td>{html.escape(place)}</td></tr>\n')


def difference_table(difference):
    text = ('<h2>Functions and lines that differ</h2>\n<table>\n<tr>'
            '<th>difference</th><th>before</th><th>now</th><th>function</th>'
            '<th>where</th></tr>\n')
    for row in difference['functions']:
        calls = f', calls {row["calls-before"]:,} → {row["calls-now"]:,}' \
            if row['calls-before'] != row['calls-now'] else ''
        text += cells(row['change'], row['before'], row['now'],
                      row['function'], row['object'] + calls, 'function')
        for line in row['lines']:
            place = f'{line["file"]}:{line["line"]}' if line['file'] \
                else 'no line known'
            text += cells(line['change'], line['before'], line['now'],
                          line['text'], place, 'line')
    return text + '</table>\n'


def write_difference(guest, path, difference, a, b):
    old, new = difference['programs']
    change = difference['change']
    about = (f'{new} executes {abs(change):,} instructions '
             f'{"more" if change >= 0 else "less"} than {old}: '
             f'{difference["before"]:,} before, {difference["now"]:,} now. '
             'Red is more, blue is less. Files, functions and source lines; '
             'each instruction is counted.')
    write(guest, path, f'{old} and {new}', about,
          difference_data(difference, a, b), difference_table(difference),
          True)
