# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of vpmu-perf that are not perf's."""
