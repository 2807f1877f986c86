#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fifty pipelines of two processes, each of which does little.

n=0
while [ $n -lt 50 ]; do
    n=$((n + 1))
    /bin/echo $n | /usr/bin/sort > /dev/null
done
