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

void ctl_print(const json_t *value, const char *format)
{
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
