/* Multi-device configurations of the model, and what nodes say about them. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"

void cm_examine_configurations(struct cm_checker *c)
{
    const struct cm_model_proto *model = c->model;
    bool added;

    if (model->configuration.count)
        cm_report_newer(c, NULL, 11, "multi-device settings");
    for (size_t i = 0; i < model->configuration.count; i++) {
        const struct cm_device_proto *device = &model->configuration.items[i];
        const struct cm_model_place here = CM_PLACE(NULL, "configuration", device->name, i);

        uint64_t *slot = cm_map_insert(&c->configurations, c->scratch, device->name, &added);
        if (!device->name.size)
            cm_report(c, CM_RULE_ST21, &here, "has no name");
        else if (!added)
            cm_report(c, CM_RULE_ST21, &here, "another configuration has the same name");
        *slot = i + 1;
        if (device->num_devices < 1)
            cm_report(c, CM_RULE_ST21, &here, "has %d devices, expected 1 or more",
                      (int)device->num_devices);
        else if (device->device.count && device->device.count != (size_t)device->num_devices)
            cm_report(c, CM_RULE_ST21, &here, "names %zu devices but has %d", device->device.count,
                      (int)device->num_devices);
    }
}

/* The map knows strings only; a number is the string of its bytes. */
static struct cm_str bytes_of(const int64_t *number)
{
    return (struct cm_str){(const char *)number, sizeof *number};
}

/* Reports the first device that does not exist; a listed entry may also be the key of a group. */
static void examine_devices(struct cm_checker *c, const struct cm_model_place *place,
                            const struct cm_sharding_spec_proto *spec, int32_t devices)
{
    struct cm_map groups = {0};

    for (size_t i = 0; i < spec->index_to_device_group_map.count; i++)
        cm_map_insert(&groups, c->scratch, bytes_of(&spec->index_to_device_group_map.items[i].key),
                      NULL);
    for (size_t i = 0; i < spec->device.count; i++) {
        const int64_t entry = spec->device.items[i];

        if ((entry < 0 || entry >= devices) && !cm_map_find(&groups, bytes_of(&entry))) {
            cm_report(c, CM_RULE_ST21, place, "shards '%.*s' to device %lld, there are %d",
                      CM_STR_FMT(spec->tensor_name), (long long)entry, (int)devices);
            return;
        }
    }
    for (size_t i = 0; i < spec->index_to_device_group_map.count; i++) {
        const struct cm_int64s *group = &spec->index_to_device_group_map.items[i].value;

        for (size_t k = 0; k < group->count; k++) {
            if (group->items[k] < 0 || group->items[k] >= devices) {
                cm_report(c, CM_RULE_ST21, place,
                          "a group for '%.*s' has device %lld, there are %d",
                          CM_STR_FMT(spec->tensor_name), (long long)group->items[k], (int)devices);
                return;
            }
        }
    }
}

static void examine_shards(struct cm_checker *c, const struct cm_model_place *place,
                           const struct cm_sharding_spec_proto *spec)
{
    for (size_t i = 0; i < spec->sharded_dim.count; i++) {
        const struct cm_sharded_dim_proto *dim = &spec->sharded_dim.items[i];

        for (size_t k = 0; k < dim->simple_sharding.count; k++) {
            const struct cm_simple_sharded_dim_proto *part = &dim->simple_sharding.items[k];

            if (part->num_shards < 1)
                cm_report(c, CM_RULE_ST21, place, "axis %lld of '%.*s' is cut into %lld shards",
                          (long long)dim->axis, CM_STR_FMT(spec->tensor_name),
                          (long long)part->num_shards);
        }
    }
}

void cm_examine_node_devices(struct cm_checker *c, const struct cm_model_place *place,
                             const struct cm_node_proto *node)
{
    struct cm_map operands = {0};

    if (!node->device_configurations.count)
        return;
    cm_report_newer(c, place, 11, "multi-device settings");
    for (size_t i = 0; i < node->input.count; i++)
        cm_map_insert(&operands, c->scratch, node->input.items[i], NULL);
    for (size_t i = 0; i < node->output.count; i++)
        cm_map_insert(&operands, c->scratch, node->output.items[i], NULL);
    for (size_t i = 0; i < node->device_configurations.count; i++) {
        const struct cm_node_device_proto *use = &node->device_configurations.items[i];
        const uint64_t found = cm_map_get(&c->configurations, use->configuration_id, 0);

        if (!found && c->model)
            cm_report(c, CM_RULE_ST21, place, "the model has no configuration '%.*s'",
                      CM_STR_FMT(use->configuration_id));
        for (size_t k = 0; k < use->sharding_spec.count; k++) {
            const struct cm_sharding_spec_proto *spec = &use->sharding_spec.items[k];

            if (!spec->tensor_name.size || !cm_map_find(&operands, spec->tensor_name))
                cm_report(c, CM_RULE_ST21, place,
                          "shards '%.*s', which it neither reads nor writes",
                          CM_STR_FMT(spec->tensor_name));
            if (found)
                examine_devices(c, place, spec,
                                c->model->configuration.items[found - 1].num_devices);
            examine_shards(c, place, spec);
        }
    }
}
