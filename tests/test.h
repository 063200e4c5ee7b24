/* SPDX-License-Identifier: MIT */
/* cmocka with the headers that it needs first. */
#ifndef DT_TEST_H
#define DT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
