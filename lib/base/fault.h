/* SPDX-License-Identifier: MIT */
/*
 * Faults that tests inject, to show that a missing message or a NaN does not pass unnoticed.
 *
 * The library's definition injects none. Programs of tests are linked with
 * tests/fault-injection.c, whose definition reads the environment, before the library.
 */
#ifndef DT_BASE_FAULT_H
#define DT_BASE_FAULT_H

#include <stdbool.h>

enum dt_fault {
    DT_FAULT_SKIP_EXCHANGE,  /* number: of an all-to-all among the operations of its group */
    DT_FAULT_SKIP_BLOCK,     /* number: context-parallel rank whose keys are not used */
    DT_FAULT_SKIP_REDUCTION, /* number: bucket whose gradients are not reduced */
    DT_FAULT_SKIP_TIED,      /* number: 1; the sum of a tied embedding's two gradients */
    DT_FAULT_POISON          /* number: step whose gradients are NaN */
};

/* Whether the fault is to occur at that number. False in released programs. */
bool dt_fault_injected(enum dt_fault fault, long number);

#endif
