#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A hundred processes, one after the other.

n=0
while [ $n -lt 100 ]; do
    n=$((n + 1))
    /bin/true
done
