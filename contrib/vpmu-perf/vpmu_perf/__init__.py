# SPDX-License-Identifier: GPL-2.0-or-later
"""perf in a guest that has a PMU.

A call makes or loads a guest (guests, from cache), tells it what to run (job),
passes on its streams (session), and keeps what the next call will need again
(kept).  The commands that are not perf's are in commands; they call vpmu-perf.
"""
