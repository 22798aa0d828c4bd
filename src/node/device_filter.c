#include <fnmatch.h>

#include "base/str.h"
#include "node/device.h"

void node_filter_done(struct node_filter *f)
{
    vec_done(&f->include_paths);
    vec_done(&f->exclude_paths);
    vec_done(&f->include_vendors);
    vec_done(&f->exclude_vendors);
}

static bool path_matches(const struct node_device *d, const char *parent_path, const char *pattern)
{
    if (fnmatch(pattern, d->path, 0) == 0 || (parent_path && fnmatch(pattern, parent_path, 0) == 0))
        return true;
    for (int kind = 0; kind < NODE_LINKS; kind++) {
        vec_for_each(&d->links[kind], link) {
            if (fnmatch(pattern, *link, 0) == 0)
                return true;
        }
    }
    return false;
}

bool node_filter_passes(const struct node_filter *f, const struct node_device *d,
                        const char *parent_path)
{
    bool path = f->include_paths.len == 0, vendor = f->include_vendors.len == 0;
    vec_for_each(&f->include_paths, it)
        path |= path_matches(d, parent_path, *it);
    vec_for_each(&f->include_vendors, it)
        vendor |= fnmatch(*it, d->vendor, FNM_CASEFOLD) == 0;
    vec_for_each(&f->exclude_paths, it)
        path &= !path_matches(d, parent_path, *it);
    vec_for_each(&f->exclude_vendors, it)
        vendor &= fnmatch(*it, d->vendor, FNM_CASEFOLD) != 0;
    return path && vendor;
}
