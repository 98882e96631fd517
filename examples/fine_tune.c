/* Fine-tunes a model on data and saves it: fine_tune MODEL DATA OUT [STEPS]. A model that does not
 * carry its training is given one: cross-entropy and Adam. */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>
#include <stdlib.h>

static enum cameo_status make_trainable(struct cameo_model *model, struct cameo_error *err)
{
    struct cameo_prepare_options options = CAMEO_PREPARE_OPTIONS_INIT;

    if (cameo_model_summary(model)->training_count)
        return CAMEO_OK;
    options.loss = "cross-entropy";
    options.optimizer = "adam";
    return cameo_model_prepare(model, &options, NULL, err);
}

/* Called after every step; the loss is that of its batch before the update. To stop the run, say
 * false. */
static bool tell(void *arg, const struct cameo_progress *at)
{
    const struct cameo_trainer *trainer = arg;

    if (at->moment == CAMEO_AFTER_STEP && (at->step == 1 || at->step == at->steps))
        printf("step %llu: %s %.4f\n", (unsigned long long)at->step,
               cameo_trainer_scalar_name(trainer, cameo_trainer_loss(trainer)), at->loss);
    return true;
}

static enum cameo_status train(struct cameo_trainer *trainer, struct cameo_batches *batches,
                               long steps, struct cameo_error *err)
{
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;

    options.steps = steps > 0 ? (uint64_t)steps : 1;
    options.progress = tell;
    options.progress_arg = trainer;
    return cameo_trainer_run(trainer, batches, &options, NULL, err);
}

static void print_variables(const struct cameo_trainer *trainer)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < cameo_trainer_variable_count(trainer); i++)
        bytes += cameo_trainer_variable(trainer, i)->bytes;
    printf("%zu variables, %llu bytes, after %llu steps\n", cameo_trainer_variable_count(trainer),
           (unsigned long long)bytes, (unsigned long long)cameo_trainer_steps(trainer));
}

int main(int argc, char **argv)
{
    struct cameo_batches_options options = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_model *model = NULL;
    struct cameo_trainer *trainer = NULL;
    struct cameo_dataset *data = NULL;
    struct cameo_batches *batches = NULL;
    struct cameo_error err;

    if (argc < 4) {
        fprintf(stderr, "usage: fine_tune MODEL DATA OUT [STEPS]\n");
        return 2;
    }
    options.batch_size = 16;
    options.shuffle = true;
    options.endless = true; /* the data is repeated as long as there are steps */
    enum cameo_status status = cameo_model_load(argv[1], NULL, &model, &err);
    if (status == CAMEO_OK)
        status = make_trainable(model, &err);
    if (status == CAMEO_OK)
        status = cameo_trainer_new(model, NULL, &trainer, &err);
    if (status == CAMEO_OK)
        status = cameo_dataset_open(argv[2], NULL, &data, &err);
    if (status == CAMEO_OK)
        status = cameo_batches_new(data, trainer, &options, &batches, &err);
    if (status == CAMEO_OK)
        status = train(trainer, batches, argc > 4 ? strtol(argv[4], NULL, 10) : 100, &err);
    if (status == CAMEO_OK)
        status = cameo_trainer_save(trainer, argv[3], NULL, NULL, &err);
    if (status == CAMEO_OK)
        print_variables(trainer);
    else
        fprintf(stderr, "%s\n", err.message);
    cameo_batches_free(batches);
    cameo_dataset_free(data);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
    return status != CAMEO_OK;
}
