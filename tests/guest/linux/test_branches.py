# SPDX-License-Identifier: GPL-2.0-or-later
"""perf record -b: the last branches before each sample, by construction."""

import collections
import math
import re

from harness import (SKYLAKE, Machine, expectations, on, require,
                     require_equal, symbols)
from machines import (LBR_DENVERTON, LBR_GENOA, LBR_HASWELL, LBR_KNIGHTS,
                      LBR_NEHALEM, LBR_PENRYN, LBR_SAPPHIRE, LBR_SKYLAKE,
                      LBR_SNOWRIDGE, PEBS_ICELAKE, PEBS_SAPPHIRE)
from test_pebs import check_late, least_rest
from test_profile import profiled
from test_sampling import (INTERRUPTS, PINNED, SWITCH, Samples,
                           most_interrupted)

WITHOUT_PMU = Machine('without', cpu=SKYLAKE.replace('pmu=on', 'pmu=off'))

PERIOD = 10007
DEPTHS = {LBR_PENRYN: 4, LBR_KNIGHTS: 8, LBR_NEHALEM: 16, LBR_HASWELL: 16,
          LBR_SKYLAKE: 32, LBR_DENVERTON: 32, LBR_SNOWRIDGE: 32,
          LBR_SAPPHIRE: 32, PEBS_SAPPHIRE: 32, LBR_GENOA: 16}

# Kinds of branches, as perf's filters name them
CALL, INDIRECT_CALL, RETURN = 'call', 'ind_call', 'any_ret'
JUMP, INDIRECT_JUMP, CONDITIONAL = 'jump', 'ind_jmp', 'cond'

# As its output does
NAMES = {CALL: 'CALL', INDIRECT_CALL: 'IND_CALL', RETURN: 'RET',
         JUMP: 'UNCOND', INDIRECT_JUMP: 'IND', CONDITIONAL: 'COND'}

# By filter, what is left of a round of the loop of "calls".
FILTERS = {
    'any': {CALL, INDIRECT_CALL, RETURN, JUMP, INDIRECT_JUMP, CONDITIONAL},
    'any_call': {CALL, INDIRECT_CALL},
    'call': {CALL},
    'ind_call': {INDIRECT_CALL},
    'any_ret': {RETURN},
    'ind_jmp': {INDIRECT_JUMP},
    'cond': {CONDITIONAL},
    'any_call,any_ret': {CALL, INDIRECT_CALL, RETURN},
    'cond,ind_jmp': {CONDITIONAL, INDIRECT_JUMP},
}
FEW_FILTERS = ['any', 'any_call', 'cond,ind_jmp']
OTHER_FILTERS = [name for name in FILTERS if name not in FEW_FILTERS]
# Outside of transactions, of which TCG has none, in them, and their ends.
FILTERS_BY_TRANSACTIONS = {'any,no_tx': FILTERS['any'], 'any,in_tx': set(),
                           'abort_tx': set()}


# The instructions from one branch of it to the next
INSNS_IN_ROUND = [1, 1, 1, 1, 1, 1, 4, 1, 2]


def taken_in_round():
    """The branches that a round takes: kind, from, to."""
    at = symbols('calls')
    return [
        (CALL, at['call'], at['leaf']),
        (RETURN, at['leaf'], at['indirect_call']),
        (INDIRECT_CALL, at['indirect_call'], at['leaf']),
        (RETURN, at['leaf'], at['call_by_memory']),
        (INDIRECT_CALL, at['call_by_memory'], at['leaf']),
        (RETURN, at['leaf'], at['behind_calls']),
        (INDIRECT_JUMP, at['indirect_jump'], at['jump']),
        (JUMP, at['jump'], at['condition']),
        (CONDITIONAL, at['conditional'], at['call']),
    ]


def last_taken(nth, kinds, most):
    """The last ones of these kinds up to the @nth branch, the newest first."""
    taken = taken_in_round()
    found = []
    while nth > 0 and len(found) < most:
        kind, *branch = taken[(nth - 1) % len(taken)]
        if kind in kinds:
            found.append(tuple(branch))
        nth -= 1
    return found


# What prints what stacks() wants.
STACKS = 'samples brstack'


class Stack(list):
    """The branches of a sample, but for those by which the kernel returns from
    interrupts, which may be anywhere: of these only how many."""

    def __init__(self, branches):
        super().__init__(one for one in branches if one[0] < 1 << 63)
        self.returns = len(branches) - len(self)


