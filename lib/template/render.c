/* SPDX-License-Identifier: MIT */
/* Statements -> text. */
#include <string.h>

#include "template/template-internal.h"

static int render_body(struct render *r, const struct nodes *body);

/* --- scopes -----------------------------------------------------------------------------------*/

static struct scope *new_scope(struct render *r, struct scope *outer)
{
    struct scope *scope = dt_template_alloc(&r->arena, sizeof *scope);
    scope->outer = outer;
    return scope;
}

void dt_template_assign(struct render *r, const char *name, struct value value)
{
    dt_template_dict_set(r, &r->scope->names, dt_template_text(name), value);
}

bool dt_template_lookup(struct render *r, const char *name, struct value *value)
{
    for (const struct scope *s = r->scope; s; s = s->outer) {
        const struct value *found = dt_template_dict_get(r, &s->names, name, strlen(name));
        if (found) {
            *value = *found;
            return true;
        }
    }
    const struct function *global = dt_template_find_global(name);
    if (global) {
        struct bound *bound = dt_template_alloc(&r->arena, sizeof *bound);
        bound->function = global;
        *value = (struct value){.kind = VALUE_FUNCTION, .bound = bound};
    }
    return global != NULL;
}

/* A name, or an attribute of a namespace. */
static int assign(struct render *r, const struct node *target, struct value value)
{
    struct value of;
    if (target->kind == NODE_NAME) {
        dt_template_assign(r, target->value.text, value);
        return 0;
    }
    DT_TRY(dt_template_evaluate(r, target->first, &of));
    if (of.kind != VALUE_NAMESPACE)
        return dt_template_error(r, "cannot set an attribute of %s, only of a namespace",
                                 dt_template_kind_name(of));
    dt_template_dict_set(r, of.dict, target->value, value);
    return 0;
}

/* One value to one target, or the items of a value to several. */
static int assign_all(struct render *r, const struct nodes *targets, struct value value)
{
    const struct list *items;
    if (targets->count == 1)
        return assign(r, targets->items[0], value);
    DT_TRY(dt_template_iterate(r, value, &items));
    if (items->count != targets->count)
        return dt_template_error(r, "%zu values for %zu names", items->count, targets->count);
    for (size_t i = 0; i < items->count; i++)
        DT_TRY(assign(r, targets->items[i], items->items[i]));
    return 0;
}

/* --- captured text ----------------------------------------------------------------------------*/

/* The text of body, in a new scope. */
static int capture(struct render *r, const struct nodes *body, struct scope *scope,
                   struct value *value)
{
    struct dt_buffer text = DT_BUFFER_EMPTY, *out = r->out;
    struct dt_template_spans *spans = r->spans;
    struct scope *outer = r->scope;
    r->out = &text;
    r->spans = NULL;
    r->scope = scope;
    int rc = render_body(r, body);
    r->out = out;
    r->spans = spans;
    r->scope = outer;
    if (rc == 0)
        return dt_template_buffer(r, &text, value);
    dt_buffer_release(&text);
    return rc;
}

/* Applies filters whose innermost has no operand to a value. */
static int apply_filters(struct render *r, const struct node *filter, struct value of,
                         struct value *value)
{
    struct value subject = of;
    if (filter->function == NULL)
        return dt_template_error(r, "the filter '%s' is not supported", filter->value.text);
    if (filter->first)
        DT_TRY(apply_filters(r, filter->first, of, &subject));
    struct value *arguments = dt_template_alloc(&r->arena, filter->items.count * sizeof *arguments);
    for (size_t i = 0; i < filter->items.count; i++)
        DT_TRY(dt_template_evaluate(r, filter->items.items[i], &arguments[i]));
    return dt_template_invoke(r, filter->function, subject, arguments,
                              filter->items.count - filter->name_count, filter->names,
                              filter->name_count, value);
}

/* --- macros -----------------------------------------------------------------------------------*/

