/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that counts a part of itself with PAPI. */
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>
#include "known.h"

static void check(int result)
{
    if (result != PAPI_OK) {
        fprintf(stderr, "%s\n", PAPI_strerror(result));
        exit(1);
    }
}

int main(void)
{
    long long counts[2];
    int set = PAPI_NULL;

    PAPI_library_init(PAPI_VER_CURRENT);
    check(PAPI_create_eventset(&set));
    check(PAPI_add_event(set, PAPI_TOT_INS));
    check(PAPI_add_event(set, PAPI_BR_INS));
    check(PAPI_start(set));
    known();
    check(PAPI_stop(set, counts));
    printf("%lld %lld\n", counts[0], counts[1]);
    return 0;
}
