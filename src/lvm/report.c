/*
 * One report of everything.
 */
#include <stdlib.h>

#include "json/json.h"
#include "lvm/impl.h"

/* Which columns are asked for; pvseg cannot be left out, so it is asked for nothing. */
static const char *const words[] = {
    "fullreport",
    "--reportformat",
    "json",
    "--units",
    "b",
    "--nosuffix",
    "--configreport",
    "vg",
    "-o",
    "vg_name,vg_uuid,vg_size,vg_free,vg_extent_size,vg_missing_pv_count",
    "--configreport",
    "pv",
    "-o",
    "pv_name,pe_start,pv_size",
    "--configreport",
    "lv",
    "-o",
    "lv_name,lv_uuid,lv_size,lv_attr,pool_lv,origin,lv_tags,data_percent,metadata_percent",
    "--configreport",
    "seg",
    "-o",
    "lv_name,segtype,seg_start,seg_size,stripes,stripe_size,seg_pe_ranges",
    "--configreport",
    "pvseg",
    "-S",
    "pvseg_start=-1",
    NULL,
};

static const char *text_of(struct lvm_view *v, const json_t *row, const char *key)
{
    const char *text = json_str(row, key);
    return text ? arena_strdup(&v->arena, text) : "";
}

static uint64_t number_of(const json_t *row, const char *key)
{
    const char *text = json_str(row, key);
    return text && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : 0;
}

static double percent_of(const json_t *row, const char *key)
{
    const char *text = json_str(row, key);
    return text && *text ? strtod(text, NULL) : -1;
}

static const char *add_vg(struct lvm_view *v, const json_t *row)
{
    struct lvm_vg vg = {
        .name = text_of(v, row, "vg_name"),
        .uuid = text_of(v, row, "vg_uuid"),
        .size = number_of(row, "vg_size"),
        .free = number_of(row, "vg_free"),
        .extent = number_of(row, "vg_extent_size"),
        .missing = (unsigned)number_of(row, "vg_missing_pv_count"),
    };
    vec_push(&v->vgs, vg);
    return vg.name;
}

static void add_pv(struct lvm_view *v, const char *vg, const json_t *row)
{
    vec_push(&v->pvs, (struct lvm_pv){.vg = vg,
                                      .name = text_of(v, row, "pv_name"),
                                      .start = number_of(row, "pe_start"),
                                      .size = number_of(row, "pv_size")});
}

static void add_lv(struct lvm_view *v, const char *vg, const json_t *row)
{
    struct lvm_lv lv = {
        .vg = vg,
        .name = text_of(v, row, "lv_name"),
        .uuid = text_of(v, row, "lv_uuid"),
        .attr = text_of(v, row, "lv_attr"),
        .pool = text_of(v, row, "pool_lv"),
        .origin = text_of(v, row, "origin"),
        .tags = text_of(v, row, "lv_tags"),
        .size = number_of(row, "lv_size"),
        .data_percent = percent_of(row, "data_percent"),
        .metadata_percent = percent_of(row, "metadata_percent"),
    };
    vec_push(&v->lvs, lv);
    _cleanup_free_ char *key = mem_printf("%s/%s", vg, lv.name);
    map_set(&v->by_name, key, (void *)v->lvs.len);
}

static void add_seg(struct lvm_view *v, const char *vg, const json_t *row)
{
    struct lvm_seg seg = {
        .vg = vg,
        .lv = text_of(v, row, "lv_name"),
        .type = text_of(v, row, "segtype"),
        .start = number_of(row, "seg_start"),
        .size = number_of(row, "seg_size"),
        .stripes = (unsigned)number_of(row, "stripes"),
        .stripe_size = number_of(row, "stripe_size"),
        .ranges = text_of(v, row, "seg_pe_ranges"),
    };
    vec_push(&v->segs, seg);
}

/* One group. Disks without one come as a part without a group: they are nobody's. */
static void add_part(struct lvm_view *v, const json_t *part)
{
    size_t i;
    json_t *row;
    const json_t *group = json_array_get(json_object_get(part, "vg"), 0);
    if (!group || !json_str(group, "vg_name") || !*json_str(group, "vg_name"))
        return;
    const char *vg = add_vg(v, group);
    json_array_foreach(json_object_get(part, "pv"), i, row)
        add_pv(v, vg, row);
    json_array_foreach(json_object_get(part, "lv"), i, row)
        add_lv(v, vg, row);
    json_array_foreach(json_object_get(part, "seg"), i, row)
        add_seg(v, vg, row);
}

int lvm_view_parse(const char *text, size_t size, struct lvm_view **ret_view, struct err *e)
{
    size_t i;
    json_t *part;
    json_auto_t *root = json_parse(text, size, NULL, e);
    if (!root)
        return err_prefix(e, "lvm's report");
    const json_t *parts = json_object_get(root, "report");
    if (!json_is_array(parts))
        return err_set(e, ERR_INTERNAL, "BadReport", "lvm's report has no \"report\"");
    struct lvm_view *v = NEW(struct lvm_view);
    atomic_init(&v->refs, 1);
    json_array_foreach((json_t *)parts, i, part)
        add_part(v, part);
    *ret_view = v;
    return 0;
}

int lvm_look(struct lvm *l, struct lvm_view **ret_view, struct err *e)
{
    _cleanup_(str_done) struct str text = {0};
    if (lvm_run(l, LVM_TO_READ, words, &text, e) < 0)
        return -1;
    return lvm_view_parse(str_get(&text), text.len, ret_view, e);
}

struct lvm_view *lvm_view_ref(struct lvm_view *v)
{
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    return v;
}

void lvm_view_unref(struct lvm_view *v)
{
    if (!v || atomic_fetch_sub(&v->refs, 1) != 1)
        return;
    map_done(&v->by_name);
    vec_done(&v->vgs);
    vec_done(&v->pvs);
    vec_done(&v->lvs);
    vec_done(&v->segs);
    arena_done(&v->arena);
    free(v);
}

const struct lvm_vg *lvm_view_vg(const struct lvm_view *v, const char *name)
{
    vec_for_each(&v->vgs, vg) {
        if (str_eq(vg->name, name))
            return vg;
    }
    return NULL;
}

const struct lvm_lv *lvm_view_lv(const struct lvm_view *v, const char *vg, const char *name)
{
    _cleanup_free_ char *key = mem_printf("%s/%s", vg, name);
    size_t place = (size_t)map_get(&v->by_name, key);
    return place ? &v->lvs.p[place - 1] : NULL;
}

char *lvm_lv_tag(const struct lvm_lv *lv, const char *key)
{
    size_t n = strlen(key);
    for (const char *tag = lv->tags; *tag; tag += strcspn(tag, ","), tag += *tag == ',') {
        if (strncmp(tag, key, n) == 0 && tag[n] == '=')
            return mem_strndup(tag + n + 1, strcspn(tag + n + 1, ","));
    }
    return NULL;
}

bool lvm_lv_is_thin(const struct lvm_lv *lv)
{
    return lv->attr[0] == 'V';
}

bool lvm_lv_is_thin_pool(const struct lvm_lv *lv)
{
    return lv->attr[0] == 't';
}

bool lvm_lv_is_read_only(const struct lvm_lv *lv)
{
    return lv->attr[0] && (lv->attr[1] == 'r' || lv->attr[1] == 'R');
}
