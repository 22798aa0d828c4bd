/*
 * What a row must be: rules that the compiler cannot check. `orlop docs` applies them to all rows, so that
 * a wrong one fails the tests.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"

/* Which members an option of each type may fill. */
static bool member_ok(const struct cli_option *o)
{
    enum cli_member m = o->member;
    bool number = m >= CLI_MEMBER_U16 && m <= CLI_MEMBER_U64, text = m == CLI_MEMBER_TEXT;
    switch (o->type) {
    case CLI_SWITCH:
    case CLI_BOOL:
        return m == CLI_MEMBER_BOOL;
    case CLI_STRING:
    case CLI_FILE:
    case CLI_DIR:
        return text;
    case CLI_INT:
        return number && cli_value_fits(m, o->most) && o->least <= o->most && o->most &&
               (!o->off || m == CLI_MEMBER_I32);
    case CLI_SIZE:
        return number || text;
    case CLI_DURATION:
    case CLI_SECONDS:
        return m == CLI_MEMBER_I64 || text;
    case CLI_ENUM:
        return (number || text) && o->choices;
    case CLI_LIST:
    case CLI_ITEMS:
        return m == CLI_MEMBER_LIST;
    }
    return false;
}

static int wrong(const struct cli_command *c, const struct cli_option *o, const char *why,
                 struct err *e)
{
    return err_set(e, ERR_INVALID_ARGUMENT, "Table", "%s --%s: %s", c->name, o->name, why);
}

static int check_option(const struct cli_command *c, const struct cli_option *o, struct err *e)
{
    for (const struct cli_option *other = c->options; other < o; other++) {
        if (str_eq(other->name, o->name) || (o->letter && other->letter == o->letter))
            return wrong(c, o, "the name or letter is there twice", e);
    }
    if (!member_ok(o))
        return wrong(c, o, "the member does not fit the type", e);
    if (o->offset >= c->settings)
        return wrong(c, o, "the member is outside of the settings", e);
    if (cli_value_must(o) && !o->arg)
        return wrong(c, o, "the value has no name", e);
    if (!o->doc || !*o->doc || o->doc[strlen(o->doc) - 1] != '.')
        return wrong(c, o, "the doc is no sentence", e);
    if (!o->def)
        return 0;
    _cleanup_free_ void *settings = mem_zalloc(c->settings);
    struct err why = {0};
    int status = cli_value_set(o, o->def, settings, &why);
    cli_values_done((const struct cli_option[]){*o, {0}}, settings);
    return status < 0 ? wrong(c, o, why.msg, e) : 0;
}

int cli_check(const struct cli_command *c, struct err *e)
{
    size_t n = 0;
    for (const struct cli_option *o = c->options; o && o->name; o++, n++) {
        if (check_option(c, o, e) < 0)
            return -1;
    }
    if (n > CLI_OPTIONS_MAX || !c->summary || !c->doc || (!c->run == !c->program))
        return err_set(e, ERR_INVALID_ARGUMENT, "Table",
                       "%s: it needs a summary, a doc, and either run or program", c->name);
    return 0;
}
