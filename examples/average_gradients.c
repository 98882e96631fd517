/* Trains one model on two halves of each batch, as two machines would: gradients are computed for
 * either half, averaged, and applied. average_gradients MODEL DATA OUT [STEPS], MODEL with its
 * training. */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>
#include <stdlib.h>

/* The two "machines": trainers of one model, each with its own batches. */
struct machine {
    struct cameo_trainer *trainer;
    struct cameo_dataset *data;
    struct cameo_batches *batches;
    float *gradients;
};

static enum cameo_status open_machine(struct machine *m, struct cameo_model *model,
                                      const char *data, uint64_t seed, struct cameo_error *err)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_batches_options order = CAMEO_BATCHES_OPTIONS_INIT;

    options.gradients = true; /* steps have two halves, with the gradients between them */
    enum cameo_status status = cameo_trainer_new(model, &options, &m->trainer, err);
    if (status == CAMEO_OK)
        status = cameo_dataset_open(data, NULL, &m->data, err);
    order.batch_size = 8;
    order.shuffle = true;
    order.seed = seed;
    order.endless = true;
    if (status == CAMEO_OK)
        status = cameo_batches_new(m->data, m->trainer, &order, &m->batches, err);
    if (status == CAMEO_OK)
        m->gradients = calloc(1, cameo_trainer_parameter_bytes(m->trainer) + sizeof(float));
    return status;
}

static enum cameo_status compute(struct machine *m, struct cameo_error *err)
{
    const size_t size = cameo_trainer_parameter_bytes(m->trainer);
    const struct cameo_feed *feeds;
    int64_t rows;
    enum cameo_status status = cameo_batches_next(m->batches, &feeds, &rows, err);

    if (status == CAMEO_OK)
        status = cameo_trainer_compute(m->trainer, feeds, cameo_trainer_input_count(m->trainer),
                                       NULL, err);
    if (status == CAMEO_OK)
        status = cameo_trainer_read_gradients(m->trainer, m->gradients, size, err);
    return status;
}

/* Both apply the same gradients, so that their parameters stay equal. */
static enum cameo_status step(struct machine *machines, struct cameo_error *err)
{
    const size_t size = cameo_trainer_parameter_bytes(machines[0].trainer);
    enum cameo_status status = CAMEO_OK;

    for (int i = 0; i < 2 && status == CAMEO_OK; i++)
        status = compute(&machines[i], err);
    for (size_t k = 0; k < size / sizeof(float) && status == CAMEO_OK; k++)
        machines[0].gradients[k] = (machines[0].gradients[k] + machines[1].gradients[k]) / 2;
    for (int i = 0; i < 2 && status == CAMEO_OK; i++) {
        status = cameo_trainer_set_gradients(machines[i].trainer, machines[0].gradients, size, err);
        if (status == CAMEO_OK)
            status = cameo_trainer_apply(machines[i].trainer, NULL, err);
    }
    return status;
}

static void print_parameters(const struct machine *machines)
{
    for (size_t i = 0; i < cameo_trainer_parameter_count(machines[0].trainer); i++) {
        const struct cameo_parameter *row = cameo_trainer_parameter(machines[0].trainer, i);

        printf("%s: %lld of %s at byte %zu\n", row->name.data, (long long)row->elements,
               cameo_dtype_name(row->dtype), row->offset);
    }
}

int main(int argc, char **argv)
{
    struct machine machines[2] = {{0}, {0}};
    struct cameo_model *model = NULL;
    struct cameo_error err;

    if (argc < 4) {
        fprintf(stderr, "usage: average_gradients MODEL DATA OUT [STEPS]\n");
        return 2;
    }
    enum cameo_status status = cameo_model_load(argv[1], NULL, &model, &err);
    for (int i = 0; i < 2 && status == CAMEO_OK; i++)
        status = open_machine(&machines[i], model, argv[2], (uint64_t)i, &err);
    if (status == CAMEO_OK)
        print_parameters(machines);
    const long steps = argc > 4 ? strtol(argv[4], NULL, 10) : 50;
    for (long i = 0; i < steps && status == CAMEO_OK; i++)
        status = step(machines, &err);
    if (status == CAMEO_OK)
        status = cameo_trainer_save(machines[0].trainer, argv[3], NULL, NULL, &err);
    if (status == CAMEO_OK)
        printf("%llu steps\n", (unsigned long long)cameo_trainer_steps(machines[0].trainer));
    else
        fprintf(stderr, "%s\n", err.message);
    for (int i = 0; i < 2; i++) {
        cameo_batches_free(machines[i].batches);
        cameo_dataset_free(machines[i].data);
        cameo_trainer_free(machines[i].trainer);
        free(machines[i].gradients);
    }
    cameo_model_free(model);
    return status != CAMEO_OK;
}