static int bind_named(struct render *r, const struct macro *macro, const char *name, size_t *at)
{
    for (*at = 0; *at < macro->node->items.count; ++*at)
        if (strcmp(macro->node->items.items[*at]->value.text, name) == 0)
            return 0;
    return dt_template_error(r, "macro %s has no parameter '%s'", macro->node->value.text, name);
}

int dt_template_call_macro(struct render *r, const struct macro *macro,
                           const struct value *arguments, size_t count, const char *const *names,
                           size_t name_count, struct value *result)
{
    const struct nodes *parameters = &macro->node->items;
    struct scope *scope = new_scope(r, macro->scope), *outer = r->scope;
    if (count > parameters->count)
        return dt_template_error(r, "macro %s has %zu parameters, not %zu", macro->node->value.text,
                                 parameters->count, count);
    struct value *values = dt_template_alloc(&r->arena, parameters->count * sizeof *values);
    bool *given = dt_template_alloc(&r->arena, parameters->count);
    for (size_t i = 0; i < count + name_count; i++) {
        size_t at = i;
        if (i >= count)
            DT_TRY(bind_named(r, macro, names[i - count], &at));
        if (given[at])
            return dt_template_error(r, "macro %s: two values for '%s'", macro->node->value.text,
                                     parameters->items[at]->value.text);
        values[at] = arguments[i];
        given[at] = true;
    }
    r->scope = scope;
    dt_template_assign(r, "varargs", dt_template_list(r, LIST_TUPLE)); /* more are refused */
    dt_template_assign(r, "kwargs", dt_template_dict(r));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < parameters->count; i++) {
        const struct node *p = parameters->items[i];
        if (!given[i])
            values[i] = dt_template_undefined(r, p->value.text);
        if (!given[i] && p->first)
            rc = dt_template_evaluate(r, p->first, &values[i]);
        dt_template_assign(r, p->value.text, values[i]);
    }
    r->scope = outer;
    return rc == 0 ? capture(r, &macro->node->body, scope, result) : rc;
}

/* --- loops ------------------------------------------------------------------------------------*/

/* The items for which the condition holds. */
static int filter_items(struct render *r, const struct node *node, const struct list **items)
{
    struct list *kept = dt_template_list(r, LIST_PLAIN).list;
    struct scope *outer = r->scope;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < (*items)->count; i++) {
        struct value holds = dt_template_none();
        r->scope = new_scope(r, outer);
        rc = assign_all(r, &node->items, (*items)->items[i]);
        rc = rc == 0 ? dt_template_evaluate(r, node->second, &holds) : rc;
        if (rc == 0 && dt_template_is_true(holds))
            rc = dt_template_append(r, kept, (*items)->items[i]);
    }
    r->scope = outer;
    *items = kept;
    return rc;
}

/* {% break %} and {% continue %} there are those of the loop around this one. */
static int render_else(struct render *r, const struct node *node)
{
    struct scope *outer = r->scope;
    r->scope = new_scope(r, outer);
    int rc = render_body(r, &node->otherwise);
    r->scope = outer;
    return rc;
}

static int render_for(struct render *r, const struct node *node)
{
    struct value over;
    const struct list *items;
    struct scope *outer = r->scope;
    DT_TRY(dt_template_evaluate(r, node->first, &over));
    DT_TRY(dt_template_iterate(r, over, &items));
    if (node->second)
        DT_TRY(filter_items(r, node, &items));
    struct loop *loop = dt_template_alloc(&r->arena, sizeof *loop);
    *loop = (struct loop){items, 0};
    int rc = 0;
    bool ended = false; /* an iteration, without {% break %} and {% continue %} */
    for (; rc == 0 && loop->index < items->count && r->flow != FLOW_BREAK; loop->index++) {
        r->flow = FLOW_NEXT;
        r->scope = new_scope(r, outer);
        dt_template_assign(r, "loop", (struct value){.kind = VALUE_LOOP, .loop = loop});
        rc = assign_all(r, &node->items, items->items[loop->index]);
        rc = rc == 0 ? render_body(r, &node->body) : rc;
        ended |= r->flow == FLOW_NEXT;
        r->scope = outer;
    }
    r->flow = FLOW_NEXT;
    return rc < 0 || ended ? rc : render_else(r, node);
}