def stacks(output):
    """Of each sample, its branches, as perf script -F brstack prints them."""
    samples = Samples()
    for line in output.splitlines():
        found = re.findall(r'0x([0-9a-f]+)/0x([0-9a-f]+)/', line)
        if found:
            samples.append(Stack([(int(source, 16), int(target, 16))
                                  for source, target in found]))
        elif SWITCH in line:
            samples.switch()
        elif not line.strip():
            # Linux has forgotten all of them.
            samples.append(Stack([]))
    return samples


def check_places(found, period, kinds, least):
    """As many branches as a sample has are the last ones: see check_depth().

    Linux is late for a sample, and on time for the next, if fewer events than
    the least were left of a period when it switched tasks.

    With a least of 32, a sample behind a switch may be anywhere in the loop: it
    is the others that show something, which are by far the most.
    """
    for number, stack in enumerate(found, 1):
        late = least if number in found.after_switch else 1
        wanted = [last_taken(number * period + more, kinds, len(stack))
                  for more in range(late)]
        require(stack in wanted, f'sample {number}: {stack}, not {wanted[0]}')


def check_depth(found, depth, most, hidden=0):
    """How many branches the samples have.

    Linux forgets all when it switches tasks, which only the next sample sees:
    all that is recorded is of less than a period.  In the others, each of at
    most so many interrupts has the place of one, its return, which is a branch,
    too; or of so many that are hidden, or both.
    """
    require_equal(max(len(stack) for stack in found), depth, 'branches')
    interrupts = 0
    for number, stack in enumerate(found, 1):
        if number in found.after_switch:
            continue
        missing = depth - len(stack) - stack.returns
        require(missing == 0 or 0 < missing <= depth and hidden,
                f'sample {number}: {missing} of {depth} are missing')
        interrupts += max(stack.returns,
                          math.ceil(missing / hidden) if missing else 0)
    require(interrupts <= most, f'{interrupts} interrupts, not {most}')


