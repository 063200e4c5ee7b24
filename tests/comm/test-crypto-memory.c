/* SPDX-License-Identifier: MIT */
/* Where memory for OpenSSL is exhausted, a process ends by dt's message, not by a signal. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/crypto.h"

static long left = -1; /* allocations that succeed; -1: all */

void *__libc_malloc(size_t size);

/* The library's, in this program and its libraries. */
void *malloc(size_t size)
{
    if (left == 0)
        return NULL;
    left -= left > 0;
    return __libc_malloc(size);
}

/* What a process makes of a MAC if memory ends after that many allocations: its wait(2) status. */
static int make_mac(long allocations)
{
    static const uint8_t key[DT_KEY] = "a key";
    uint8_t mac[DT_KEY];
    const struct dt_crypto *crypto;
    struct dt_error err;
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL || dt_crypto_load(&crypto, &err) < 0)
            _exit(2);
        left = allocations;
        _exit(crypto->hmac(key, "text", 4, mac) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_process_without_memory_ends_with_status_1(void **state)
{
    int ended = 0;
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* it allocates for itself */
#endif
    for (long n = 0; n < 300; n++) {
        const int status = make_mac(n);
        assert_true(WIFEXITED(status));
        assert_in_range(WEXITSTATUS(status), 0, 1);
        ended += WEXITSTATUS(status);
    }
    assert_true(ended > 10);
    assert_int_equal(make_mac(-1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_without_memory_ends_with_status_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
