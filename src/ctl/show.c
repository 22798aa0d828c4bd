#include "ctl/ctl.h"
#include "json/yaml.h"
#include "ui/term.h"

void ctl_table_init(struct ctl_table *t, const char *const *titles)
{
    t->rows = json_array();
    json_t *row = json_array();
    for (; *titles; titles++)
        json_array_append_new(row, json_string(*titles));
    json_array_append_new(t->rows, row);
}

void ctl_table_done(struct ctl_table *t)
{
    json_decref(t->rows);
}

void ctl_table_add(struct ctl_table *t, const char *const *cells)
{
    size_t n = json_array_size(json_array_get(t->rows, 0));
    json_t *row = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *cell = cells[i] && *cells[i] ? json_string(cells[i]) : NULL;
        json_array_append_new(row, cell ? cell : json_string("<none>"));
    }
    json_array_append_new(t->rows, row);
}

void ctl_table_print(const struct ctl_table *t, FILE *out)
{
    size_t n = json_array_size(json_array_get(t->rows, 0)), i, k;
    _cleanup_free_ size_t *widths = mem_zalloc((n + 1) * sizeof(*widths));
    json_t *row, *cell;
    json_array_foreach(t->rows, i, row) {
        json_array_foreach(row, k, cell) {
            if (json_string_length(cell) > widths[k])
                widths[k] = json_string_length(cell);
        }
    }
    json_array_foreach(t->rows, i, row) {
        json_array_foreach(row, k, cell) {
            size_t length = json_string_length(cell);
            ui_text(out, json_string_value(cell), length);
            if (k + 1 < n)
                fprintf(out, "%*s", (int)(widths[k] - length) + 3, "");
        }
        fputc('\n', out);
    }
}

/* Of an object, or each of a List: what no reader asks for. */
static void drop_managed_fields(const json_t *value)
{
    size_t i;
    json_t *item;
    json_object_del(json_object_get(value, "metadata"), "managedFields");
    json_array_foreach(json_object_get(value, "items"), i, item)
        json_object_del(json_object_get(item, "metadata"), "managedFields");
}

void ctl_print(const json_t *value, const char *format)
{
    drop_managed_fields(value);
    _cleanup_(str_done) struct str text = {0};
    bool yaml = str_eq(format, "yaml");
    if (yaml)
        json_yaml_format(value, &text);
    else
        json_format_pretty(value, &text);
    fputs(str_get(&text), stdout);
    if (!text.len || text.p[text.len - 1] != '\n')
        putchar('\n');
}

json_t *ctl_list(const json_t *items)
{
    return json_pack("{s:s,s:s,s:{s:s},s:O}", "apiVersion", "v1", "kind", "List", "metadata",
                     "resourceVersion", "", "items", items);
}

const char *ctl_age(const json_t *object, char buf[AGE_MAX])
{
    return age_since(json_text(object, "metadata", "creationTimestamp"),
                     clock_real_ns(clock_system()), buf);
}

bool ctl_print_objects(const struct cli_args *args, const json_t *objects, const char *type)
{
    const char *output = ctl_settings(args)->output;
    size_t i;
    json_t *object;
    if (!output || str_eq(output, "table") || str_eq(output, "wide"))
        return false;
    json_array_foreach(objects, i, object) {
        if (str_eq(output, "name"))
            printf("%s/%s\n", type, kube_name(object));
    }
    if (!str_eq(output, "name")) {
        json_auto_t *list = args->count == 1 && json_array_size(objects) == 1
                                ? json_incref(json_array_get(objects, 0))
                                : ctl_list(objects);
        ctl_print(list, output);
    }
    return true;
}
