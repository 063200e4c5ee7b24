/* SPDX-License-Identifier: MIT */
#include "comm/handshake.h"

#include <string.h>
#include <unistd.h>

#include "base/system.h"

#define SIGN "dt-meet2" /* magic number and version */

_Static_assert(sizeof(struct dt_introduction) == 40 && sizeof(struct dt_call) == 48 + 2 * DT_KEY &&
                   sizeof(struct dt_answer) == 40 + DT_KEY &&
                   sizeof(struct dt_handshake) == 8 + 88 + 4 * DT_KEY,
               "no padding");

/* The HMAC of a name and of the handshake up to end. */
static bool derive(const struct dt_handshake *h, const struct dt_secret *s, const char *name,
                   const void *end, uint8_t out[DT_KEY])
{
    char input[16 + sizeof *h] = "";
    size_t bytes = (size_t)((const char *)end - (const char *)h);
    memcpy(input, name, strlen(name));
    memcpy(input + 16, h, bytes);
    return s->crypto->hmac(s->key, input, 16 + bytes, out);
}

static bool check(const struct dt_handshake *h, const struct dt_secret *s, const char *name,
                  const uint8_t proof[DT_KEY])
{
    uint8_t own[DT_KEY];
    return derive(h, s, name, proof, own) && s->crypto->equal(own, proof, DT_KEY);
}

static bool draw(uint8_t nonce[DT_KEY])
{
    return dt_system_draw(nonce, DT_KEY);
}

bool dt_handshake_challenge(struct dt_handshake *h)
{
    memcpy(h->challenge.sign, SIGN, sizeof h->challenge.sign);
    return draw(h->challenge.nonce);
}

bool dt_handshake_call(struct dt_handshake *h, const struct dt_secret *s)
{
    return memcmp(h->challenge.sign, SIGN, sizeof h->challenge.sign) == 0 && draw(h->call.nonce) &&
           derive(h, s, "call", h->call.proof, h->call.proof);
}

bool dt_handshake_check_call(const struct dt_handshake *h, const struct dt_secret *s, int own_rank)
{
    const struct dt_introduction *caller = &h->call.caller;
    return check(h, s, "call", h->call.proof) && h->call.called == own_rank && caller->rank >= 0 &&
           caller->rank < caller->size;
}

bool dt_handshake_answer(struct dt_handshake *h, const struct dt_secret *s)
{
    return derive(h, s, "answer", h->answer.proof, h->answer.proof);
}

bool dt_handshake_check_answer(const struct dt_handshake *h, const struct dt_secret *s)
{
    return check(h, s, "answer", h->answer.proof) && h->answer.listener.rank == h->call.called;
}

struct dt_channel *dt_handshake_channel(const struct dt_handshake *h, const struct dt_secret *s,
                                        int socket, bool called)
{
    uint8_t to_caller[DT_KEY], to_listener[DT_KEY];
    const enum dt_protection protection = h->call.caller.encrypts || h->answer.listener.encrypts
                                              ? DT_PROTECTION_CIPHER
                                          : dt_system_is_own_peer(socket) ? DT_PROTECTION_KERNEL
                                                                          : DT_PROTECTION_MAC;
    if (derive(h, s, "to the caller", h + 1, to_caller) &&
        derive(h, s, "to the listener", h + 1, to_listener))
        return called ? dt_channel_open(s->crypto, socket, protection, to_caller, to_listener)
                      : dt_channel_open(s->crypto, socket, protection, to_listener, to_caller);
    close(socket);
    return NULL;
}
