/*
 * Receive data from a host over TCP, and print how much it was
 *
 *     receive ADDRESS PORT
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
    static char buffer[1 << 16];
    struct sockaddr_in host = { .sin_family = AF_INET };
    int s = socket(AF_INET, SOCK_STREAM, 0);
    unsigned long total = 0;
    ssize_t n;

    if (argc != 3) {
        errx(1, "usage: receive ADDRESS PORT");
    }
    host.sin_addr.s_addr = inet_addr(argv[1]);
    host.sin_port = htons(atoi(argv[2]));
    if (connect(s, (struct sockaddr *)&host, sizeof(host)) < 0) {
        err(1, "connect");
    }
    while ((n = recv(s, buffer, sizeof(buffer), 0)) > 0) {
        total += n;
    }
    if (n < 0) {
        err(1, "recv");
    }
    printf("@@@ received %lu\n", total);
    return 0;
}
