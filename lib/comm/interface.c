/* SPDX-License-Identifier: MIT */
#include "comm/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"

#define ELSEWHERE 0xc0000201u /* 192.0.2.1, TEST-NET-1 of RFC 5737; nothing is sent there */

/* The IPv4 address of an entry, 0 without one. */
static uint32_t address_of(const struct ifaddrs *i)
{
    struct sockaddr_in in;
    if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP))
        return 0;
    memcpy(&in, i->ifa_addr, sizeof in);
    return in.sin_addr.s_addr;
}

static int refuse(const char *name, const struct ifaddrs *all, struct dt_error *err)
{
    struct dt_buffer list = DT_BUFFER_EMPTY;
    char text[INET_ADDRSTRLEN];
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        uint32_t address = address_of(i);
        if (address)
            dt_buffer_printf(&list, "%s%s (%s)", list.size ? ", " : "", i->ifa_name,
                             inet_ntop(AF_INET, &address, text, sizeof text));
    }
    int rc = dt_fail(err, DT_EMISSING,
                     "distributed.interface: this machine has no network interface with an IPv4 "
                     "address, and no address, '%s', but %s",
                     name, list.size ? list.data : "none");
    dt_buffer_release(&list);
    return rc;
}

int dt_interface_find(const char *name, uint32_t *address, struct dt_error *err)
{
    struct ifaddrs *all = NULL;
    struct in_addr given = {0};
    *address = 0;
    if (getifaddrs(&all) < 0)
        return dt_fail_errno(err, "cannot list this machine's network interfaces");
    (void)inet_pton(AF_INET, name, &given);
    for (const struct ifaddrs *i = all; i && *address == 0; i = i->ifa_next) {
        uint32_t own = address_of(i);
        if (own && (own == given.s_addr || strcmp(i->ifa_name, name) == 0))
            *address = own;
    }
    int rc = *address ? 0 : refuse(name, all, err);
    freeifaddrs(all);
    return rc;
}

uint32_t dt_interface_towards(uint32_t address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
    socklen_t length = sizeof to;
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = address;
    bool routed = s >= 0 && connect(s, (struct sockaddr *)&to, sizeof to) == 0 &&
                  getsockname(s, (struct sockaddr *)&to, &length) == 0;
    if (s >= 0)
        close(s);
    return routed ? to.sin_addr.s_addr : 0;
}

uint32_t dt_interface_default(void)
{
    struct ifaddrs *all = NULL;
    uint32_t address = dt_interface_towards(htonl(ELSEWHERE));
    if (address == 0 && getifaddrs(&all) == 0)
        for (const struct ifaddrs *i = all; i && address == 0; i = i->ifa_next)
            address = i->ifa_flags & IFF_LOOPBACK ? 0 : address_of(i);
    freeifaddrs(all);
    return address ? address : htonl(INADDR_LOOPBACK);
}

uint32_t dt_interface_look_up(const char *host)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct sockaddr_in address = {0};
    if (inet_pton(AF_INET, host, &address.sin_addr) == 1)
        return address.sin_addr.s_addr;
    if (getaddrinfo(host, NULL, &hints, &found) == 0 && found->ai_addrlen == sizeof address)
        memcpy(&address, found->ai_addr, sizeof address);
    if (found)
        freeaddrinfo(found);
    return address.sin_addr.s_addr;
}