def in_loop(found, period=PERIOD):
    """The samples of `calls` that are of its loop: behind that there are
    others."""
    expected = expectations('calls')
    require_equal(len(found), expected['branches'] // period, 'samples')
    del found[expected['rounds'] * len(INSNS_IN_ROUND) // period:]
    return found


def is_last_taken(stack, nth):
    """Whether these are the branches up to the Nth."""
    return stack == last_taken(nth, FILTERS['any'], len(stack))


def record_calls(name):
    """A script that records `calls` by a filter, for check_calls()."""
    return f'''
        {INTERRUPTS}
        {PINNED} -j {name},u -e branches:u -c {PERIOD} calls
        {INTERRUPTS}
        {STACKS}'''


def hidden_returns(machine):
    """How many records of an interrupt's return Linux leaves out.

    Architectural records hide its source, which is in the kernel, if only the
    user's branches are recorded: Linux finds no branch there.
    """
    return 1 if 'SapphireRapids' in machine.cpu else 0


def hidden_by_interrupt(machine, name):
    """How many records an interrupt takes of which Linux shows nothing.

    Filters of the hardware are for where branches end: of an interrupt, only
    its return is recorded, and where far branches are recorded for the calls
    among them, Linux leaves it out.  Without such filters, an interrupt takes
    all records.
    """
    if machine is LBR_PENRYN:
        return DEPTHS[machine]
    if name == 'any_call':
        return 1
    return hidden_returns(machine) if name in ['any', 'any_ret'] else 0


def check_calls(machine, output, name, kinds):
    found = in_loop(stacks(output))
    check_places(found, PERIOD, kinds, least_rest(machine))
    taken = [kind for kind, *_ in taken_in_round()]
    depth = DEPTHS[machine] if kinds else 0
    # How far the records go back
    reach = depth * len(taken) // (sum(kind in kinds for kind in taken) or 1)
    check_depth(found, depth, most_interrupted(output, reach, PERIOD),
                hidden_by_interrupt(machine, name))


@on(LBR_SKYLAKE, LBR_HASWELL, each=FEW_FILTERS)
@on(LBR_GENOA, PEBS_SAPPHIRE, each=['any', 'any_call'])
@on(more=(LBR_GENOA, PEBS_SAPPHIRE), each=['cond,ind_jmp'])
@on(more=(LBR_SKYLAKE, LBR_HASWELL, LBR_GENOA, PEBS_SAPPHIRE),
    each=OTHER_FILTERS)
@on(LBR_PENRYN, each=['any'])
@on(LBR_NEHALEM, each=['any', 'cond', 'ind_jmp'])
@on(LBR_KNIGHTS, each=['any', 'any_call', 'cond'])
@on(LBR_DENVERTON, LBR_SNOWRIDGE, each=FEW_FILTERS)
def test_branches_before(guest, machine, name):
    """Each record of each sample is the branch that was taken there."""
    check_calls(machine, guest.run(record_calls(name)), name, FILTERS[name])


@on(LBR_PENRYN, each=['any_call', 'any_ret', 'cond,ind_jmp'])
def test_branches_left(guest, machine, name):
    """Of all branches, which are few, Linux leaves those of the filter, where
    the hardware has none."""
    output = guest.run(record_calls(name))
    found = in_loop(stacks(output))
    left = {tuple(branch) for kind, *branch in taken_in_round()
            if kind in FILTERS[name]}
    interrupted = 0
    for number, stack in enumerate(found, 1):
        late = least_rest(machine) if number in found.after_switch else 1
        wanted = [[branch for branch in last_taken(
                       number * PERIOD + more, FILTERS['any'], DEPTHS[machine])
                   if branch in left] for more in range(late)]
        # Fewer behind an interrupt, or a switch
        require(stack in [one[:len(stack)] for one in wanted],
                f'sample {number}: {stack}, not {wanted[0]}')
        interrupted += (stack not in wanted
                        and number not in found.after_switch)
    most = most_interrupted(output, DEPTHS[machine], PERIOD)
    require(interrupted <= most, f'{interrupted} are short, not {most}')


@on(LBR_SKYLAKE, LBR_HASWELL, each=FILTERS_BY_TRANSACTIONS,
    more=[PEBS_SAPPHIRE])
def test_branches_of_transactions(guest, machine, name):
    """All branches are outside of transactions."""
    check_calls(machine, guest.run(record_calls(name)), name,
                FILTERS_BY_TRANSACTIONS[name])


# What prints what indexes() wants: switches, and of each sample the third line
# of 16 bytes.
DUMPED = f'''perf script -i /tmp/data -D | awk '
    /{SWITCH}/
    $2 == "0000:" {{ is_sample = $3 == "09" }}
    $2 == "0020:" && is_sample' '''


def indexes(output):
    """Of each sample with branches, the hardware's index of the newest one."""
    found = Samples()
    for switch, line in re.findall(
            rf'({SWITCH})|0020: ((?: [0-9a-f]{{2}}){{16}})', output):
        if switch:
            found.switch()
            continue
        data = bytes.fromhex(line)
        number, index = (int.from_bytes(data[at:at + 8], 'little')
                         for at in (0, 8))
        found.append(index if number else None)
    return found


def check_forgotten(found, number):
    """Only behind a switch a sample has no branches, and so no index."""
    require(number in found.after_switch, f'sample {number} has no branches')


def rounds_until(nth):
    """The conditional ones of the first N branches, which end a round each."""
    return nth // len(taken_in_round())


@on(LBR_SKYLAKE, LBR_HASWELL, LBR_NEHALEM, LBR_DENVERTON)
def test_indexes_of_branches(guest, machine):
    """Samples tell where the hardware has the newest record.

    The filter has no branches that may be an interrupt's: what is recorded is
    known, and where the first was is one number.
    """
    found = in_loop(indexes(guest.run(f'''
        {PINNED} -j cond,hw_index,u -e branches:u -c {PERIOD} calls
        {DUMPED}''')))
    depth = DEPTHS[machine]
    first = set(range(depth))
    for number, index in enumerate(found, 1):
        late = least_rest(machine) if number in found.after_switch else 1
        if index is None:
            check_forgotten(found, number)
            continue
        require(index < depth, f'sample {number}: {index}')
        first &= {(index - rounds_until(number * PERIOD + more)) % depth
                  for more in range(late)}
        require(first, f'sample {number}: {index} after {found[:number]}')


@on(PEBS_SAPPHIRE, LBR_GENOA)
def test_no_indexes_of_branches(guest, machine):
    """Where the newest record is always the first, samples say so."""
    found = in_loop(indexes(guest.run(f'''
        {PINNED} -j any,hw_index,u -e branches:u -c {PERIOD} calls
        {DUMPED}''')))
    for number, index in enumerate(found, 1):
        if index is None:
            check_forgotten(found, number)
        else:
            require_equal(index, 0, f'sample {number}')


@on(PEBS_SAPPHIRE, more=(LBR_SKYLAKE, LBR_GENOA))
def test_calls_of_kernel(guest, machine):
    """What a filter of kinds leaves of the kernel's branches is calls, which
    end where a function begins; but for the calls in thunks, of themselves."""
    output = guest.run(f'''
        {PINNED} -j any_call,k -e branches:k -c 10007 syscalls
        perf script -i /tmp/data -F brstacksym''')
    found = re.findall(r'(\S+)\+0x([0-9a-f]+)/(\S+)\+0x([0-9a-f]+)/', output)
    require(len(found) >= 1000, f'{len(found)} calls')
    inside = collections.Counter(
        (source, target) for source, _, target, offset in found
        if int(offset, 16) and source != target)
    require(not inside, f'calls into the midst of functions: {inside}')


@on(LBR_GENOA, more=(LBR_SKYLAKE, LBR_HASWELL, PEBS_SAPPHIRE))
def test_branches_of_kernel(guest, machine):
    """The filter is for where branches end: most come from the kernel, too,
    and those that do not enter it.  In architectural records the source of
    these is hidden, and Linux leaves them out."""
    output = guest.run(f'''
        {PINNED} -j any,k -e branches:k -c 10007 syscalls
        perf script -i /tmp/data -F brstack''')
    found = [(int(source, 16) >> 63, int(target, 16) >> 63)
             for source, target in re.findall(
                 r'0x([0-9a-f]+)/0x([0-9a-f]+)/', output)]
    require(len(found) >= 1000, f'{len(found)} branches')
    require(all(target for _, target in found), 'some end in user mode')
    within = sum(source for source, _ in found)
    # There are more than ten branches in a system call.
    require(len(found) * 8 // 10 <= within
            and (within == len(found)) == (machine is PEBS_SAPPHIRE),
            f'{within} of {len(found)} are within the kernel')


@on(PEBS_ICELAKE, PEBS_SAPPHIRE)
def test_branches_in_records(guest, machine):
    """They are as exact in what PEBS writes, which takes them there at once."""
    output = guest.run(f'''
        {INTERRUPTS}
        {PINNED} -j any,u -e branches:uppp -c {PERIOD} calls
        {INTERRUPTS}
        {STACKS}''')
    found = in_loop(stacks(output))
    check_late(found, PERIOD, least_rest(machine, 3), is_last_taken)
    check_depth(found, 32, most_interrupted(output, 32, PERIOD),
                hidden_returns(machine))


def types(output):
    """Of each sample that has branches, these: from, to, cycles, type."""
    samples = [re.findall(r'0x([0-9a-f]+)/0x([0-9a-f]+)/P/-/-/(\d+)/(\w*)',
                          line) for line in output.splitlines()]
    return [[(int(source, 16), int(target, 16), int(cycles), kind)
             for source, target, cycles, kind in sample]
            for sample in samples if sample]


@on(LBR_SKYLAKE, LBR_DENVERTON, LBR_SNOWRIDGE, PEBS_SAPPHIRE)
def test_types_of_branches(guest, machine):
    """The hardware tells what time a branch took, and it, or Linux by the code,
    of what type it was."""
    period = 200003
    output = guest.run(f'''
        {INTERRUPTS}
        {PINNED} -j any,save_type,u -e branches:u -c {period} calls
        {INTERRUPTS}
        {STACKS}''')
    found = in_loop(stacks(output), period)
    check_places(found, period, FILTERS['any'], least_rest(machine))
    check_depth(found, 32, most_interrupted(output, 32, period),
                hidden_returns(machine))
    wanted = {tuple(branch): (NAMES[kind], insns) for (kind, *branch), insns
              in zip(taken_in_round(), INSNS_IN_ROUND)}
    told = set()
    for sample in types(output):
        # Behind an interrupt it is less, and what was before the oldest is not
        # known.
        for (*branch, cycles, kind), before in zip(sample, sample[1:]):
            if tuple(branch) in wanted and before[0] < 1 << 63:
                require_equal((kind, cycles), wanted[tuple(branch)],
                              f'branch at {branch[0]:x}')
                told.add(tuple(branch))
    require_equal(told, set(wanted), 'branches')


@on(PEBS_SAPPHIRE, more=(LBR_SKYLAKE, LBR_HASWELL))
def test_callers_by_branches(guest, machine):
    """Who called a loop, without frame pointers."""
    at = symbols('chain')
    behind = expectations('chain')
    callers = [behind[f'behind_good_{n}'] for n in (1, 2, 3)]
    period = 100003
    output = guest.run(f'''
        {PINNED} --call-graph lbr -e instructions:u -c {period} chain
        perf script -i /tmp/data -F ip''')
    chains = [[int(word, 16) for word in chain.split()]
              for chain in output.split('\n\n') if chain.strip()]
    # The loop is in a function; instead of the sample's address, perf shows
    # where the last call went.
    chains = [chain[1:] for chain in chains if chain[0] == at['inner']]
    require_equal(len(chains), behind['insns_in_good'] // period,
                  'samples of the loop')
    # When it switches tasks, Linux keeps them for the next time.
    for chain in chains:
        # A call has five bytes.
        require_equal([call + 5 for call in chain], callers, 'callers')


# The instructions of a round that are no branches: how far behind a label.
BETWEEN = {'behind_calls': [0, 1, 2], 'condition': [0]}


def straight_code(start, end):
    """The addresses of what is executed from a branch to the next."""
    at = symbols('calls')
    others = [at[label] + distance for label, distances in BETWEEN.items()
              if at[label] == start for distance in distances]
    return [*others, end]


def decoded(output):
    """Of each sample, its stack, and the instructions that perf finds between
    the branches: addresses, and whether they are branches."""
    samples = Samples()
    for line in output.splitlines():
        insn = re.match(r'\s*([0-9a-f]{8,})\s+insn:( [0-9a-f]{2})+\s*(# )?',
                        line)
        if SWITCH in line:
            samples.switch()
        elif insn:
            samples[-1][1].append((int(insn.group(1), 16),
                                   insn.group(3) is not None))
        elif re.match(r' +[0-9a-f]+( |$)', line):
            # Of some, Linux has forgotten all when it switched.
            samples.append((*stacks(line), []) if '/' in line
                           else (Stack([]), []))
        else:
            # What cannot be decoded perf says in other words.
            require(re.fullmatch(r'\s*([\w.+]+:)?\s*|interrupts \d+', line),
                    line)
    return samples


@on(PEBS_SAPPHIRE, LBR_GENOA, more=[LBR_SKYLAKE])
def test_code_between_branches(guest, machine):
    """Between two records there is code that leads from one to the other."""
    period = 20011
    output = guest.run(f'''
        {INTERRUPTS}
        {PINNED} -j any,u -e branches:u -c {period} calls
        {INTERRUPTS}
        samples ip,brstack,brstackinsn''')
    found = in_loop(decoded(output), period)
    interrupted = 0
    for number, (stack, insns) in enumerate(found, 1):
        if not stack:
            check_forgotten(found, number)
            continue
        require(is_of_rounds(stack), stack)
        if stack.returns:
            # The kernel's code is there, too.
            interrupted += 1
            continue
        branches = stack[::-1]
        # Of the oldest only its own address, of what follows the newest only
        # the instruction at which the sample was taken.
        wanted = [(branches[0][0], True)]
        for (_, start), (end, _) in zip(branches, branches[1:]):
            wanted += [(address, address == end)
                       for address in straight_code(start, end)]
        wanted.append((branches[-1][1], False))
        require_equal(insns, wanted, 'code')
    most = most_interrupted(output, 32, period)
    require(interrupted <= most, f'{interrupted} have an interrupt, not {most}')


def named_branches():
    """The branches of a round as perf names them: by symbols at both ends."""
    names = {address: name for name, address in symbols('calls').items()}

    def name_of(address):
        return names[max(one for one in names if one <= address)]

    return {(name_of(start), name_of(end))
            for _, start, end in taken_in_round()}


@on(LBR_SKYLAKE, more=(PEBS_SAPPHIRE, LBR_GENOA))
def test_report_of_branches(guest, machine):
    """All branches of the loop have the same share."""
    output = guest.run(f'''
        {PINNED} -j any,u -e branches:u -c {PERIOD} calls
        perf report -i /tmp/data --stdio --stdio-color never -q \
            --sort symbol_from,symbol_to''')
    found = {(start, end): float(share) for share, start, end in re.findall(
        r'([\d.]+)%\s+\[.\] (\S+)\s+\[.\] (\S+)', output)}
    shares = [found.get(branch, 0) for branch in named_branches()]
    mean = sum(shares) / len(shares)
    # A ninth is 11.1 %, and a little is recursion's and the kernel's.  Nine
    # samples on end begin at nine branches, so that these have as many records
    # in them.  Some 600 are of each branch; one more or less for each sample
    # behind the last nine, or with an interrupt in it: a twentieth is 30.
    require(mean > 10 and max(shares) - min(shares) < mean / 20, found)


@on(LBR_SKYLAKE, more=[PEBS_SAPPHIRE])
def test_history_of_branches(guest, machine):
    """perf shows what led to a sample, branch by branch, as a callchain."""
    output = guest.run(f'''
        {PINNED} -j any,u -e branches:u -c {PERIOD} calls
        perf report -i /tmp/data --stdio --stdio-color never -q \
            --branch-history --sort sym''')
    lines = re.findall(r'([\w.]+) \+\d+( \(cycles:|)', output)
    # Where a branch went, and below that whence it came
    found = [(start, end) for (end, none), (start, cycles)
             in zip(lines, lines[1:]) if cycles and not none]
    known = [branch for branch in found if branch in named_branches()]
    # The last sample is of the recursion: six of a hundred.  A sample with an
    # interrupt in it has a chain of its own, of 11 branches.  The kernel's line
    # there may have no symbol; then its neighbours are taken for a branch.
    require(len(known) >= 50 and len(known) >= len(found) * 3 // 4,
            f'{len(known)} of {len(found)} branches are of the loop')
    require_equal(set(known), named_branches(), 'branches of the loop')


def is_of_rounds(stack):
    """Whether branches followed each other so in the loop."""
    taken = [tuple(branch) for _, *branch in reversed(taken_in_round())]
    first = taken.index(stack[0])
    return stack == [taken[(first + n) % len(taken)]
                     for n in range(len(stack))]


# With the period of who samples inside, all samples would come right behind its
# interrupts, or none.
PERIOD_OUTSIDE = 11003


def check_from_outside(found, most):
    """These are samples of branches from before, in, and behind the loop; at
    most so many have an interrupt among their branches."""
    taken = {tuple(branch) for _, *branch in taken_in_round()}
    of_loop = [stack for stack in found if not taken.isdisjoint(stack)]
    least = expectations('calls')['rounds'] * len(taken) // PERIOD_OUTSIDE
    # The period was somewhere when the loop began, and its last branches may be
    # in a sample that is taken behind it; one may be of another program that
    # came meanwhile.
    require(least - 1 <= len(of_loop) <= least + 2 + most,
            f'{len(of_loop)} samples of {least} are of the loop')
    # Behind an interrupt, or where the loop begins or ends, there may be
    # another program; however many come, it is not in every twentieth.
    samples = expectations('calls')['branches'] // PERIOD_OUTSIDE
    alone = [stack for stack in of_loop if taken.issuperset(stack)]
    require(len(alone) >= max(len(of_loop) - 2 - most, samples * 19 // 20),
            f'{len(of_loop) - len(alone)} have branches of others')
    for stack in alone:
        require(is_of_rounds(stack), stack)
        require_equal(len(stack) + stack.returns, 32, 'branches')
    returns = sum(stack.returns for stack in alone)
    require(returns <= most, f'{returns} have an interrupt, not {most}')


@on(WITHOUT_PMU, LBR_SKYLAKE)
def test_branches_from_outside(start, tmp_path, machine):
    """They are all there, whether the guest has a PMU or records, too."""
    inside = f'{PINNED} -j any_call,u -e branches:u -c {PERIOD} calls'
    profile, lines = profiled(start, tmp_path, machine, f'''
wait_for_test
{INTERRUPTS}
{inside if machine is LBR_SKYLAKE else 'calls'}
{INTERRUPTS}
echo @@@ end
perf script -i /tmp/data -F brstack | tail -n 10''', {
        'modes': 'u', 'event': 'branches', 'period': PERIOD_OUTSIDE,
        'branch-stack': True})
    check_from_outside(stacks(profile.script('brstack')), most_interrupted(
        '\n'.join(lines), 32, PERIOD_OUTSIDE))
    if machine is LBR_SKYLAKE:
        want = {tuple(branch) for kind, *branch in taken_in_round()
                if kind in FILTERS['any_call']}
        # Behind the loop there are others.
        calls = [stack for stack in stacks('\n'.join(lines))
                 if not want.isdisjoint(stack)]
        require(len(calls) > 5, f'{len(calls)} samples inside')
        require_equal({branch for stack in calls for branch in stack}, want,
                      'calls that the guest has recorded')
