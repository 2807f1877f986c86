# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with AMD's PMU under KVM that come from Debian's QEMU, which does not
send its registers.
"""

from l1 import differs
from registers import (FUNCTIONS, KVM, OURS, REGISTERS, STOCK, UNUSED, USED,
                       Bare, arrival, program)

TASKS = {'unused': UNUSED, 'used': USED}

# After a reset, all others are 0.
AFTER_RESET = {'c0000301': '3f'}


def script():
    yield FUNCTIONS
    for name, task in TASKS.items():
        yield f'phase {name}/leave'
        yield f'leave /tmp/{name} {STOCK} {KVM} {program(task)}'
        yield f'phase {name}/arrive; bare {OURS} {KVM} {arrival(name)}'
    yield 'phase end; cat /tmp/l2.phases'


class FromStock(Bare):
    def script(self):
        return script()

    def results_of_phases(self):
        yield ('l2/unused_pmu_comes_from_stock',
               self.verdict('unused/arrive', 'state/unused'))
        arrived = self.values('used/arrive', 'migration')
        yield 'l2/used_pmu_is_reset_by_stock', differs(
            {register: after for register, (_, after) in arrived.items()},
            {register: AFTER_RESET.get(register, '0')
             for register in REGISTERS})
