# SPDX-License-Identifier: GPL-2.0-or-later
"""The terminal of the user."""

import contextlib
import os
import termios


def is_in_background():
    """Whether the terminal at standard input is another job's now."""
    try:
        return os.tcgetpgrp(0) != os.getpgrp()
    except OSError:
        # It is no controlling terminal, or another session's.
        return False


class Terminal:
    """The user's terminal, which leaves all to the guest's meanwhile."""

    def __init__(self):
        self.saved = None
        self.raw = None

    def enter(self):
        """Returns whether it is ours: another job may have it."""
        with contextlib.suppress(termios.error, OSError):
            if not self.saved and not is_in_background():
                import tty
                self.saved = termios.tcgetattr(0)
                # What was typed before is kept.
                tty.setraw(0, termios.TCSADRAIN)
                self.raw = termios.tcgetattr(0)
        return self.saved is not None

    def leave(self):
        """Restore it, if no other program has changed it since."""
        if self.saved:
            with contextlib.suppress(termios.error):
                if termios.tcgetattr(0) == self.raw:
                    termios.tcsetattr(0, termios.TCSADRAIN, self.saved)
            self.saved = None
