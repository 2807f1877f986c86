/*
 * libdebuginfod of the guests: it finds nothing
 *
 * Debian's perf is linked with a library that asks servers for debugging
 * information.  The guests reach none; but two thirds of what perf executes to
 * start would be spent on linking that library's own, curl, GnuTLS and Kerberos
 * among them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <errno.h>
#include <stddef.h>

typedef struct debuginfod_client debuginfod_client;

debuginfod_client *debuginfod_begin(void);
void debuginfod_end(debuginfod_client *client);
int debuginfod_find_debuginfo(debuginfod_client *client,
                              const unsigned char *build_id, int length,
                              char **path);
int debuginfod_find_source(debuginfod_client *client,
                           const unsigned char *build_id, int length,
                           const char *filename, char **path);

debuginfod_client *debuginfod_begin(void)
{
    return NULL;
}

void debuginfod_end(debuginfod_client *client)
{
}

int debuginfod_find_debuginfo(debuginfod_client *client,
                              const unsigned char *build_id, int length,
                              char **path)
{
    return -ENOSYS;
}

int debuginfod_find_source(debuginfod_client *client,
                           const unsigned char *build_id, int length,
                           const char *filename, char **path)
{
    return -ENOSYS;
}
