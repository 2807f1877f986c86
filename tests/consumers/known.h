/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KNOWN_H
#define KNOWN_H

void known(void);

#endif
