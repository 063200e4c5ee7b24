/* SPDX-License-Identifier: MIT */
/*
 * Private to config.json (config-json.c): what its parts share. config-reader.c has members,
 * config-architecture.c architectures, config-rope.c rope_scaling, config-layers.c what differs
 * between layers.
 */
#ifndef DT_SETTINGS_CONFIG_JSON_INTERNAL_H
#define DT_SETTINGS_CONFIG_JSON_INTERNAL_H

#include "settings/model-config.h"
#include "settings/rope-keys-internal.h"
#include "json/json.h"

/* Reads a file. Members that code has asked for are known; others are refused at the end. */
struct dt_config_reader {
    struct dt_model_config *config;
    const struct dt_family_json *family;
    struct json_object *object;
    struct json_object *known; /* a member for each name asked for */
    const char *path;          /* begins errors */
};

/* Whether the file has a member; null counts. */
bool dt_config_reader_has(struct dt_config_reader *reader, const char *name);
/* Whether it has one that is not null. */
bool dt_config_reader_has_value(struct dt_config_reader *reader, const char *name);

/* Channels that RoPE rotates, from their share of a head, and the share that gives this number; 0
 * and 1: all of them. Computed as transformers does, and never rounded up. */
long dt_config_rotary_of_share(const struct dt_model_config *config, double share);
double dt_config_share_of_rotary(const struct dt_model_config *config);

/* Whether the model is one of tokens or a classifier, and the number of its labels. */
int dt_config_architecture_read(struct dt_config_reader *reader,
                                struct dt_error *err) DT_MUST_CHECK;
void dt_config_architecture_add(struct json_object *object, const struct dt_model_config *config);

/* rope_scaling and rope_parameters; members have been read. context: max_seq_len, which longrope
 * has beside that of the file. */
int dt_config_rope_read(struct dt_config_reader *reader, struct dt_error *err) DT_MUST_CHECK;
void dt_config_rope_add(struct json_object *object, const struct dt_model_config *config,
                        long context);

/* Which layers are local, and which have no RoPE; members have been read. */
int dt_config_layers_read(struct dt_config_reader *reader, struct dt_error *err) DT_MUST_CHECK;
void dt_config_layers_add(struct json_object *object, const struct dt_model_config *config);

/* A real with a decimal point even if the value is an integer, so that readers see a float. */
struct json_object *dt_config_new_real(double value);
void dt_config_add_real(struct json_object *object, const char *name, double value);

#endif
