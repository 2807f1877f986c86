# SPDX-License-Identifier: GPL-2.0-or-later
"""The recipes of contrib/ci as shell scripts, for systems without a forge.

A forge and Docker do nothing else with what these recipes have: they set
variables, copy files, and run steps one after the other.
"""

import re
import shlex

import yaml


def variables(values):
    return [f'export {name}={shlex.quote(value)}'
            for name, value in values.items()]


def script(lines):
    return '\n'.join(['set -e', *lines, ''])


def instructions(dockerfile):
    """Each with its words."""
    text = re.sub(r'^#.*\n|\\\n', '', dockerfile.read_text(), flags=re.M)
    return re.findall(r'^(\w+) +(.*)', text, re.M)


def image(dockerfile):
    """The image is the system itself, and its context this directory."""
    lines = []
    for instruction, words in instructions(dockerfile):
        lines += {'ARG': [], 'FROM': [], 'RUN': [words],
                  'COPY': [f'cp {words}'],
                  'ENV': [f'export {words}']}[instruction]
    return script(lines)


def gitlab_job(path, values, dockerfile):
    """A job that extends the template with these variables, in the image."""
    (job,) = yaml.safe_load(path.read_text()).values()
    return script([f'export {words}'
                   for instruction, words in instructions(dockerfile)
                   if instruction == 'ENV']
                  + variables({**job['variables'], **values}) + job['script'])


def action(path, place, inputs):
    """The steps of an action, in this place, that are not other actions."""
    what = yaml.safe_load(path.read_text())
    assert inputs.keys() == what['inputs'].keys()
    lines = variables({'GITHUB_ACTION_PATH': place})
    for step in what['runs']['steps']:
        if 'run' in step:
            lines += variables({
                name: re.sub(r'\$\{\{ inputs\.(\w+) \}\}',
                             lambda found: inputs[found[1]], value)
                for name, value in step['env'].items()})
            lines.append(step['run'])
    return script(lines)