/* --- statements -------------------------------------------------------------------------------*/

static int render_output(struct render *r, const struct node *node)
{
    struct value v;
    DT_TRY(dt_template_evaluate(r, node->first, &v));
    return dt_template_add_text(r, v, r->out);
}

static int render_if(struct render *r, const struct node *node)
{
    struct value holds;
    DT_TRY(dt_template_evaluate(r, node->first, &holds));
    return render_body(r, dt_template_is_true(holds) ? &node->body : &node->otherwise);
}

static int render_set(struct render *r, const struct node *node)
{
    struct value value;
    if (node->first) {
        DT_TRY(dt_template_evaluate(r, node->first, &value));
    } else {
        DT_TRY(capture(r, &node->body, new_scope(r, r->scope), &value));
        if (r->flow != FLOW_NEXT)
            return 0;
        if (node->second)
            DT_TRY(apply_filters(r, node->second, value, &value));
    }
    return assign_all(r, &node->items, value);
}

static int render_filtered(struct render *r, const struct node *node)
{
    struct value value;
    DT_TRY(capture(r, &node->body, new_scope(r, r->scope), &value));
    if (r->flow != FLOW_NEXT)
        return 0;
    DT_TRY(apply_filters(r, node->first, value, &value));
    return dt_template_add_text(r, value, r->out);
}

static int render_generation(struct render *r, const struct node *node)
{
    struct value value;
    size_t begin = r->out->size;
    DT_TRY(capture(r, &node->body, new_scope(r, r->scope), &value));
    DT_TRY(dt_template_add_text(r, value, r->out));
    if (r->spans) {
        DT_GROW(r->spans->items, r->spans->count, r->spans->capacity);
        r->spans->items[r->spans->count++] = (struct dt_template_span){begin, r->out->size};
    }
    return 0;
}

static void define_macro(struct render *r, const struct node *node)
{
    struct macro *macro = dt_template_alloc(&r->arena, sizeof *macro);
    *macro = (struct macro){node, r->scope};
    dt_template_assign(r, node->value.text, (struct value){.kind = VALUE_MACRO, .macro = macro});
}

static int render_node(struct render *r, const struct node *node)
{
    r->line = node->line;
    switch (node->kind) {
    case NODE_TEXT:
        return dt_template_add_text(r, node->value, r->out);
    case NODE_OUTPUT:
        return render_output(r, node);
    case NODE_IF:
        return render_if(r, node);
    case NODE_FOR:
        return render_for(r, node);
    case NODE_SET:
        return render_set(r, node);
    case NODE_MACRO:
        define_macro(r, node);
        return 0;
    case NODE_FILTERED:
        return render_filtered(r, node);
    case NODE_GENERATION:
        return render_generation(r, node);
    case NODE_BREAK:
        r->flow = FLOW_BREAK;
        return 0;
    case NODE_CONTINUE:
        r->flow = FLOW_CONTINUE;
        return 0;
    default:
        return dt_template_error(r, "an expression is not a statement");
    }
}

static int render_body(struct render *r, const struct nodes *body)
{
    DT_TRY(dt_template_enter(r));
    for (size_t i = 0; i < body->count && r->flow == FLOW_NEXT; i++)
        DT_TRY(render_node(r, body->items[i]));
    r->depth--;
    return 0;
}

int dt_template_render(const struct dt_template *t, struct json_object *context, time_t now,
                       struct dt_buffer *out, struct dt_template_spans *spans, struct dt_error *err)
{
    struct render r = {.template = t, .now = now, .out = out, .spans = spans, .err = err};
    struct value variables;
    int rc = dt_template_from_json(&r, context, &variables);
    if (rc == 0) {
        struct scope *root = new_scope(&r, NULL);
        root->names = *variables.dict;
        r.scope = new_scope(&r, root);
        rc = render_body(&r, &t->body);
    }
    dt_template_arena_free(&r.arena);
    return rc;
}
