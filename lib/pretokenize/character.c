/* SPDX-License-Identifier: MIT */
#include "pretokenize/character.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "unicode/unicode.h"

struct dt_character_table dt_character_table_all;

static uint8_t class_of(uint32_t code)
{
    if (code == '\n' || code == '\r')
        return DT_CHAR_NEWLINE;
    if ((code >= 0x09 && code <= 0x0d) || code == 0x85)
        return DT_CHAR_SPACE;
    switch (dt_unicode_category(code)) {
    case DT_CATEGORY_LU:
    case DT_CATEGORY_LT:
        return DT_CHAR_UPPER;
    case DT_CATEGORY_LL:
        return DT_CHAR_LOWER;
    case DT_CATEGORY_LM:
    case DT_CATEGORY_LO:
        return DT_CHAR_UNCASED;
    case DT_CATEGORY_MN:
    case DT_CATEGORY_MC:
    case DT_CATEGORY_ME:
        return DT_CHAR_MARK;
    case DT_CATEGORY_ND:
    case DT_CATEGORY_NL:
    case DT_CATEGORY_NO:
        return DT_CHAR_NUMBER;
    case DT_CATEGORY_ZS:
    case DT_CATEGORY_ZL:
    case DT_CATEGORY_ZP:
        return DT_CHAR_SPACE;
    case DT_CATEGORY_CN:
    case DT_CATEGORY_PC:
    case DT_CATEGORY_PD:
    case DT_CATEGORY_PS:
    case DT_CATEGORY_PE:
    case DT_CATEGORY_PI:
    case DT_CATEGORY_PF:
    case DT_CATEGORY_PO:
    case DT_CATEGORY_SM:
    case DT_CATEGORY_SC:
    case DT_CATEGORY_SK:
    case DT_CATEGORY_SO:
    case DT_CATEGORY_CC:
    case DT_CATEGORY_CF:
    case DT_CATEGORY_CS:
    case DT_CATEGORY_CO:
        break;
    }
    return DT_CHAR_OTHER;
}

/* The index of a stored block equal to classes; stores the block if it is new. */
static uint8_t intern_block(const uint8_t classes[256], unsigned *stored)
{
    for (unsigned i = 0; i < *stored; i++)
        if (memcmp(dt_character_table_all.classes[i], classes, 256) == 0)
            return (uint8_t)i;
    assert(*stored < DT_CHAR_BLOCKS);
    memcpy(dt_character_table_all.classes[*stored], classes, 256);
    return (uint8_t)(*stored)++;
}

static void fill_table(void)
{
    uint8_t classes[256];
    unsigned stored = 0;
    for (uint32_t block = 0; block < 0x1100; block++) {
        for (uint32_t i = 0; i < 256; i++)
            classes[i] = class_of(block << 8 | i);
        dt_character_table_all.block[block] = intern_block(classes, &stored);
    }
    memcpy(dt_character_table_all.byte,
           dt_character_table_all.classes[dt_character_table_all.block[0]], 128);
    memset(dt_character_table_all.byte + 128, DT_CHAR_MULTIBYTE, 128);
}

void dt_character_table_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_table);
}
